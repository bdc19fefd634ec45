"""Trials of the noise-aware studies, computed a second time: data from their random numbers, posteriors by sums."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.special import betainc, gammainc
from scipy.stats import beta, poisson

from privpost.experiments.bernstein2018 import trials
from privpost.experiments.bernstein2018.trials import Release, experiment

N = 6


def test_data_of_counts_are_multinomial():
    """θ first, then counts given θ; rows of three bits are means of theirs."""
    for name, prior, size in (("binomial", [3, 2], 1), ("bit_rows", [3, 2, 3], 3)):
        data, rng = experiment(name, prior, "paper").data(N, 4, np.random.default_rng(1)), np.random.default_rng(1)
        theta = rng.beta(3, 2, 4)
        counts = rng.multinomial(N * size, np.stack([theta, 1 - theta], axis=1)) / size
        np.testing.assert_allclose(data.theta, theta[None])
        assert np.array_equal(data.statistics, counts.T) and np.array_equal(data.exact, counts.T)
    trial = experiment("multinomial", [1, 2, 3], "paper")
    data = trial.data(N, 4, np.random.default_rng(1))
    assert data.theta.shape == data.statistics.shape == (3, 4)
    np.testing.assert_allclose(data.theta.sum(axis=0), 1)
    assert (data.statistics.sum(axis=0) == N).all()
    # Categories of one concentration are alike, but the one without a released count.
    assert len(set(experiment("multinomial", [5, 5, 5], "paper").alike)) == 1
    last = experiment("multinomial_free", [5, 5, 5], "paper").alike
    assert last[0] == last[1] != last[2] and len(set(trial.alike)) == 3
    assert trial.parameters == ("theta_1", "theta_2", "theta_3")


GRID = (np.arange(4000) + 0.5) / 4000


def weights(noisy: float, scale: float) -> np.ndarray:
    """The exact posterior of θ on a grid: binomial counts, Laplace noise, a Beta(3, 2) prior."""
    counts = np.arange(N + 1)
    law = np.array([math.comb(N, c) * GRID**c * (1 - GRID) ** (N - c) for c in counts])
    weight = np.exp(-np.abs(noisy - counts) / scale) @ law * beta.pdf(GRID, 3, 2)
    return weight / weight.sum()


@pytest.mark.parametrize("size", [1, 2])
def test_exact_posteriors_of_counts_are_sums_over_them(size):
    """Quantiles at the true θ, mean and deviation of two releases by 4,000 midpoints: 1e-6; `size` bits in a record."""
    bits = N // size
    trial = experiment("bit_rows", [3, 2, size], "paper") if size > 1 else experiment("binomial", [3, 2], "paper")
    data = trial.data(bits, 3, np.random.default_rng(2))
    values = [np.array([[1.5, -0.7, 7.0]]) / size, np.array([[3.0, 2.2, 5.1]]) / size]
    releases = [Release(values[0], 2.0 / size), Release(values[1], 0.5 / size)]
    exact = trial.exact_quantiles(data, releases, bits)
    assert exact.shape == (1, 2, 3)
    for i, release in enumerate(releases):
        mean, sd = trial.exact_moments(data, release, bits)
        for k in range(3):
            weight = weights(size * release.values[0, k], size * release.scale)
            first = weight @ GRID
            assert mean[k] == pytest.approx(first, abs=1e-6)
            assert sd[k] == pytest.approx(math.sqrt(weight @ (GRID - first) ** 2), abs=1e-6)
            cell = np.interp(data.theta[0, k], np.arange(4001) / 4000, np.append(0, np.cumsum(weight)))
            assert exact[0, i, k] == pytest.approx(cell, abs=1e-6)


def test_naive_counts_are_projected_and_their_posteriors_are_conjugate():
    """A release outside of what counts can be is changed; quantiles by the incomplete beta function."""
    trial = experiment("binomial", [3, 2], "paper")
    data = trial.data(N, 5, np.random.default_rng(3))
    noisy = np.array([2.5, 7.0, -1.0, 6.0, 0.5])
    taken, share = trial.naive(data, Release(np.stack([noisy, N - noisy])[: len(data.exact)], 1.0), N)
    ones = np.clip(noisy, 0, N)
    np.testing.assert_allclose(taken[0], ones)
    assert share == 0.4 and trial.naive_cost(0.7).epsilon == 0.7
    expected = betainc(3 + ones, 2 + N - ones, data.theta[0])
    np.testing.assert_allclose(trial.quantiles(data, np.stack([ones, N - ones])), expected[None])
    categories = experiment("multinomial", [1, 2, 3], "paper")
    counts = np.array([[1.0, 4], [2, 0], [3, 2]])
    marginals = categories.marginals(counts)
    first = np.array([1.0, 2, 3])[:, None] + counts
    np.testing.assert_allclose(marginals, np.stack([first, 12 - first]))
    # Of two trials one has a count below 0.
    released = Release(np.array([[1.0, 7.0], [2.0, -1.0], [3.0, 0.0]]), 1.0)
    assert categories.naive(data, released, N)[1] == 0.5


@pytest.mark.parametrize("variant", ["paper", "corrected"])
@pytest.mark.parametrize("at_once", [2, 1000])
def test_data_of_unbounded_records_are_redacted(variant, at_once, monkeypatch):
    """Bounds are 2.5 % and 97.5 % quantiles, given the true θ or of a record; sums by a loop over records."""
    monkeypatch.setattr(trials, "RECORDS", at_once * N)
    trial = experiment("exponential", [8, 2], variant)
    data = trial.data(N, 5, np.random.default_rng(4))
    theta = data.theta[0]
    if variant == "paper":
        low, high = -np.log(0.975) / theta, -np.log(0.025) / theta
    else:
        # A Lomax law: P(X > x) = (1 + x/2)⁻⁸.
        low, high = (2 * (tail ** (-1 / 8) - 1) * np.ones(5) for tail in (0.975, 0.025))
    np.testing.assert_allclose(data.low, low)
    np.testing.assert_allclose(data.high, high)
    rng = np.random.default_rng(4)
    np.testing.assert_allclose(theta, trial.model.sample(np.tile(trial.model.prior, (5, 1)), rng))
    parts = [trial.model.sample_data(theta[i : i + at_once], N, rng) for i in range(0, 5, at_once)]
    records = np.concatenate(parts)
    np.testing.assert_allclose(data.statistics, [records.sum(axis=1), np.full(5, N)])
    inside = (records >= low[:, None]) & (records <= high[:, None])
    np.testing.assert_allclose(data.exact, (records * inside).sum(axis=1)[None])
    assert trial.uses_private_metadata == (variant == "paper")
    width = np.maximum(high, high - low)
    np.testing.assert_allclose(trial.mechanism(N, 0.5, data).scale, width / 0.5)
    if variant == "corrected":
        assert trial.mechanism(N, 0.5).scale == pytest.approx(high[0] / 0.5)
    expected = gammainc(8 + N, (2 + records.sum(axis=1)) * theta)
    np.testing.assert_allclose(trial.quantiles(data, data.statistics), expected[None])
    np.testing.assert_allclose(trial.public_bounds, [2 * (tail ** (-1 / 8) - 1) for tail in (0.975, 0.025)])


def test_the_naive_sum_of_all_records_has_the_release_s_noise():
    """No finite ε covers it; it is clipped where no records could have it."""
    trial = experiment("exponential", [8, 2], "corrected")
    data = trial.data(N, 4, np.random.default_rng(5))
    noise = np.array([0.5, -100.0, 0.0, -0.01])
    taken, share = trial.naive(data, Release(data.exact + noise, 1.0), N)
    np.testing.assert_allclose(taken[0], np.maximum(data.statistics[0] + noise, 0))
    assert np.array_equal(taken[1], data.statistics[1]) and share == 0.25
    assert trial.naive_cost(0.5).epsilon == math.inf and trial.naive_cost(0.5).notion == "pure"


def test_quantiles_of_two_releases_are_those_of_their_posteriors():
    """A normal law of the redacted sum, as in the paper, and Laplace noise, on grids of both: 2e-4 of quantiles."""
    trial = experiment("poisson", [30, 10], "corrected")
    data = trial.data(N, 2, np.random.default_rng(6))
    releases = [Release(np.array([[15.0, -4.0]]), 3.0), Release(np.array([[19.0, 17.0]]), 1.0)]
    exact = trial.exact_quantiles(data, releases, N)
    assert exact.shape == (1, 2, 2)
    x, theta, sums = np.arange(40), np.linspace(0.3, 9, 1500)[:, None], np.linspace(-60, 120, 1800)
    law = poisson.pmf(x, theta)
    for i, k in np.ndindex(2, 2):
        value = np.where((x >= data.low[k]) & (x <= data.high[k]), x, 0)
        mean = law @ value
        variance = law @ value**2 - mean**2
        log_normal = -((sums - N * mean[:, None]) ** 2) / (2 * N * variance[:, None]) - np.log(variance[:, None]) / 2
        noise = np.exp(-np.abs(releases[i].values[0, k] - sums) / releases[i].scale)
        weight = (np.exp(log_normal) @ noise) * theta[:, 0] ** 29 * np.exp(-10 * theta[:, 0])
        moments = np.average(theta[:, 0], weights=weight), np.average(theta[:, 0] ** 2, weights=weight)
        mean, sd = trial.exact_moments(data, releases[i], N)
        assert (mean[k], sd[k]) == pytest.approx((moments[0], math.sqrt(moments[1] - moments[0] ** 2)), rel=1e-3)
        below = np.interp(data.theta[0, k], theta[:, 0], np.cumsum(weight) - weight / 2) / weight.sum()
        assert exact[0, i, k] == pytest.approx(below, abs=2e-4)


def test_priors_are_refused_just_outside_of_their_range():
    """As many numbers as the model has fields, and as many of them positive as it says."""
    for name, prior in (("binomial", [0.01, 1]), ("normal", [-5, 0.1]), ("bit_rows", [1, 1]), ("multinomial", [1, 1])):
        assert experiment(name, prior, "paper").parameters
    for name, prior in (("binomial", [1, 1, 1]), ("bit_rows", [1, 1, 2, 1]), ("multinomial", [1])):
        with pytest.raises(trials.SettingError, match=f"but {name} needs"):
            experiment(name, prior, "paper")
