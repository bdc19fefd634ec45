"""Randomised response: its law, its exact posterior, and what studies of curators' mechanisms leave out."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy import stats

import privpost
from privpost import discovery

BITS, THREE = privpost.BetaBernoulli(2, 3), privpost.DirichletCategorical((1, 2, 3))


@pytest.mark.parametrize(("epsilon", "ones"), [(0.1, 60), (1.0, 31), (5.0, 0), (20.0, 100), (800.0, 40)])
def test_the_posterior_of_bits_is_that_of_quadrature(epsilon, ones):
    """Independent: a report is 1 with probability other + (truth − other) θ; a grid over θ."""
    mechanism = privpost.RandomisedResponse(BITS, 100, epsilon)
    drawn = np.asarray(mechanism.posterior([ones, 100 - ones], 20_000, np.random.default_rng(1)))
    theta = (np.arange(40_000) + 0.5) / 40_000
    truth = 1 / (1 + np.exp(-epsilon))
    log_law = stats.binom.logpmf(ones, 100, 1 - truth + (2 * truth - 1) * theta) + stats.beta.logpdf(theta, 2, 3)
    law = np.exp(log_law - log_law.max())
    cdf = np.cumsum(law) / law.sum()
    # The Kolmogorov-Smirnov distance of 20,000 draws exceeds 0.016 once in 1e4.
    assert stats.kstest(drawn, lambda at: np.interp(at, theta, cdf)).statistic < 0.016


def test_the_posterior_of_three_answers_is_that_of_all_answers():
    """Independent: importance sampling from the prior, 400,000 draws."""
    mechanism, reported = privpost.RandomisedResponse(THREE, 12, 1.5), np.array([6, 5, 1])
    rng = np.random.default_rng(2)
    drawn = np.asarray(mechanism.posterior(reported, 40_000, rng))
    theta = rng.dirichlet([1, 2, 3], 400_000)
    chances = mechanism.other + (mechanism.truth - mechanism.other) * theta
    weights = np.exp((reported * np.log(chances)).sum(axis=1))
    for power in (1, 2):
        exact = np.average(theta**power, axis=0, weights=weights)
        # Five standard errors: the weights are worth more than 40,000 draws.
        assert np.all(np.abs((drawn**power).mean(axis=0) - exact) < 5 * 2**0.5 * drawn.std(axis=0) / 200)


def test_reports_have_the_law_of_warner():
    mechanism = privpost.RandomisedResponse(THREE, 9, 1.0)
    assert mechanism.truth / mechanism.other == pytest.approx(np.e)
    assert mechanism.truth + 2 * mechanism.other == pytest.approx(1)
    reports = mechanism.perturb(np.tile([9.0, 0.0, 0.0], (50_000, 1)), np.random.default_rng(3))
    assert np.all(reports.sum(axis=1) == 9)
    # Five standard errors of a mean of 50,000 binomial numbers.
    assert reports.mean(axis=0) == pytest.approx([9 * mechanism.truth, *[9 * mechanism.other] * 2], abs=0.04)


def test_probabilities_of_reports_sum_to_one_and_are_epsilon_dp():
    """Independent: by enumeration of everybody's answers."""
    mechanism, true = privpost.RandomisedResponse(THREE, 3, 0.7), [0, 0, 2]
    law = {}
    for answers in itertools.product(range(3), repeat=3):
        key = tuple(np.bincount(answers, minlength=3).tolist())
        chance = np.prod([mechanism.truth if a == b else mechanism.other for a, b in zip(answers, true, strict=True)])
        law[key] = law.get(key, 0.0) + chance
    found = np.exp(mechanism.log_mass(np.array([*law], float), np.array([2.0, 0.0, 1.0])))
    assert found == pytest.approx([*law.values()])
    assert found.sum() == pytest.approx(1)
    assert (
        mechanism.log_mass(np.array([[1.5, 0.5, 1], [4, 0, -1], [1, 1, 0]]), np.array([2.0, 0.0, 1.0])).max() == -np.inf
    )


@pytest.mark.parametrize("release", [[3, 3], [4.5, 5.5], [11, -1]])
def test_what_no_people_can_report_is_refused(release):
    with pytest.raises(ValueError, match="it must be whole numbers that sum to n, 10"):
        privpost.RandomisedResponse(BITS, 10, 1.0).posterior(release, 5, np.random.default_rng(1))


def test_it_is_listed_and_studies_of_a_curator_leave_it_out():
    names = {kind.name for kind in discovery.kinds()}
    assert "RandomisedResponse" in names
    assert "RandomisedResponse" not in {kind.name for kind in discovery.curators(discovery.kinds())}
    budget = privpost.Cost("pure", 1.0)
    assert "randomised_response" not in discovery.serving(BITS, 10, budget, a0=0.1)
    assert privpost.RandomisedResponse.calibrate(BITS, 10, budget).cost() == budget
