"""Posterior sampling and the exponential mechanism: parameters, coefficients, budgets and temperatures."""

import inspect
from functools import partial

import numpy as np
import pytest

from privpost.mechanisms import (
    ExponentialMechanism,
    GaussianMechanism,
    PosteriorDraw,
)
from privpost.models import BetaBernoulli, DirichletCategorical
from privpost.privacy.accounting.costs import Cost


def test_posterior_parameters_of_the_three_mechanisms():
    model, statistics = BetaBernoulli(6, 12), np.array([38.0, 62.0])
    assert PosteriorDraw(model, 100, 2.0, weighting="direct").release_law(statistics).tolist() == [44, 74]
    assert np.allclose(PosteriorDraw(model, 100, 2.0, 0.5, weighting="diffused").release_law(statistics), [25, 43])
    assert np.allclose(PosteriorDraw(model, 100, 2.0, 0.5, weighting="concentrated").release_law(statistics), [50, 86])


@pytest.mark.parametrize("categories", [4, 7])
def test_a_record_moves_two_natural_parameters_by_its_weight(categories):
    """√2 r whatever the number of categories, by arithmetic; to rounding."""
    mechanism = PosteriorDraw(DirichletCategorical((1,) * categories), 8, 2.0, 0.5, weighting="diffused")
    assert mechanism.sensitivity == pytest.approx(0.5 * 2**0.5, rel=1e-12)


def test_calibrated_coefficients_at_both_orders():
    # Direct sampling costs 0.1912902 at order 2; order 15 is beyond its asymptote and stops both at 6/14.
    # Independent: by mpmath, and by hand.
    model = BetaBernoulli(6, 12)
    for weighting in ("diffused", "concentrated"):
        calibrate = partial(PosteriorDraw.calibrate, model, 100, weighting=weighting)
        assert calibrate(Cost("rdp", 0.1912903, order=2)).coefficient == 1
        assert calibrate(Cost("rdp", 1e6, order=15)).coefficient == pytest.approx(6 / 14)
        paper = calibrate(Cost("rdp", 0.1, order=1.5), supremum="paper")
        assert paper.coefficient < calibrate(Cost("rdp", 0.1, order=1.5)).coefficient


def test_coefficient_functions_take_no_data():
    allowed = {"model", "n", "order", "epsilon", "weighting", "options"}
    assert set(inspect.signature(PosteriorDraw.coefficient_within).parameters) == allowed


def test_direct_posterior_refuses_budgets_below_its_cost():
    model = BetaBernoulli(6, 12)
    assert PosteriorDraw.calibrate(model, 100, Cost("rdp", 0.2, order=2), weighting="direct").cost().epsilon < 0.2
    with pytest.raises(ValueError, match=r"budget is .*the direct posterior costs"):
        PosteriorDraw.calibrate(model, 100, Cost("rdp", 0.19, order=2), weighting="direct")
    with pytest.raises(ValueError, match=r"the direct posterior costs .*epsilon=inf"):
        PosteriorDraw.calibrate(model, 100, Cost("rdp", 1e6, order=7), weighting="direct")


@pytest.mark.parametrize(
    "mechanism", [*(PosteriorDraw.examples()[place] for place in (0, 4, 8)), GaussianMechanism.examples()[0]]
)
def test_renyi_mechanisms_refuse_other_budgets(mechanism):
    with pytest.raises(ValueError, match=r"budget is .*its notion must be 'rdp'"):
        mechanism.calibrate(BetaBernoulli(6, 12), 100, Cost("pure", 1.0), **mechanism.options)


@pytest.mark.parametrize("coefficient", [0.0, -0.1, 1.1, np.nan])
def test_coefficients_outside_their_range_are_errors(coefficient):
    for weighting in ("diffused", "concentrated", "direct"):
        with pytest.raises(ValueError, match="coefficient is "):
            PosteriorDraw(BetaBernoulli(6, 12), 100, 2.0, coefficient, weighting=weighting)


# Exponential mechanism


# Independent: T = max(1, 2 ln((1 − a0)/a0)/ε), by hand.
@pytest.mark.parametrize("epsilon, a0, temperature", [(0.1, 0.05, 58.888780), (1.0, 0.05, 5.888878), (20.0, 0.05, 1.0)])
def test_temperature_and_tempered_posterior(epsilon, a0, temperature):
    mechanism = ExponentialMechanism(BetaBernoulli(3, 4), 10, epsilon, a0=a0)
    assert mechanism.temperature == pytest.approx(temperature, rel=1e-7)
    expected = [1 + (3 - 1 + 7) / temperature, 1 + (4 - 1 + 3) / temperature]
    assert np.allclose(mechanism.release_law([7.0, 3.0]), expected, rtol=1e-7)
    assert mechanism.cost().epsilon == pytest.approx(min(epsilon, 2 * np.log(19)), rel=1e-12)


@pytest.mark.parametrize("a0", [0.0, 0.5, -0.1])
def test_truncation_outside_its_range_is_an_error(a0):
    with pytest.raises(ValueError, match="a0 is "):
        ExponentialMechanism(BetaBernoulli(), 10, 1.0, a0=a0)
