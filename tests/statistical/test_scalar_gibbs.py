"""The scalar loop that the benchmark compares with draws from the same laws as the batched samplers."""

import sys
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from privpost.models import BetaBernoulli, DirichletCategorical, GammaExponential
from privpost.samplers.noise_aware.gibbs import State, bounded_kernel
from privpost.samplers.noise_aware.redacted import redacted_kernel

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
import scalar_gibbs

SWEEPS = 1500
# Two-sample KS tests at 1e-4; 8 are made, so a false alarm in 1000 seeds, and none at the fixed ones.
ALARM = 1e-4


def same_law(first, second):
    return stats.ks_2samp(first, second).pvalue > ALARM


def test_binomial_sweeps_agree():
    theta, variance, y, n, scale = 0.3, 150.0, 341.0, 1000, 10.0
    rng = np.random.RandomState(1)
    loop = np.array([scalar_gibbs.binomial_sweep(theta, variance, y, n, scale, (10, 10), rng) for _ in range(SWEEPS)])
    kernel = bounded_kernel(BetaBernoulli(10, 10), np.full(SWEEPS, y)[None], n, scale)
    start = State(np.full(SWEEPS, theta), np.zeros((1, SWEEPS)), np.full((1, SWEEPS), variance))
    batch, _ = kernel.step(start, np.random.default_rng(2))
    assert same_law(loop[:, 0], batch.theta)
    assert same_law(loop[:, 1], batch.variance[0])


def test_multinomial_sweeps_agree():
    theta, variance = np.array([0.2, 0.3, 0.5]), np.array([300.0, 500.0, 800.0])
    y, n, scale = np.array([230.0, 280.0, 520.0]), 1000, 20.0
    rng = np.random.RandomState(3)
    prior = np.full(3, 5.0)
    loop = [scalar_gibbs.multinomial_sweep(theta, variance, y, n, scale, prior, rng) for _ in range(SWEEPS)]
    kernel = bounded_kernel(DirichletCategorical(prior), np.repeat(y[:, None], SWEEPS, axis=1), n, scale)
    columns = (np.repeat(value[:, None], SWEEPS, axis=1) for value in (theta, n * theta, variance))
    batch, _ = kernel.step(State(*columns), np.random.default_rng(4))
    for j in range(3):
        assert same_law([sweep[0][j] for sweep in loop], batch.theta[j])
    assert same_law([sweep[1][0] for sweep in loop], batch.variance[0])


def test_exponential_sweeps_have_one_stationary_law():
    # The batched sampler cuts the cycle elsewhere, so that chains are compared: 200 of them after 50 sweeps, at an ε
    # at which they forget their start in ten.
    model, n, low, high = GammaExponential(8, 2), 100, 0.0063, 1.17
    y, scale, chains, sweeps = 24.0, 1.2, 200, 50
    kernel = redacted_kernel(model, np.full(chains, y), n, scale, low, high, "independent")
    rng = np.random.default_rng(5)
    state = kernel.init(rng)
    for _ in range(sweeps):
        state, _ = kernel.step(state, rng)
    scalar_rng, ends = np.random.RandomState(6), []
    for chain in zip(*kernel.init(rng)[::2], strict=True):
        stand = chain
        for _ in range(sweeps):
            stand = scalar_gibbs.exponential_sweep(*stand, y, n, scale, (8, 2), low, high, scalar_rng)
        ends.append(stand)
    assert same_law([theta for theta, _ in ends], state.theta)
    assert same_law([variance for _, variance in ends], state.variance)


@pytest.mark.parametrize("ends", [(0.0, 0.5), (0.01, 1.1), (1.1, np.inf)])
def test_autograd_gives_the_same_moments(ends):
    pytest.importorskip("autograd")
    segment = scalar_gibbs.autograd_segment()
    for theta in (0.7, 3.0, 9.0):
        # 1e-9: the same formulas, differentiated by other means; no segment is narrow.
        assert np.allclose(segment(theta, *ends), scalar_gibbs.dual_segment(theta, *ends), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("ends", [(0.0, 0.01), (0.01, 1.1), (1.1, np.inf)])
def test_dual_numbers_give_the_closed_moments(ends):
    theta = np.array([0.7, 3.0, 9.0])
    closed = GammaExponential(8, 2).segment_moments(theta, *(np.full(3, end) for end in ends))
    dual = np.array([scalar_gibbs.dual_segment(value, *ends) for value in theta]).T
    # 1e-7: dual numbers cancel on the narrow segment, where the closed form has a series.
    assert np.allclose(np.array(closed), dual, rtol=1e-7, atol=1e-9)
