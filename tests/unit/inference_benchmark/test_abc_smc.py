"""ABC-SMC of the rivals: its steps, its resampling, what it simulates, and a posterior far out in the prior."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from privpost.inference_benchmark import methods, metrics
from privpost.inference_benchmark.base import Budget, Refused
from privpost.inference_benchmark.methods import abc_smc
from privpost.inference_benchmark.tasks import made


def test_a_step_leaves_the_share_of_particles_that_it_should():
    """(Σ w)²/Σ w² of the weights exp(rise · log-density) again, at a rise that halving places to within 1e-6."""
    logs = np.random.default_rng(1).normal(size=(3, 400)) * np.array([[30.0], [5.0], [0.01]])
    rise = abc_smc.step(logs, np.array([[1.0], [0.6], [0.3]]))
    for row, power in zip(logs[:2], rise[:2, 0], strict=True):
        weights = np.exp(power * row)
        assert weights.sum() ** 2 / (weights**2).sum() == pytest.approx(200, rel=1e-4)
    assert rise[2, 0] == 0.3


def test_resampling_is_systematic():
    """Each particle as often as its share of all, rounded up or down."""
    logs = np.random.default_rng(2).normal(size=(50, 30)) * 3
    found = abc_smc.resampled(logs, np.random.default_rng(3))
    share = np.exp(logs)
    share *= 30 / share.sum(axis=1, keepdims=True)
    times = np.stack([np.bincount(row, minlength=30) for row in found])
    assert np.all((times == np.floor(share)) | (times == np.ceil(share)))


@pytest.mark.parametrize("name", ["naive_bayes", "collider"])
def test_simulated_counts_have_the_law_of_records(name):
    """All pairs of two records are enumerated; frequencies of 20,000 tables agree within 5 standard errors."""
    task = made(name, [1, 1], 2, 1.0)
    theta = task.prior(1, np.random.default_rng(4))
    ones = task.model.sufficient_statistics(task.model.records[:, None])
    law = np.prod(np.stack([theta, 1 - theta], axis=-1).reshape(-1) ** ones, axis=1)
    expected: dict[tuple, float] = {}
    for a, b in itertools.product(range(len(law)), repeat=2):
        key = tuple(ones[a] + ones[b])
        expected[key] = expected.get(key, 0.0) + law[a] * law[b]
    drawn = abc_smc.simulator(task)(np.repeat(theta, 20_000, axis=0), np.random.default_rng(5))
    tables, counts = np.unique(drawn, axis=0, return_counts=True)
    found = dict(zip(map(tuple, tables), counts / 20_000, strict=True))
    assert set(found) <= set(expected)
    for key, share in expected.items():
        assert found.get(key, 0.0) == pytest.approx(share, abs=5 * np.sqrt(share / 20_000))


def counts_law(n: int, release: float, epsilon: float) -> np.ndarray:
    """Law of the number of ones of n bits with a uniform prior, every number as likely, given Laplace noise on it."""
    weights = np.exp(-np.abs(release - np.arange(n + 1)) * epsilon)
    return weights / weights.sum()


@pytest.mark.parametrize("moves", [0, 30])
@pytest.mark.parametrize("power", [0.3, 1.0])
def test_each_temperature_has_its_law(power, moves):
    """The number of ones of 8 bits at ε = 2, by weights alone and by moves from there on, and by its sum.

    Shares of 40,000 particles: 5 standard errors, of twice as many draws where resampling leaves half of them.
    """
    task = made("binomial", [1, 1], 8, 2.0)
    populations = abc_smc.Populations(task, np.array([[6.5]]), 40_000, np.random.default_rng(8))
    with pytest.MonkeyPatch.context() as patch:
        # In two steps where there is nothing to hinder one.
        for to in (power / 3, power):
            patch.setattr(abc_smc, "step", lambda logs, most, to=to: to - populations.power)
            populations.temper()
    for _ in range(moves):
        populations.move()
    assert populations.power == pytest.approx(power)
    law = counts_law(8, 6.5, 2.0 * power)
    share = np.bincount(task.mechanism.select(populations.statistics).astype(int).ravel(), minlength=9) / 40_000
    assert share == pytest.approx(law, abs=5 * np.sqrt(2 * law.max() / 40_000))


def test_it_reaches_a_posterior_that_draws_from_the_prior_miss():
    """Categories at n = 1000, ε = 10: of 20,000 data sets from the prior about one counts, of 1,000 particles most.

    Distance over that of as many independent draws: 1 on average, with a deviation of about 15 % over six releases.
    """
    task, rng = made("multinomial", [5, 5, 5], 1000, 10.0), np.random.default_rng(6)
    releases = task.mechanism.perturb(task.data(task.prior(6, rng), rng), rng)
    exact = task.reference(releases, 4000, rng)
    references = [metrics.Reference.of(draws) for draws in exact]
    ess = {}
    for name in ("abc_smc", "simulation"):
        inferred = methods.method(name)(task, releases, np.random.default_rng(7), Budget(4, 250, 0))
        distance, *_, ess[name] = metrics.score(inferred, references, exact[:, 0], rng).mean(axis=0)
        assert name == "simulation" or distance / (1.288 * np.sqrt(1 / ess[name] + 1 / 4000)) < 1.6
    assert ess["simulation"] < 20
    assert ess["abc_smc"] > 500


def test_sums_are_refused():
    with pytest.raises(Refused, match="record by record"):
        methods.method("abc_smc")(made("poisson", [30, 10], 5, 1.0), np.zeros((1, 1)), None, Budget(4, 20, 0))
