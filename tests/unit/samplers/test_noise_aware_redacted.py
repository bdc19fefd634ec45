"""Tabulated moments of redacted sums against the family's own, and the compiled sweep against the array one."""

import numpy as np
import pytest
from scipy import stats

from privpost.experiments.bernstein2018.trials import experiment
from privpost.models import GammaExponential, GammaPareto, NormalKnownVariance
from privpost.samplers.noise_aware import redacted as noise_aware_redacted
from privpost.samplers.noise_aware.gibbs import noise_variance, random_sum
from privpost.samplers.noise_aware.redacted import SEGMENTS, Table, redacted_kernel, sum_moments


@pytest.mark.parametrize("segments", SEGMENTS)
@pytest.mark.parametrize(
    "name, prior, variant",
    [
        ("exponential", [8, 2], "corrected"),
        # Each trial has its own multiple of an interval.
        ("exponential", [8, 2], "paper"),
        ("normal", [0, 0.1, 1], "corrected"),
        ("poisson", [30, 10], "corrected"),
        ("geometric", [10, 20], "corrected"),
    ],
)
def test_tabulated_moments_are_the_familys(name, prior, variant, segments):
    trial, rng, n, size = experiment(name, prior, variant), np.random.default_rng(1), 1000, 100
    data = trial.data(n, size, rng)
    arguments = trial.model, n, (data.low, data.high), segments
    theta, (found, exact) = (
        trial.model.sample(np.broadcast_to(trial.model.prior, (size, 2)), rng),
        np.empty((2, 4, size)),
    )
    assert Table.of(*arguments).write(theta, found)
    sum_moments(*arguments, theta, exact)
    # What the table is accepted for, and as much again for θ between the places that were looked at.
    assert np.all(np.abs(found - exact) < 2e-6 * (np.abs(exact) + np.median(np.abs(exact), axis=1, keepdims=True)))


@pytest.mark.parametrize("name, prior", [("exponential", [8, 2]), ("normal", [0, 0.1, 1])])
def test_what_lies_outside_the_interval_is_both_outer_segments(name, prior):
    trial, rng, n, size = experiment(name, prior, "paper"), np.random.default_rng(2), 1000, 100
    data, found = trial.data(n, size, rng), np.empty((4, size))
    low, high, theta = data.low, data.high, data.theta[0]
    sum_moments(trial.model, n, (low, high), trial.segments, theta, found)
    ends = np.asarray(trial.model.record_support)
    parts = [random_sum(n, trial.model.segment_moments(theta, *pair)) for pair in ((ends[:1], low), (high, ends[1:]))]
    # Differences of sums of some 1e3: rounding, of values of 1 or more.
    assert np.allclose(found[2:], np.sum(parts, axis=0), rtol=1e-9)


def test_beyond_the_table_and_under_a_vague_prior_the_family_computes_the_moments():
    table = Table.of(GammaExponential(8, 2), 50, (np.full(3, 0.1), np.full(3, 1.0)), "multinomial")
    assert not table.write(np.array([4.0, 5.0, 1e4]), np.empty((4, 3)))
    assert Table.of(NormalKnownVariance(0, 1e12, 1), 50, (np.full(3, -1.0), np.full(3, 1.0)), "multinomial") is None


def test_intervals_that_are_no_multiples_of_one_have_no_table():
    low, high = np.array([0.1, 0.2]), np.array([1.0, 2.0])
    assert Table.of(GammaExponential(8, 2), 50, (low, high), "independent") is not None
    assert Table.of(GammaExponential(8, 2), 50, (low, high + np.array([0.0, 1e-6])), "independent") is None
    assert Table.of(GammaExponential(8, 2), 50, (low, np.full(2, np.inf)), "independent") is None
    assert Table.of(NormalKnownVariance(0, 0.1, 1), 50, (low, high), "independent") is None
    # Multiples of x are none of the statistic ln x.
    assert Table.of(GammaPareto(8, 2), 50, (10 * low, 10 * high), "independent") is None


def test_a_coarse_table_is_refused(monkeypatch):
    monkeypatch.setattr(noise_aware_redacted, "NODES", 24)
    assert Table.of(GammaExponential(8, 2), 50, (np.full(3, 0.1), np.full(3, 1.0)), "independent") is None


def test_a_sweep_draws_the_noise_variance_given_the_redacted_sum():
    # A KS test at 1e-4 of 4,000 draws.
    size, rng = 4000, np.random.default_rng(3)
    kernel = redacted_kernel(GammaExponential(8, 2), np.zeros(size), 50, 2.0, 0.1, 1.0)
    state = kernel.step(kernel.init(rng), rng)[0]
    assert stats.ks_2samp(state.variance, noise_variance(-state.statistic, 2.0, rng)).pvalue > 1e-4
