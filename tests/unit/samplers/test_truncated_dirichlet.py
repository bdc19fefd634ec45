"""Exact draws from the truncated Dirichlet distribution.

Distribution tests have fixed seeds; each p-value must exceed 1e-4, 30 of them: a joint false-alarm rate of 0.3 %.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.stats import ks_1samp, ks_2samp

from privpost.distributions import truncated_beta
from privpost.samplers.truncated_dirichlet import exact as truncated_dirichlet

DRAWS = 40_000


@pytest.mark.parametrize(
    ("alpha", "low"),
    [
        ((1.2, 3, 2, 1), 0.08),
        ((1, 1, 1, 1), 0.1),
        ((5, 1, 2.5), 0.15),
        ((1.0, 40), 0.06),
        ((1, 1, 1.001), 0.2),
        ((2.0, 2.0, 2.0), 0.0),
    ],
)
def test_draws_agree_with_rejection_of_plain_dirichlet_draws(alpha, low) -> None:
    rng = np.random.default_rng(21)
    found = truncated_dirichlet.sample(np.tile(alpha, (DRAWS, 1)), low, rng)
    plain = rng.dirichlet(alpha, size=600_000)
    kept = plain[(plain >= low).all(axis=1)]
    assert len(kept) > 10_000
    for level in range(len(alpha)):
        assert ks_2samp(found[:, level], kept[:DRAWS, level]).pvalue > 1e-4
    # A product too: marginals alone say nothing about dependence.
    assert ks_2samp(found[:, 0] * found[:, 1], kept[:DRAWS, 0] * kept[:DRAWS, 1]).pvalue > 1e-4


@pytest.mark.parametrize("truncation", [1.01, 1.05, 1.1])
def test_draws_where_little_of_the_simplex_is_left(truncation) -> None:
    """What is left is a small simplex, a + (1 − Ka) y: rejection of flat y, whose density varies little there."""
    alpha, low = np.array([31.0, 30, 25, 1.5, 1]), 1 / (5 * truncation)
    rng = np.random.default_rng(27)
    found, variates = truncated_dirichlet.sample_counted(np.tile(alpha, (DRAWS, 1)), low, rng)
    assert found.min() >= low * (1 - 1e-12)
    assert variates < 30 * found.size
    flat = low + (1 - 5 * low) * rng.dirichlet(np.ones(5), size=400_000)
    log_density = np.log(flat) @ (alpha - 1)
    kept = flat[np.log(rng.random(len(flat))) < log_density - _largest(alpha, low)]
    assert len(kept) > 2_000
    for level in range(len(alpha)):
        assert ks_2samp(found[:, level], kept[:, level]).pvalue > 1e-4
    assert ks_2samp(found[:, 0] * found[:, 1], kept[:, 0] * kept[:, 1]).pvalue > 1e-4


def _largest(alpha, low) -> float:
    """The largest Σ (α − 1) ln x, at x = max(low, (α − 1)/c) with c such that they sum to 1."""
    rate = brentq(lambda c: np.maximum(low, (alpha - 1) / c).sum() - 1, 1, 1e6)
    return float(np.log(np.maximum(low, (alpha - 1) / rate)) @ (alpha - 1))


@pytest.mark.parametrize("alpha", [(20_000, 1, 1, 1), (20_000,) * 4, (400,) * 150, (1.5,) * 150, (1e7, 9.9e6, 1e5)])
@pytest.mark.parametrize("truncation", [1.0001, 1.01, 1.3, 2.0])
def test_draws_end_for_every_truncation(alpha, truncation) -> None:
    """At most 200 variates a level, for a few rows: with too small a rate the draw does not end."""
    rows = np.tile(np.array(alpha, float), (5, 1))
    draws, variates = truncated_dirichlet.sample_counted(rows, 1 / (truncation * len(alpha)), np.random.default_rng(28))
    assert np.allclose(draws.sum(axis=1), 1, rtol=0, atol=1e-12)
    assert variates < 200 * rows.size


@pytest.mark.parametrize(("alpha", "low"), [((1.0, 300.0), 0.05), ((30.0, 2.0), 0.4), ((1.5, 1.5), 0.01)])
def test_two_levels_follow_the_truncated_beta_distribution(alpha, low) -> None:
    found = truncated_dirichlet.sample(np.tile(alpha, (DRAWS, 1)), low, np.random.default_rng(22))[:, 0]

    def cdf(x):
        low_mass = truncated_beta.log_mass(np.array(alpha), low, np.clip(x, low + 1e-12, 1 - low))
        return np.exp(low_mass - truncated_beta.log_mass(np.array(alpha), low, 1 - low))

    assert ks_1samp(found, cdf).pvalue > 1e-4


@pytest.mark.parametrize("total", [30.0, 2_000.0, 60_000.0])
def test_many_levels_where_plain_rejection_fails(total) -> None:
    """151 levels with a long tail, against a Gibbs sampler of pairs, whose conditionals are truncated betas."""
    n_levels, low = 151, 1 / 1510
    shares = np.arange(1, n_levels + 1) ** -1.2
    alpha = 1 + np.floor(10 * total * shares / shares.sum()) / 10
    found = truncated_dirichlet.sample(np.tile(alpha, (500, 1)), low, np.random.default_rng(23))
    assert found.min() >= low * (1 - 1e-12)
    assert np.allclose(found.sum(axis=1), 1, rtol=0, atol=1e-12)
    # A start from the tested draws has their law; a sweep must leave that law unchanged. Pairs of levels exchange
    # mass at a fixed sum s: x_i / s is Beta(α_i, α_j) on [low/s, 1 − low/s].
    rng = np.random.default_rng(24)
    moved = found.copy()
    for _ in range(3):
        order = rng.permutation(n_levels)
        for i, j in zip(order[:-1:2], order[1::2], strict=True):
            mass = moved[:, i] + moved[:, j]
            edge = np.minimum(low / mass, 0.5 - 1e-9)
            part = truncated_beta.sample(np.broadcast_to(alpha[[i, j]], (500, 2)), edge, 1 - edge, rng)
            moved[:, i], moved[:, j] = part * mass, (1 - part) * mass
    for level in (0, 1, 20, 150):
        assert ks_2samp(found[:, level], moved[:, level]).pvalue > 1e-4
    log_density = [(np.log(x) * (alpha - 1)).sum(axis=1) for x in (found, moved)]
    assert ks_2samp(*log_density).pvalue > 1e-4


def test_rows_and_bounds_may_differ() -> None:
    alpha = np.array([[[1.0, 5.0, 2.0], [1.0, 1.0, 1.0]], [[9.0, 1.0, 1.0], [50.0, 40.0, 1.0]]])
    low = np.array([[0.0, 0.3], [0.05, 0.01]])
    draws = truncated_dirichlet.sample(alpha, low, np.random.default_rng(25))
    assert draws.shape == alpha.shape
    assert np.all(draws >= low[..., None] - 1e-15)
    assert np.allclose(draws.sum(axis=-1), 1, rtol=0, atol=1e-12)


def test_variates_are_counted() -> None:
    rng = np.random.default_rng(26)
    _, flat = truncated_dirichlet.sample_counted(np.ones((100, 4)), 0.1, rng)
    assert flat == 400
    _, taken = truncated_dirichlet.sample_counted(np.tile([1.2, 3, 2, 1], (1000, 1)), 0.08, rng)
    # Every accepted proposal takes one variate for each level but the largest, and one to be accepted.
    assert 4 * 1000 <= taken < 4 * 1000 * 20


@pytest.mark.parametrize(
    ("alpha", "low", "message"),
    [
        ([0.5, 1.0], 0.1, "alpha must be finite and >= 1"),
        ([np.inf, 1.0], 0.1, "alpha must be finite"),
        ([1.0], 0.1, "at least 2 levels"),
        ([1.0, 1.0], 0.5, r"low must lie in \[0, 1/2\)"),
        ([1.0, 1.0], -0.1, "low must lie"),
    ],
)
def test_settings_out_of_range_are_refused(alpha, low, message) -> None:
    with pytest.raises(ValueError, match=message):
        truncated_dirichlet.sample(alpha, low, np.random.default_rng(1))
