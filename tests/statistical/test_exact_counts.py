"""The exact law of a field's count given noisy ones, against enumeration and convolution.

Every test has a fixed seed.
"""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy.special import gammaln

from privpost.samplers.noise_aware import exact_counts


def compositions(n: int, n_levels: int) -> np.ndarray:
    """All counts of levels that sum to n."""
    heads = itertools.product(range(n + 1), repeat=n_levels - 1)
    return np.array([(*head, n - sum(head)) for head in heads if sum(head) <= n])


def first_count_law(noisy, n: int, scale: float, concentration: float) -> np.ndarray:
    """p(C_1 | Ĉ) for Dirichlet-multinomial counts, by enumeration."""
    counts = compositions(n, len(noisy))
    logs = (gammaln(counts + concentration) - gammaln(counts + 1)).sum(axis=1)
    logs -= np.abs(noisy - counts).sum(axis=1) / scale
    weights = np.bincount(counts[:, 0], np.exp(logs - logs.max()), n + 1)
    return weights / weights.sum()


NOISY = np.array([9.3, -2.1, 0.4, 4.8])


@pytest.mark.parametrize("scale", [0.3, 2.0, 50.0])
def test_the_oracle_is_the_enumeration(scale) -> None:
    found = exact_counts.count_probabilities(np.stack([NOISY, NOISY[::-1]]), 8, scale)
    # Sums of a few hundred positive terms: rounding of 1e-14 at most.
    assert np.allclose(found[0], first_count_law(NOISY, 8, scale, 1.0), rtol=1e-11, atol=1e-300)
    assert np.allclose(found[1], first_count_law(NOISY[::-1], 8, scale, 1.0), rtol=1e-11, atol=1e-300)


def test_the_oracle_convolves_long_laws_exactly() -> None:
    """Releases between, on, below and above the counts, each once the one that is convolved with last."""
    n, noisy = 60, np.array([7.4, 30.0, -3.2, 71.5, 0.6])
    for last in range(5):
        order, scale = np.roll(noisy, last), 3.0
        weights = np.exp(-np.abs(order[:, None] - np.arange(n + 1)) / scale)
        others = weights[1]
        for weight in weights[2:]:
            others = np.convolve(others, weight)[: n + 1]
        law = weights[0] * others[::-1]
        found = exact_counts.count_probabilities(order[None], n, scale)[0]
        assert np.allclose(found, law / law.sum(), rtol=1e-11, atol=0)


def test_the_oracle_s_distribution_function_is_that_of_its_mixture() -> None:
    law = exact_counts.count_probabilities(NOISY[None], 8, 2.0)
    rng = np.random.default_rng(1)
    counts = rng.choice(9, size=200_000, p=law[0])
    draws = rng.beta(1 + counts, 3 + 8 - counts)
    for theta in (0.1, 0.4, 0.8):
        share, cdf = np.mean(draws <= theta), exact_counts.probability_cdf(law, np.array([theta]), 4)[0]
        # 4.5 standard errors: 7e-6 per comparison.
        assert abs(share - cdf) < 4.5 * math.sqrt(cdf * (1 - cdf) / len(draws))


@pytest.mark.parametrize("concentration", [1.0, 0.4])
@pytest.mark.parametrize("scale", [0.7, 3.0])
def test_counts_of_a_class_beside_which_records_may_be_elsewhere_have_the_law_of_an_enumeration(
    concentration, scale
) -> None:
    """Two fields of two and three levels, any number of the 8 records in the class, all equally likely."""
    n, noisy, fields, law = 8, np.array([3.2, 1.1, -0.6, 2.5, 2.9]), (slice(0, 2), slice(2, 5)), {}
    for total in range(n + 1):
        for parts in itertools.product(*(compositions(total, f.stop - f.start) for f in fields)):
            counts = np.concatenate(parts)
            logs = sum(
                (gammaln(own + concentration) - gammaln(own + 1) - math.lgamma(concentration)).sum()
                + math.lgamma(total + 1)
                + math.lgamma(len(own) * concentration)
                - math.lgamma(len(own) * concentration + total)
                for own in parts
            )
            law[tuple(counts)] = math.exp(logs - np.abs(noisy - counts).sum() / scale)
    given = noisy[None], (2, 3), concentration, n, scale, 60_000
    drawn = exact_counts.class_counts(*given, np.random.default_rng(2), elsewhere=True)[:, 0]
    seen, norm = {}, sum(law.values())
    for row in map(tuple, drawn.tolist()):
        seen[row] = seen.get(row, 0) + 1
    assert set(seen) <= set(law)
    # Over 60 of the likeliest counts and all totals, 5 standard errors: 6e-7 per comparison.
    likeliest = sorted(law, key=law.__getitem__)[-60:]
    shares = {row: (seen.get(row, 0), law[row] / norm) for row in likeliest}
    totals = {t: [row for row in law if sum(row[:2]) == t] for t in range(n + 1)}
    shares |= {t: (sum(seen.get(r, 0) for r in of), sum(law[r] for r in of) / norm) for t, of in totals.items()}
    for number, p in shares.values():
        assert abs(number / len(drawn) - p) < 5 * math.sqrt(p * (1 - p) / len(drawn)) + 1e-12
