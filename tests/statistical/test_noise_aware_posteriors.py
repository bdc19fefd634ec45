"""Whole runs of the noise-aware samplers: against the exact posterior, and calibrated for every model."""

import numpy as np
import pytest

from privpost import discovery
from privpost.evaluation.calibration import ks_p_value, ks_statistic
from privpost.evaluation.diagnostics import diagnose
from privpost.experiments.bernstein2018.calibration.study import gibbs_quantiles
from privpost.experiments.bernstein2018.trials import Counts, RedactedSums, Release, experiment
from privpost.experiments.noise_aware.rivals.approximation import parameter_grid, stationary_density
from privpost.models import BetaBernoulli
from privpost.models.conjugate.univariate import UnivariateFamily
from privpost.samplers.noise_aware import gibbs as noise_aware_gibbs
from privpost.samplers.noise_aware.exact import posterior_density
from privpost.samplers.noise_aware.gibbs import bounded_kernel, run

# KS tests at 1e-4; about 10 are made, so a false alarm in 1000 seeds, and none at the fixed ones.
ALARM = 1e-4


def moments_of_runs(y, n, epsilon, chains=400, draws=800):
    """Mean and second moment of Gibbs draws with their standard errors over independent chains."""
    parts = []
    kernel = bounded_kernel(BetaBernoulli(10, 10), np.full(chains, y)[None], n, 1 / epsilon)
    run(kernel, np.random.default_rng(n), 600, draws, lambda theta: parts.append(theta.copy()))
    draws = np.concatenate(parts)
    values = np.stack([draws.mean(axis=0), (draws**2).mean(axis=0)])
    return values.mean(axis=1), values.std(axis=1) / np.sqrt(chains)


@pytest.mark.parametrize("n, epsilon, y", [(100, 0.1, 61.0), (1000, 0.1, 420.0), (100, 1.0, 64.5), (5, 1.0, 8.0)])
def test_gibbs_has_the_moments_of_its_stationary_law_and_nearly_of_the_exact_posterior(n, epsilon, y):
    theta, weights = parameter_grid((10, 10), y, n, 1 / epsilon, 200)
    exact = posterior_density((10, 10), np.array([y]), theta, n, 1 / epsilon)[0]
    law = stationary_density((10, 10), y, n, 1 / epsilon, theta, weights, 200)
    assert weights @ exact == pytest.approx(1, abs=1e-6)
    found, error = moments_of_runs(y, n, epsilon)
    for power, (value, sem) in enumerate(zip(found, error, strict=True), start=1):
        # 5 standard errors of 400 independent chains; 2e-4 where n is so small that the chain's augmented conditionals
        # are incompatible with one another.
        assert value == pytest.approx(weights @ (law * theta**power), abs=5 * sem + 2e-4)
    distance = weights @ np.abs(exact - law) / 2
    # The approximation's error at these n: 4 % for five records, 0.5 % from a hundred on.
    assert distance < (0.04 if n == 5 else 0.005)
    if n == 5:
        assert distance > 0.005


def released(trial, data, n, epsilon, rng):
    mechanism = trial.mechanism(n, epsilon, data)
    return Release(mechanism.perturb(data.exact.T, rng).T, mechanism.scale)


def calibration(trial, n, epsilon, size=600, burn_in=300, draws=700, seed=1):
    rng = np.random.default_rng(seed)
    data = trial.data(n, size, rng)
    release = released(trial, data, n, epsilon, rng)
    gibbs, rejected, _ = gibbs_quantiles(trial, data, release, n, burn_in, draws, rng)
    statistics, _ = trial.naive(data, release, n)
    return gibbs, trial.quantiles(data, statistics), rejected


def every_trial():
    yield experiment("binomial", [10, 10], "paper")
    yield experiment("multinomial", [5, 5, 5], "paper")
    for model in discovery.models().values():
        if issubclass(model, UnivariateFamily):
            yield RedactedSums(model.examples()[0], "corrected")


@pytest.mark.parametrize("trial", list(every_trial()), ids=lambda trial: type(trial.model).__name__)
def test_gibbs_is_calibrated_where_naive_is_not(trial):
    # n and ε at which the noise is as large as the sampling error, and the chains mix within tens of sweeps.
    gibbs, naive, rejected = calibration(trial, 100, 0.1 if isinstance(trial, Counts) else 0.3)
    assert np.all(ks_p_value(ks_statistic(gibbs), gibbs.shape[-1]) > ALARM)
    assert np.all(ks_p_value(ks_statistic(naive), gibbs.shape[-1]) < ALARM)
    assert 0 <= rejected < 0.1


@pytest.mark.parametrize("epsilon", [0.1, 1.0])
def test_the_normal_model_of_a_redacted_sum_is_calibrated_where_chains_are_stuck(epsilon):
    # n = 10^4: the posterior without a chain. One release in ten supports two values of θ, so chains from the prior can
    # stay at the wrong one: what is left of miscalibration at this n is theirs, not the approximation's.
    trial, n, size = experiment("exponential", [8, 2], "corrected"), 10_000, 4000
    rng = np.random.default_rng(41)
    data = trial.data(n, size, rng)
    release = released(trial, data, n, epsilon, rng)
    quantiles = trial.exact_quantiles(data, [release], n)[0, 0]
    assert ks_p_value(ks_statistic(quantiles), size) > ALARM
    posterior = trial._posterior(data, release, n)
    density = posterior.mass / posterior.width
    density /= density.max(axis=1, keepdims=True)
    middle = density[:, 1:-1]
    modes = ((middle > density[:, :-2]) & (middle >= density[:, 2:]) & (middle > 0.02)).sum(axis=1)
    assert 0.05 < (modes > 1).mean() < 0.2


def test_a_wrong_noise_variance_is_caught(monkeypatch):
    trial = experiment("binomial", [10, 10], "paper")
    right = noise_aware_gibbs.noise_variance
    monkeypatch.setattr(noise_aware_gibbs, "noise_variance", lambda *arguments: right(*arguments) / 20)
    gibbs, _, _ = calibration(trial, 100, 0.1)
    assert np.all(ks_p_value(ks_statistic(gibbs), gibbs.shape[-1]) < ALARM)


def test_the_cost_of_a_sweep_does_not_depend_on_n(monkeypatch):
    # Counted, not timed: the variates that a sweep draws. Compiled code takes numpy's own generators only.
    monkeypatch.setattr(noise_aware_gibbs, "noise_variance", lambda residual, _, rng: rng.chisquare(1, residual.shape))

    class Counter:
        def __init__(self):
            self._rng, self.variates = np.random.default_rng(0), 0

        def __getattr__(self, name):
            def draw(*arguments, **keywords):
                values = getattr(self._rng, name)(*arguments, **keywords)
                self.variates += np.size(values)
                return values

            return draw

    counts = {}
    for n in (100, 100_000):
        counter = Counter()
        kernel = bounded_kernel(BetaBernoulli(10, 10), np.full(50, n / 2)[None], n, 10.0)
        state = kernel.init(counter)
        for _ in range(20):
            state, _ = kernel.step(state, counter)
        counts[n] = counter.variates
    assert counts[100] == counts[100_000]


def test_effective_draws_fall_where_noise_hides_the_data():
    # Data augmentation mixes at the rate of the observed share of the information: little at ε = 0.01.
    sizes = []
    for epsilon in (0.01, 0.1):
        parts = []
        kernel = bounded_kernel(BetaBernoulli(10, 10), np.full(4, 500.0)[None], 1000, 1 / epsilon)
        run(kernel, np.random.default_rng(3), 500, 3000, lambda theta, parts=parts: parts.append(theta.copy()))
        sizes.append(float(diagnose(np.concatenate(parts))[1]))
    assert sizes[1] > 4 * sizes[0]
