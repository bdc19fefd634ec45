"""Costs, conversions and the ledger."""

import inspect
import math

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privpost.privacy.accounting.costs import (
    Cost,
    parallel,
    pure_to_rdp,
    rdp_to_pure_epsilon,
    sequential,
    to_approximate,
)
from privpost.privacy.divergences import glm

EPSILONS = st.floats(1e-6, 1e4)
ORDERS = st.floats(1.0, 1e4)


# Costs


@pytest.mark.parametrize(
    "arguments, field",
    [
        ({"notion": "zcdp", "epsilon": 1.0}, "notion"),
        ({"notion": "pure", "epsilon": -1e-9}, "epsilon"),
        ({"notion": "pure", "epsilon": math.nan}, "epsilon"),
        ({"notion": "pure", "epsilon": 1.0, "order": 2.0}, "order"),
        ({"notion": "pure", "epsilon": 1.0, "delta": 0.0}, "delta"),
        ({"notion": "rdp", "epsilon": 1.0}, "order"),
        ({"notion": "rdp", "epsilon": 1.0, "order": 0.99}, "order"),
        ({"notion": "rdp", "epsilon": 1.0, "order": 2.0, "delta": 0.1}, "delta"),
        ({"notion": "approximate", "epsilon": 1.0}, "delta"),
        ({"notion": "approximate", "epsilon": 1.0, "delta": 1.1}, "delta"),
    ],
)
def test_invalid_cost_names_the_field(arguments, field):
    with pytest.raises(ValueError, match=f"^{field} is "):
        Cost(**arguments)


def test_valid_costs():
    assert Cost("pure", math.inf).epsilon == math.inf
    assert Cost("rdp", 0.0, order=1).order == 1
    assert str(Cost("rdp", 0.5, order=2)) == "rdp(epsilon=0.5, order=2)"
    assert str(Cost("approximate", 0.5, delta=1e-5)) == "approximate(epsilon=0.5, delta=1e-05)"


def test_conversion_between_notions():
    pure = Cost("pure", 1.0)
    assert pure.to_notion_of(Cost("approximate", 9, delta=1e-5)) == Cost("approximate", 1.0, delta=0.0)
    assert pure.to_notion_of(Cost("rdp", 9, order=3)) == Cost("rdp", float(pure_to_rdp(1, 3)), order=3)
    for impossible, target in [
        (Cost("rdp", 1, order=2), pure),
        (Cost("rdp", 1, order=2), Cost("rdp", 1, order=3)),
        (Cost("rdp", 1, order=2), Cost("approximate", 1, delta=0.1)),
        (Cost("approximate", 1, delta=0.0), pure),
    ]:
        with pytest.raises(ValueError, match="does not convert"):
            impossible.to_notion_of(target)


def test_within_compares_every_part():
    assert Cost("pure", 1.0).within(Cost("pure", 1.0))
    assert not Cost("pure", 1.0 + 1e-8).within(Cost("pure", 1.0))
    assert not Cost("approximate", 1.0, delta=2e-5).within(Cost("approximate", 1.0, delta=1e-5))
    assert Cost("pure", 1.0).within(Cost("rdp", 0.9, order=2))
    assert not Cost("pure", 1.0).within(Cost("rdp", 0.4, order=2))


def test_sequential_composition_adds():
    assert sequential([Cost("pure", 0.25), Cost("pure", 0.5)]) == Cost("pure", 0.75)
    assert sequential([Cost("rdp", 1, order=2), Cost("rdp", 2, order=2)]) == Cost("rdp", 3, order=2)
    both = sequential([Cost("approximate", 1, delta=0.25), Cost("approximate", 2, delta=0.5)])
    assert both == Cost("approximate", 3, delta=0.75)
    with pytest.raises(ValueError, match="mix notions or orders"):
        sequential([Cost("rdp", 1, order=2), Cost("rdp", 1, order=3)])
    with pytest.raises(ValueError, match="costs is empty"):
        sequential([])


def test_parallel_composition_takes_the_largest_changed_parts():
    costs = [Cost("pure", 0.1), Cost("pure", 0.3), Cost("pure", 0.2)]
    assert parallel(costs) == Cost("pure", 0.3)
    assert parallel(costs, changed_parts=2) == Cost("pure", 0.5)
    mixed = [Cost("approximate", 0.3, delta=0.0), Cost("approximate", 0.1, delta=0.5)]
    assert parallel(mixed) == Cost("approximate", 0.3, delta=0.5)
    with pytest.raises(ValueError, match="changed_parts is 3"):
        parallel(costs, changed_parts=3)


# Pure to Rényi


def randomised_response_divergence(epsilon, order):
    """Rényi divergence of (p, 1−p) from (1−p, p), p = 1/(1+e^−ε), summed over the two outcomes in 60 digits."""
    with mpmath.workdps(60):
        p = 1 / (1 + mpmath.exp(-mpmath.mpf(epsilon)))
        q = 1 / (1 + mpmath.exp(mpmath.mpf(epsilon)))
        if order == 1:
            return float(p * mpmath.log(p / q) + q * mpmath.log(q / p))
        order = mpmath.mpf(order)
        return float(mpmath.log(p**order * q ** (1 - order) + q**order * p ** (1 - order)) / (order - 1))


@pytest.mark.parametrize("epsilon", [1e-9, 1e-3, 0.1, 1.0, 5.0, 40.0, 1e3, 1e4])
@pytest.mark.parametrize("order", [1, 1 + 1e-9, 1.001, 1.5, 2.0, 10.0, 1e3, 1e6])
def test_pure_to_rdp_is_two_point_randomised_response(epsilon, order):
    # 1e-13: a few roundings of the closed form against 60 digits.
    expected = randomised_response_divergence(epsilon, order)
    assert float(pure_to_rdp(epsilon, order)) == pytest.approx(expected, rel=1e-13)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 5.0])
@pytest.mark.parametrize("order", [1, 1.5, 2.0, 10.0, math.inf])
def test_pure_to_rdp_agrees_with_autodp(epsilon, order):
    from autodp import rdp_bank

    # 1e-9: autodp subtracts two hyperbolic sines.
    assert float(pure_to_rdp(epsilon, order)) == pytest.approx(rdp_bank.RDP_pureDP({"eps": epsilon}, order), rel=1e-9)
    p = 1 / (1 + math.exp(-epsilon))
    assert float(pure_to_rdp(epsilon, order)) == pytest.approx(rdp_bank.RDP_randresponse({"p": p}, order), rel=1e-9)


@settings(max_examples=200, deadline=None, derandomize=True)
@given(EPSILONS, ORDERS, ORDERS)
def test_pure_to_rdp_is_monotone_and_bounded(epsilon, order, other):
    low, high = sorted([order, other])
    at_low, at_high = pure_to_rdp(epsilon, [low, high])
    # The KL limit from below; ε and λε²/2 (Bun and Steinke 2016) from above. 1e-12 for rounding.
    assert epsilon * math.tanh(epsilon / 2) * (1 - 1e-12) <= at_low
    assert at_low <= at_high * (1 + 1e-12)
    assert at_high <= min(epsilon, high * epsilon**2 / 2) * (1 + 1e-12)


@settings(max_examples=100, deadline=None, derandomize=True)
@given(st.floats(1e-9, 1e3), ORDERS)
def test_inverse_of_pure_to_rdp(target, order):
    epsilon = rdp_to_pure_epsilon(target, order)
    assert pure_to_rdp(epsilon, order) <= target
    # The next larger ε but rounding would be too large.
    assert pure_to_rdp(epsilon * (1 + 1e-10), order) > target


def test_pure_to_rdp_limits_and_shapes():
    assert pure_to_rdp(0.0, [1, 2, math.inf]).tolist() == [0, 0, 0]
    assert pure_to_rdp(math.inf, [1, 2, math.inf]).tolist() == [math.inf] * 3
    assert pure_to_rdp(2.5, math.inf) == 2.5
    assert pure_to_rdp([[1.0], [2.0]], [1, 2, 3]).shape == (2, 3)
    assert rdp_to_pure_epsilon([0.0, math.inf], 2).tolist() == [0, math.inf]
    with pytest.raises(ValueError, match="epsilon is"):
        pure_to_rdp(-1, 2)
    with pytest.raises(ValueError, match="order is"):
        pure_to_rdp(1, 0.5)
    with pytest.raises(ValueError, match="target is"):
        rdp_to_pure_epsilon(-1, 2)


# Rényi to approximate


def test_to_approximate_is_the_best_of_the_orders():
    orders = np.array([1.5, 2.0, 5.0, 20.0, 64.0])
    epsilons, delta = orders / (2 * 3.0**2), 1e-5
    by_order = epsilons + np.log1p(-1 / orders) - np.log(delta * orders) / (orders - 1)
    epsilon, order = to_approximate(orders, epsilons, delta)
    assert epsilon == pytest.approx(by_order.min(), rel=1e-12)
    assert order == orders[by_order.argmin()]


def test_to_approximate_bounds_the_gaussian_mechanism_from_above():
    from scipy.optimize import brentq
    from scipy.stats import norm

    sigma, delta = 3.0, 1e-5
    orders = np.linspace(1.1, 200, 2000)

    def excess_delta(epsilon):
        # Balle and Wang (2018), theorem 8: the exact (ε, δ) curve.
        a, b = 1 / (2 * sigma), epsilon * sigma
        return norm.cdf(a - b) - math.exp(epsilon) * norm.cdf(-a - b) - delta

    exact = brentq(excess_delta, 1e-3, 10)
    epsilon, _ = to_approximate(orders, orders / (2 * sigma**2), delta)
    assert exact < epsilon < 1.1 * exact


def test_to_approximate_skips_orders_beyond_the_asymptote():
    assert to_approximate([2, 5, 8], [0.1, 0.4, math.inf], 1e-5) == to_approximate([2, 5], [0.1, 0.4], 1e-5)
    epsilon, order = to_approximate([2, 5], [math.inf, math.inf], 1e-5)
    assert epsilon == math.inf
    assert math.isnan(order)
    for arguments, name in [
        (([2, 3], [0.1], 1e-5), "orders and epsilons"),
        (([2], [0.1], 0.0), "delta"),
        (([2], [-0.1], 1e-5), "epsilons"),
        (([0.5], [0.1], 1e-5), "order"),
    ]:
        with pytest.raises(ValueError, match=f"^{name}"):
            to_approximate(*arguments)


# Posteriors of generalised linear models


def test_glm_settings_meet_the_budget_and_no_less():
    order, epsilon, n, beta = np.array([1.0, 10, 100])[:, None], np.exp(np.arange(-5.0, 4)), 2784, 1e-3
    precision = glm.concentrated_precision(order, epsilon, n, beta)
    charged = glm.posterior_rdp(order, n, precision)
    assert np.all(charged <= epsilon * (1 + 1e-12))
    assert np.all((precision == beta) | np.isclose(charged, epsilon, rtol=1e-12))
    power = glm.diffused_power(order, epsilon, n, beta)
    charged = glm.posterior_rdp(order, n, beta, power)
    assert np.all(charged <= epsilon * (1 + 1e-12))
    assert np.all((power == 1) | np.isclose(charged, epsilon, rtol=1e-12))
    # Theorem 17: the guarantee at another order is ελ'/λ.
    assert np.allclose(glm.posterior_rdp(7.0, n, beta, power), charged * 7.0 / order, rtol=1e-12)
    for variant in glm.CHARGES:
        power = glm.ops_power(order, epsilon, beta, charge=variant)
        charged = glm.ops_rdp(order, power, beta, charge=variant)
        assert np.all(charged <= epsilon * (1 + 1e-12))
        assert np.all((power == 1) | np.isclose(charged, epsilon, rtol=1e-9))
    corrected, paper = (glm.ops_power(order, epsilon, beta, charge=v) for v in ("corrected_charge", "paper"))
    assert np.all(corrected >= 2 * paper * (1 - 1e-12))


def test_glm_values_by_hand():
    assert glm.posterior_rdp(10, 1000, 1e-3, feature_bound=0.5, residual_bound=2.0) == pytest.approx(20.0)
    assert glm.concentrated_precision(10, 2.0, 1000, 1e-3) == pytest.approx(0.01)
    assert glm.diffused_power(10, 2.0, 1000, 1e-3) == pytest.approx(math.sqrt(0.1))
    assert glm.ops_pure_epsilon(0.5, 1e-2, feature_bound=0.5, charge="paper") == pytest.approx(50.0)
    assert glm.ops_pure_epsilon(0.5, 1e-2, feature_bound=0.5) == pytest.approx(25.0)
    assert glm.ops_power(100, 1.0, 1e-3, charge="paper") == pytest.approx(2.5e-4)
    # λ = 1: ε₀ tanh(ε₀/2) = 1 at ε₀ = 1.5434046384182084.
    assert glm.ops_power(1, 1.0, 1e-3) == pytest.approx(1.5434046384182084e-3 / 2, rel=1e-12)


def test_corrected_ops_charge_bounds_the_logistic_log_likelihood_on_the_ball():
    # Brute force in one dimension: w in the ball of radius c/β, any two records (x, y).
    c, beta = 1.0, 0.2
    w = np.linspace(-c / beta, c / beta, 401)
    log_likelihoods = [-np.logaddexp(0, -sign * w * x) for sign in (1, -1) for x in np.linspace(-c, c, 41)]
    spread = np.max(log_likelihoods, axis=0) - np.min(log_likelihoods, axis=0)
    assert 2 * spread.max() == pytest.approx(float(glm.ops_pure_epsilon(1.0, beta, c)), rel=1e-12)


def test_direct_posterior_beats_ops_up_to_the_stated_order():
    # Claim of section 5.2: 2n/ρ under the paper's charge, n/ρ under half of it charged at every order.
    n, beta, power = 100, 1e-2, 0.3
    limit = 2 * n / power
    paper = glm.ops_rdp(limit, power, beta, charge="paper")
    assert glm.posterior_rdp(limit * 0.999, n, beta, power) < paper < glm.posterior_rdp(limit * 1.001, n, beta, power)
    half = glm.ops_pure_epsilon(power, beta)
    assert glm.posterior_rdp(limit / 2, n, beta, power) == pytest.approx(float(half), rel=1e-12)


@pytest.mark.parametrize(
    "call, name",
    [
        (lambda: glm.posterior_rdp(0.5, 10, 1), "order"),
        (lambda: glm.posterior_rdp(2, 0, 1), "n"),
        (lambda: glm.posterior_rdp(2, 10, 0), "prior_precision"),
        (lambda: glm.posterior_rdp(2, 10, 1, power=1.5), "power"),
        (lambda: glm.concentrated_precision(2, 0, 10, 1), "epsilon"),
        (lambda: glm.diffused_power(2, -1, 10, 1), "epsilon"),
        (lambda: glm.ops_power(2, 1, 1, feature_bound=0), "feature_bound"),
        (lambda: glm.ops_rdp(2, 1, 1, charge="exact"), "charge"),
    ],
)
def test_glm_errors_name_the_argument(call, name):
    with pytest.raises(ValueError, match=f"^{name} is "):
        call()


def test_glm_functions_take_no_data():
    allowed = {"order", "epsilon", "n", "prior_precision", "power", "feature_bound", "residual_bound", "charge"}
    allowed |= {"steps", "step_size", "curvature", "change", "rejected", "height"}
    functions = [f for _, f in inspect.getmembers(glm, inspect.isfunction) if f.__module__ == glm.__name__]
    public = [f for f in functions if not f.__name__.startswith("_")]
    assert public
    for function in public:
        assert set(inspect.signature(function).parameters) <= allowed
