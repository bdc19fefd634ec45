"""Walkers on second moments: against importance sampling from the prior; the lattice's sensitivity over its corners."""

from __future__ import annotations

import itertools
from functools import cache

import numpy as np
import pytest

from privpost.evaluation import diagnostics
from privpost.mechanisms.noise.moments_lattice import SHIFT, LatticeMoments
from privpost.models import NormalRegression
from privpost.samplers.noise_aware import draws as noise_aware_draws
from privpost.samplers.noise_aware import moments as noise_aware_moments
from privpost.samplers.noise_aware.regression import Noise

N, MODEL = 20, NormalRegression(2, prior_precision=1.0, shape=3.0, rate=1.0, degrees=4.0, feature_scale=2.0)
# Second moments of (1, x, y) of 20 records, but for the first, n; noise about as large as their spread.
MOMENTS, SCALE = np.array([20.0, 4.0, 11.0, 12.0, 6.5, 14.0]), 3.0


@cache
def importance(kind: str, size=300_000):
    """θ of the prior and weights, from simulated records: x ~ N(μ, v) and y ~ N(w0 + w1 x, σ²), nothing integrated out.

    Given the constant, records of covariance V ~ InverseWishart(ν, ψ I) have v ~ ψ/χ²(ν) and μ ~ N(0, v/ψ).
    """
    rng = np.random.default_rng(5)
    v = MODEL.feature_scale / rng.chisquare(MODEL.degrees, size)
    mu = rng.standard_normal(size) * np.sqrt(v / MODEL.feature_scale)
    variance = MODEL.rate / rng.standard_gamma(MODEL.shape, size)
    w = rng.standard_normal((2, size)) * np.sqrt(variance / MODEL.prior_precision)
    x = mu + np.sqrt(v) * rng.standard_normal((N, size))
    y = w[0] + w[1] * x + np.sqrt(variance) * rng.standard_normal((N, size))
    sums = np.stack([x.sum(0), y.sum(0), (x * x).sum(0), (x * y).sum(0), (y * y).sum(0)])
    distance = np.abs(sums - MOMENTS[1:, None]) / SCALE
    log_weights = -(distance if kind == "laplace" else distance**2 / 2).sum(axis=0)
    return np.column_stack([w.T, variance]), np.exp(log_weights - log_weights.max())


@pytest.mark.parametrize("kind", ["laplace", "gaussian"])
def test_the_walkers_have_the_posterior_of_importance_sampling(kind):
    theta, weights = importance(kind)
    noise = Noise(kind, np.append(1e-6, np.full(5, SCALE)))
    chains = noise_aware_draws.regression(MODEL, MOMENTS, N, noise, 2000, np.random.default_rng(6), constant=True)
    assessed = diagnostics.assess(chains)
    assert assessed.rhat_max < 1.02
    worth = weights.sum() ** 2 / (weights**2).sum()
    assert worth > 1000
    drawn = chains.reshape(-1, 3)
    for k in range(3):
        order = np.argsort(theta[:, k])
        cumulative = np.cumsum(weights[order]) / weights.sum()
        for share in (0.05, 0.25, 0.5, 0.75, 0.95):
            at = theta[order, k][np.searchsorted(cumulative, share)]
            # Five standard errors of both shares.
            limit = 5 * np.sqrt(share * (1 - share) * (1 / worth + 1 / assessed.ess_min))
            assert abs((drawn[:, k] <= at).mean() - share) < limit


def test_noise_that_is_told_wrongly_is_seen():
    """The test above fails by 2 to 5 of its limits with noise of a third of the scale."""
    theta, weights = importance("gaussian")
    noise = Noise("gaussian", np.append(1e-6, np.full(5, SCALE / 3)))
    chains = noise_aware_draws.regression(MODEL, MOMENTS, N, noise, 2000, np.random.default_rng(6), constant=True)
    spread = np.sqrt(np.average((theta - np.average(theta, axis=0, weights=weights)) ** 2, axis=0, weights=weights))
    assert np.min(chains.reshape(-1, 3).std(axis=0) / spread) < 0.85


def test_walkers_keep_the_constant():
    sampler = noise_aware_moments.Moments(MODEL, MOMENTS, N, Noise("laplace", np.full(6, SCALE)), constant=True)
    state = sampler.init(np.random.default_rng(1))
    for _ in range(3):
        state, refused = sampler.step(state, np.random.default_rng(2))
    gram = sampler.gram(state.points)
    assert np.all(gram[..., 0, 0] == N)
    assert np.linalg.eigvalsh(gram).min() > 0
    assert 0 < refused < state.logs.size
    with pytest.raises(ValueError, match="n is 2; second moments of 3 variables need at least as many records"):
        noise_aware_moments.Moments(MODEL, MOMENTS, 2, Noise("laplace", np.full(6, SCALE)))


@pytest.mark.parametrize("law", ["laplace", "gaussian"])
@pytest.mark.parametrize("variables", [1, 2, 3, 4])
def test_no_neighbours_are_farther_apart_than_the_lattice_says(law, variables):
    """Corners, zeros and half-way values of the box, and random records; attained within a fifth."""
    mechanism, rng = LatticeMoments(9, variables, 1.0, law), np.random.default_rng(variables)
    corners = 2**SHIFT * np.array(list(itertools.product([-1.0, -0.5, 0.0, 0.5, 1.0], repeat=variables)))
    pairs = rng.integers(-(2**SHIFT), 2**SHIFT + 1, (2, 20_000, variables)).astype(float)
    sums = [np.stack([mechanism.sufficient_statistics(record[None]) for record in corners])] * 2
    change = np.abs(sums[0][:, None] - sums[1][None]).reshape(-1, sums[0].shape[1])
    one = np.concatenate([np.full((2, 20_000, 1), 2.0**SHIFT), pairs], axis=2)
    i, j = mechanism.places
    change = np.concatenate([change, np.abs(np.diff(one[..., i] * one[..., j], axis=0)[0])])
    largest = (change.sum(axis=1) if law == "laplace" else np.sqrt((change**2).sum(axis=1))).max()
    assert 0.8 * mechanism.sensitivity <= largest <= mechanism.sensitivity
    # Noise without a spread adds nothing.
    still = LatticeMoments(9, variables, 1e20 if law == "laplace" else 1e-20, law)
    assert still.perturb(sums[0], rng) == pytest.approx(sums[0], abs=1e-6)
