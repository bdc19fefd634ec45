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
