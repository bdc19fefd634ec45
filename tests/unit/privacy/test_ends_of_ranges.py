"""Answers of dp-accounting and scipy at the ends of the ranges that are documented here: right, or refused."""

from __future__ import annotations

import dataclasses
import math

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import privpost
from privpost import discovery
from privpost.evaluation.multiplicity import critical_value
from privpost.privacy.accounting import composition, losses
from privpost.privacy.accounting.approximate import gaussian_curve, gaussian_from_approximate
from privpost.privacy.accounting.costs import to_approximate

pytestmark = pytest.mark.filterwarnings("error")
ORDERS = st.one_of(st.just(math.inf), st.floats(1.0, 1e12))
EPSILONS = st.one_of(st.just(math.inf), st.just(0.0), st.floats(1e-9, 1e9))


@settings(max_examples=300, deadline=None)
@given(st.lists(st.tuples(ORDERS, EPSILONS), min_size=1, max_size=6), st.floats(1e-300, 0.999))
def test_no_curve_becomes_more_private_by_conversion(curve, delta):
    """Independent: Canonne, Kamath and Steinke (2020), proposition 12, and Kullback-Leibler's bound, by hand."""
    orders, epsilons = (np.array(part) for part in zip(*curve, strict=True))
    found, order = to_approximate(orders, epsilons, delta)
    answers = [math.inf]
    for a, r in curve:
        if math.inf in {a, r}:
            answers.append(r)
        elif delta**2 + math.expm1(-r) > 0:
            answers.append(0.0)
        elif a > 1.01:
            answers.append(max(r + math.log1p(-1 / a) - math.log(delta * a) / (a - 1), 0.0))
    # 1e-9: rounding of logarithms.
    assert found == pytest.approx(min(answers), rel=1e-9, abs=1e-9)
    assert math.isnan(order) == math.isinf(found) or order in orders


def test_pure_privacy_is_no_perfect_privacy():
    """The order inf took part as nan, and 0.7-DP, or 7-DP, became ε = 0."""
    assert to_approximate([2, math.inf], [0.2, 0.7], 1e-5) == (0.7, math.inf)
    assert to_approximate([2, math.inf], [0.2, 7.0], 1e-5) == (7.0, math.inf)
    assert to_approximate([math.inf], [0.7], 1e-5) == (0.7, math.inf)
    assert to_approximate([2, math.inf], [0.2, math.inf], 1e-5)[1] == 2
    assert to_approximate([math.inf], [math.inf], 1e-5)[0] == math.inf


def exact_delta(epsilon: float, sigma: float) -> float:
    mu = 1 / mpmath.mpf(sigma)
    near, far = mu / 2 - epsilon / mu, -mu / 2 - epsilon / mu
    return mpmath.ncdf(near) - mpmath.exp(mpmath.mpf(epsilon)) * mpmath.ncdf(far)


@pytest.mark.parametrize("epsilon", [1e-300, 1e-100, 1e-17, 1e-10, 1e-6, 1e-3, 1.0, 100.0, 1e5, 2e6])
@pytest.mark.parametrize("delta", [1e-140, 1e-100, 1e-16, 1e-10, 1e-5, 0.5, 1 - 1e-12])
def test_gaussian_noise_has_the_stated_delta(epsilon, delta):
    """Independent: by mpmath. At (1e-100, 1e-100) dp-accounting's noise is 1e84 times too small."""
    # Digits for differences of probabilities that agree in 300 of them.
    with mpmath.workdps(700):
        found = exact_delta(epsilon, gaussian_from_approximate(epsilon, delta))
        assert float(found / mpmath.mpf(delta)) == pytest.approx(1, rel=3e-6)


def test_gaussian_noise_beyond_what_floats_resolve():
    # δ falls from 1 to 0 around μ²/2 = ε.
    for epsilon in (1e50, 1e100, 1e300):
        assert gaussian_from_approximate(epsilon, 1e-5) == pytest.approx(1 / math.sqrt(2 * epsilon), rel=1e-9, abs=0)
    with pytest.raises(ValueError, match="no noise is known that meets them"):
        gaussian_from_approximate(1e-300, 1e-300)
    with pytest.raises(ValueError, match=r"epsilon is inf; it must lie in \(0, 1e300\]"):
        gaussian_from_approximate(math.inf, 0.1)


@pytest.mark.parametrize("mu", [1e-140, 1e-12, 9.9e-5, 1.01e-4, 1e-3, 1.0, 30.0, 2e3])
@pytest.mark.parametrize("ratio", [0.0, 0.1, 1.0, 20.0])
def test_gaussian_curve_keeps_its_digits(mu, ratio):
    epsilon = ratio * mu if mu < 1 else mu * mu / 2 - (ratio - 1) * mu / 10
    with mpmath.workdps(400):
        exact = exact_delta(epsilon, 1 / mpmath.mpf(mu))
        # 1e-6: at 1e-4 the difference of probabilities has ten digits, less those of a small tail.
        assert gaussian_curve(mu, epsilon) == pytest.approx(float(exact), rel=1e-6, abs=0)


@pytest.mark.parametrize("delta", [1e-300, 1e-100, 1e-10, 0.5, 1 - 1e-12])
@pytest.mark.parametrize("epsilon", [0.0, 5e-324, 1e-300, 1e-10, 1.0, 100.0, 1e5])
@pytest.mark.parametrize("times", [1, 3])
def test_composed_responses_lie_between_the_largest_and_the_sum(epsilon, delta, times):
    found = composition.together([losses.Response(epsilon, times=times)], delta)
    # ε of one of them: ln(e^ε0 − δ (1 + e^ε0)), or 0.
    one = epsilon + math.log1p(max(-delta * (1 + math.exp(-min(epsilon, 700.0))), -1 + 1e-15))
    assert max(one, 0.0) <= found <= times * epsilon


@pytest.mark.parametrize("shift", [1e-150, 1e-10, 1.0, 1e3, 1e150])
def test_composed_normal_laws_cost_at_least_what_noise_does(shift):
    for delta in (1e-100, 1e-5, 0.5):
        found = composition.together([losses.Normal(shift)], delta)
        assert found >= 0 and not math.isnan(found)
        if 0 < found < 1e100:
            assert gaussian_curve(shift, found) <= delta
    for wrong in (1e-300, 1e200, math.nan):
        with pytest.raises(ValueError, match="shift is"):
            losses.Normal(wrong)


@pytest.mark.parametrize(
    "law",
    [
        losses.Gamma(5.0, (1e-150, 1e150)),
        losses.Gamma(1e-300, (1.0, 2.0)),
        losses.Gamma(1e300, (1.0, 2.0)),
        losses.Beta((1e150, 1.0), 1.0, 3),
        losses.Beta((1e-150, 1.0), 1.0, 3),
        losses.Beta((1.0, 1.0), 1e-300, 3),
        losses.Response(0.5, 1.0),
    ],
)
def test_extreme_laws_have_an_answer(law):
    for delta in (1e-300, 1e-10, 0.5):
        assert composition.together([law], delta) >= 0


FAMILIES = [example for model in discovery.models().values() for example in model.examples()]
UNIVARIATE = [family for family in FAMILIES if hasattr(family, "predictive_quantile")]


@pytest.mark.parametrize("family", UNIVARIATE, ids=repr)
def test_quantiles_end_where_records_do(family):
    """Inverses of distribution functions are nan at 1, and Student's was +inf at 0."""
    low, high = getattr(family, "record_support", (-np.inf, np.inf))
    with np.errstate(divide="ignore"):
        ends = [family.predictive_quantile(np.array(p)) for p in (0.0, 1.0)]
        if hasattr(family, "quantile"):
            theta = np.asarray(family.mean(family.prior))
            ends += [family.quantile(np.array(p), theta) for p in (0.0, 1.0)]
    # Quantiles of records on a lattice lie half a step above them.
    half = 0.5 * getattr(family, "lattice", False)
    assert [float(end) for end in ends[::2]] == [low + half] * (len(ends) // 2)
    assert [float(end) for end in ends[1::2]] == [high] * (len(ends) // 2)


@pytest.mark.parametrize("probability", [1e-300, 1e-30, 1e-12, 1e-9, 0.3, 0.9, 1 - 1e-9, 1 - 1e-12])
@pytest.mark.parametrize("shape", [0.5, 3.0, 40.0])
def test_students_quantiles(probability, shape):
    """Independent: by mpmath's incomplete beta function."""
    model = privpost.NormalUnknownVariance(0.0, 1.0, shape, shape / 2)
    # Scale 1: t itself.
    t = mpmath.mpf(float(model.predictive_quantile(probability)))
    with mpmath.workdps(40):
        tail = mpmath.betainc(shape, 0.5, 0, 2 * shape / (2 * shape + t * t), regularized=True) / 2
        wanted = min(mpmath.mpf(probability), 1 - mpmath.mpf(probability))
        assert (t < 0) == (probability < 0.5)
        assert float(tail / wanted) == pytest.approx(1, rel=1e-6)


@pytest.mark.parametrize("probability", [0.1, 1 - 1e-3, 1 - 1e-9, 1 - 1e-12])
@pytest.mark.parametrize("alpha, beta", [(2.0, 2.0), (1.0, 30.0), (0.5, 5.0)])
def test_geometric_quantiles_have_no_largest_table(probability, alpha, beta):
    """Independent: P(X > x) by mpmath. Beyond a million records the table's end was the answer."""
    above = privpost.BetaGeometric(alpha, beta).predictive_quantile(probability) - 0.5
    with mpmath.workdps(40):

        def survival(x):
            return mpmath.beta(alpha, beta + x + 1) / mpmath.beta(alpha, beta)

        # One part in 1e9 of x: floats beyond 2^53 are not all whole numbers.
        assert survival(above * (1 + 1e-9)) <= (1 - mpmath.mpf(probability)) * (1 + mpmath.mpf(1e-4))
        if above:
            assert survival(above * (1 - 1e-9) - 1) >= (1 - mpmath.mpf(probability)) * (1 - mpmath.mpf(1e-4))


def test_critical_values_of_very_many_comparisons():
    # Independent: by mpmath, √2 erfinv(1 − 1e-30).
    with mpmath.workdps(60):
        wanted = float(mpmath.sqrt(2) * mpmath.erfinv(1 - mpmath.mpf(10) ** -30))
    assert critical_value(10**27) == pytest.approx(wanted, rel=1e-12)


@pytest.mark.parametrize("value", [1e-320, 1e-160, 1e160, 1.7e308, math.inf, math.nan])
@pytest.mark.parametrize("kind", discovery.kinds(), ids=lambda kind: kind.name)
def test_bounds_whose_noise_would_be_nothing_or_infinite_are_refused(kind, value):
    """Squares of such bounds vanish or overflow, with a warning of numpy's only."""
    for mechanism in kind.examples:
        names = {"feature_bound", "label_bound"} & {field.name for field in dataclasses.fields(mechanism.model)}
        for name in names:
            with pytest.raises(ValueError, match=f"{name} is"):
                dataclasses.replace(mechanism.model, **{name: value})
        for name in {"epsilon", "sigma"} & {field.name for field in dataclasses.fields(mechanism)}:
            with pytest.raises(ValueError, match=f"{name} is"):
                dataclasses.replace(mechanism, **{name: value})


@pytest.mark.parametrize("low, high", [(-1e308, 1e308), (-1e160, 0.0), (0.0, 1e-320), (1.0, 1.0), (math.nan, 1.0)])
def test_bounds_of_sums_that_floats_cannot_hold_are_refused(low, high):
    families = privpost.NormalKnownVariance(), privpost.NormalUnknownVariance()
    for model, family in zip((privpost.RedactedSum, privpost.ClampedMoments), families, strict=True):
        with pytest.raises(ValueError, match="low is"):
            model(family, low, high)
    with pytest.raises(ValueError, match=r"bounds are|low is"):
        privpost.GammaDraw.calibrate(
            privpost.GammaExponential(),
            9,
            privpost.Cost("rdp", 1.0, order=2.0),
            weighting="diffused",
            bounds=(low, high),
        )
