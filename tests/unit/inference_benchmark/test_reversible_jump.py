"""Reversible jumps over a private number of records: the law of the number, and the posterior, by sums."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy.stats import multinomial

from privpost.inference_benchmark import metrics
from privpost.inference_benchmark.base import Budget, Refused
from privpost.inference_benchmark.methods import reversible_jump
from privpost.inference_benchmark.tasks import made

CHAINS, STEPS, MOST = 20_000, 150, 4
THETA, RELEASE, SCALE = np.array([0.7, 0.2, 0.1]), np.array([2.3, -0.4, 0.9]), 1.5


def number_law() -> np.ndarray:
    """Law of the number of records given θ and the release, every number as likely: a sum over all counts."""
    law = np.zeros(MOST + 1)
    for counts in itertools.product(range(MOST + 1), repeat=3):
        if sum(counts) <= MOST:
            weight = np.exp(-np.abs(RELEASE - counts).sum() / SCALE)
            law[sum(counts)] += multinomial.pmf(counts, sum(counts), THETA) * weight
    return law / law.sum()


@pytest.mark.parametrize(("faulty", "agrees"), [(1.0, True), (0.8, False)])
def test_jumps_alone_lead_to_the_law_of_the_number(faulty, agrees):
    """Shares of 20,000 chains from no record at all, within five standard errors; noise a fifth too narrow is seen."""
    rng = np.random.default_rng(1)
    records, number = np.zeros((CHAINS, MOST, 3)), np.zeros(CHAINS, np.int64)
    fresh = np.eye(3)[rng.choice(3, (CHAINS, STEPS), p=THETA)]
    coin, uniform = rng.random((2, CHAINS, STEPS))
    observed = np.tile(RELEASE, (CHAINS, 1))
    reversible_jump.jump(records, number, fresh, observed, coin, uniform, SCALE * faulty)
    np.testing.assert_array_equal(records.sum(axis=(1, 2)), number)
    law = number_law()
    share = np.bincount(number, minlength=MOST + 1) / CHAINS
    assert np.all(np.abs(share - law) < 5 * np.sqrt(law * (1 - law) / CHAINS)) == agrees


def off(draws, exact) -> np.ndarray:
    """How far means and standard deviations (2, releases, p) of chains are from those of exact draws, in errors."""
    ess = metrics.effective(draws)[:, None]
    pooled = draws.draws.reshape(len(exact), -1, exact.shape[2])
    sd = exact.std(axis=1)
    spread = np.sqrt(np.square(np.square((exact - exact.mean(axis=1)[:, None]) / sd[:, None]) - 1).mean(axis=1)) / 2
    scaled = (pooled.mean(axis=1) - exact.mean(axis=1)) / sd, (pooled.std(axis=1) / sd - 1) / spread
    return np.abs(scaled) / np.sqrt(1 / ess + 1 / exact.shape[1])


@pytest.mark.parametrize(("name", "prior"), [("private_n_binomial", [2, 3]), ("private_n_multinomial", [1, 2, 3])])
def test_the_posterior_is_the_exact_sums(name, prior, monkeypatch):
    """Means and standard deviations within 4.5 errors; chains that do not jump, and so know n, are seen."""
    task, rng = made(name, prior, 4, 0.5), np.random.default_rng(2)
    releases = task.mechanism.perturb(task.data(task.prior(4, rng), rng), rng)
    exact, budget = task.reference(releases, 40_000, rng), Budget(40, 500, 100)
    assert off(reversible_jump.infer(task, releases, rng, budget), exact).max() < 4.5
    monkeypatch.setattr(reversible_jump, "jump", lambda *_: None)
    assert off(reversible_jump.infer(task, releases, rng, budget), exact).max() > 6


def test_a_public_number_is_refused():
    task = made("binomial")
    with pytest.raises(Refused, match="number of records is public"):
        reversible_jump.infer(task, np.zeros((1, 1)), None, Budget(4, 20, 0))
