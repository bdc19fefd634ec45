"""ln P that all levels of a Dirichlet law are at least a bound, against exact sums and incomplete beta functions."""

from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest
from scipy.special import gammaln, logsumexp
from scipy.stats import binom

from privpost.samplers import truncated_mass_table
from privpost.samplers.hidden_markov_collapsed import Entries
from privpost.samplers.hidden_markov_gibbs import Prior
from privpost.samplers.truncated_masses import truncation_masses

# By M, of bounds 1/(M levels): what the module says that it errs by.
ERRORS = {1.05: 1e-2, 1.5: 1e-5, 2: 2e-6, 10: 1e-6, 100: 1e-6}


def log_mass(alphas, truncation: float) -> float:
    """ln P by the compiled loops."""
    alphas, levels = np.asarray(alphas, float), len(alphas)
    sums = np.append(alphas, alphas.sum())
    entries = Entries.of(Prior(1, (levels,)), lows=[1 / (truncation * levels)])
    return float(truncation_masses(np.stack([sums, gammaln(sums)], axis=-1)[None, None], entries)[0])


def exact_sum(alphas, truncation: float) -> float:
    """ln P for whole α: with x_i = low + y_i the density is a polynomial in y, whose terms are Dirichlet integrals."""
    levels, by_degree = len(alphas), [mpmath.mpf(1)]
    low = mpmath.mpf(1) / (truncation * levels)
    for alpha in map(int, alphas):
        terms = [low ** (alpha - 1 - k) / mpmath.factorial(alpha - 1 - k) for k in range(alpha)]
        product = [mpmath.mpf(0)] * (len(by_degree) + alpha - 1)
        for i, first in enumerate(by_degree):
            for k, second in enumerate(terms):
                product[i + k] += first * second
        by_degree = product
    room = 1 - levels * low
    total = mpmath.fsum(c * room ** (s + levels - 1) / mpmath.gamma(s + levels) for s, c in enumerate(by_degree))
    return float(mpmath.log(mpmath.gamma(int(sum(alphas))) * total))


@pytest.mark.parametrize("truncation", ERRORS)
def test_ln_p_of_whole_shapes_is_an_exact_sum(truncation) -> None:
    """Binomial sums, all of whose terms are positive, decide; the tolerance is what the module says that it errs by."""
    rng = np.random.default_rng(1)
    for levels in (2, 3, 13):
        for scale in (1, 4, 12):
            alphas = 1 + rng.poisson(rng.gamma(0.4, scale, levels))
            # Further below, the next test decides.
            if (exact := exact_sum(alphas, truncation)) > -200:
                assert log_mass(alphas, truncation) == pytest.approx(exact, abs=ERRORS[truncation], rel=0)


@pytest.mark.parametrize("truncation", [2, 10, 100])
def test_ln_p_of_two_levels_is_an_incomplete_beta_function(truncation) -> None:
    """mpmath decides, for shapes from 1 to 3,000; the tolerance is what the module says that it errs by."""
    low = 1 / (2 * truncation)
    for a, b in ((1.0, 1.0), (1.3, 1.0), (1.02, 1.7), (9.4, 1.2), (30.5, 41.3), (210.0, 1.4), (3000.2, 1400.7)):
        exact = mpmath.quad(
            lambda x, a=a, b=b: x ** (a - 1) * (1 - x) ** (b - 1) / mpmath.beta(a, b),
            np.unique(np.clip(a / (a + b) + np.arange(-12, 13) / math.sqrt(a + b), low, 1 - low)),
        )
        assert log_mass((a, b), truncation) == pytest.approx(float(mpmath.log(exact)), abs=ERRORS[truncation], rel=0)


def test_ln_p_of_rare_levels_beside_many_events_is_a_binomial_sum() -> None:
    """P(x ≥ low) of Beta(a, b) is that of fewer than a successes in a + b − 1; to 1e-12, far below the least float.

    A level with 34 events in a state of 51,000 is there when OPS with M = 10 and ε = 10 draws ten states.
    """
    low = 1 / 20
    for a, b in ((35, 51_004), (1, 51_004), (200, 200_000)):
        exact = logsumexp(binom.logpmf(np.arange(a), a + b - 1, low))
        assert log_mass((a, b), 10) == pytest.approx(exact, rel=1e-12, abs=0)


@pytest.mark.parametrize("truncation", [2, 10, 100])
def test_ln_p_without_counts_is_a_power(truncation) -> None:
    """The simplex above the bounds is a smaller simplex: (levels − 1) ln(1 − 1/M); the tolerance is as above."""
    for levels in (2, 3, 13, 151):
        exact = (levels - 1) * math.log1p(-1 / truncation)
        assert log_mass(np.ones(levels), truncation) == pytest.approx(exact, abs=ERRORS[truncation], rel=0)


def test_a_table_that_is_full_begins_anew(monkeypatch) -> None:
    """ln P from a table of 16 rows is, in every digit, that of one that is never full: a row is a function of its key.

    Computed twice from it, since rows that are overwritten are wrong the second time.
    """
    shapes = [1 + np.random.default_rng(seed).gamma(2.0, 30.0, 5) for seed in range(12)]
    plenty = [log_mass(alphas, 2) for alphas in shapes]
    keys, places, rows = truncated_mass_table._table()
    few = np.full(4097, -1), np.empty(4096, places.dtype), np.empty((16, rows.shape[1]))
    few[0][-1] = 0
    monkeypatch.setattr(truncated_mass_table, "_table", lambda: few)
    for _ in range(2):
        assert [log_mass(alphas, 2) for alphas in shapes] == plenty
    assert 0 < few[0][-1] <= 16 < keys[-1]
