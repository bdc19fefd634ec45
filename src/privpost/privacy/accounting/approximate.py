"""Settings that meet (ε, δ)-DP: by conversion from a guarantee of another notion, and by exact privacy curves.

A privacy curve is δ(ε) = max over neighbours of the hockey-stick divergence sup_A P(A) − e^ε Q(A).
"""

import math
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
from scipy.special import betainc, betaincc, betaln, erfcx, expit, log_ndtr, logit

from privpost.distributions import truncated_beta
from privpost.models.base import check_range
from privpost.privacy.accounting.costs import Cost, to_approximate
from privpost.privacy.checks import approximate_budget

# The search tries up to this multiple of a setting, and down to its inverse.
_FARTHEST = 2.0**30
# A shift μ of normal laws below which, and an ε beyond which, their curve has a form of its own.
_SMALL_SHIFT, _LARGE_EPSILON = 1e-4, 1e6
# The weakest noise that is searched has the inverse of this deviation.
_WEAKEST = 1e-150
# Relative difference at which two computations of a δ agree.
_AGREES = 1e-6
# Orders at which Rényi curves are converted.
ORDERS = 1 + np.geomspace(0.02, 1000, 90)


def pure_from_approximate(epsilon: float, delta: float) -> float:
    """Largest ε0 such that every ε0-DP mechanism is (ε, δ)-DP: ln((e^ε + δ)/(1 − δ)).

    δ(ε) ≤ (e^ε0 − e^ε)/(1 + e^ε0) for every ε0-DP mechanism, attained by randomised response (Kairouz, Oh and
    Viswanath 2015).

    Raises:
        ValueError: an ε that is not positive or a δ outside [0, 1).
    """
    check_range("(0, inf)", epsilon=epsilon)
    check_range("[0, 1)", delta=delta)
    pure = float(np.logaddexp(epsilon, np.log(delta) if delta > 0 else -np.inf) - np.log1p(-delta))
    # Rounding of ε0 can exceed a small δ.
    while pure > epsilon and pure_curve(pure, epsilon) > delta:
        pure = float(np.nextafter(pure, 0.0))
    return pure


def pure_curve(pure: float, epsilon) -> Any:
    """δ(ε) = (e^ε0 − e^ε)/(1 + e^ε0) of every ε0-DP mechanism, attained by randomised response; 0 from ε0 on."""
    return -np.expm1(np.minimum(epsilon - pure, 0.0)) * expit(pure)


def laplace_from_approximate(epsilon: float, delta: float) -> float:
    """Δ/b of Laplace noise b on one number that is exactly (ε, δ)-DP: ε − 2 ln(1 − δ).

    With ε0 = Δ/b the curve is δ(ε) = 1 − exp((ε − ε0)/2), ε ≤ ε0.

    Raises:
        ValueError: an ε that is not positive or a δ outside [0, 1).
    """
    check_range("(0, inf)", epsilon=epsilon)
    check_range("[0, 1)", delta=delta)
    return float(epsilon - 2 * np.log1p(-delta))


def gaussian_from_approximate(epsilon: float, delta: float) -> float:
    """σ/Δ of Gaussian noise that is exactly (ε, δ)-DP, from dp-accounting (Balle and Wang 2018, theorem 8).

    Where its answer does not meet `gaussian_curve`, as for δ below 1e-15 at an ε near 0 and for ε beyond 1e10, a
    bisection of that curve takes its place.

    Raises:
        ValueError: an ε outside (0, 1e300] or a δ outside (0, 1), or both so small that noise would be too large.
    """
    check_range("(0, 1e300]", epsilon=epsilon)
    check_range("(0, 1)", delta=delta)
    from dp_accounting.gaussian_mechanism import get_sigma_gaussian

    # Its warnings are about answers that are not taken.
    with np.errstate(all="ignore"):
        try:
            sigma = float(get_sigma_gaussian(epsilon, delta))
        except ValueError:
            sigma = math.nan
        if sigma > 0 and abs(gaussian_curve(1 / sigma, epsilon) - delta) <= _AGREES * min(delta, 1 - delta):
            return sigma
    if gaussian_curve(_WEAKEST, epsilon) > delta:
        raise ValueError(f"epsilon is {epsilon!r} and delta is {delta!r}; no noise is known that meets them")
    # At the largest μ is δ = 1; 100 halvings of the logarithm reach its last digit.
    largest = 2 * math.sqrt(2 * epsilon) + 100
    return 1 / largest_within(lambda mu: gaussian_curve(mu, epsilon) <= delta, _WEAKEST, largest, steps=100)


def gaussian_curve(mu: float, epsilon: float) -> float:
    """δ(ε) of N(μ, 1) against N(0, 1): Φ(μ/2 − ε/μ) − e^ε Φ(−μ/2 − ε/μ) (Balle and Wang 2018, theorem 8).

    With Mills' ratio R(x) = Φ(−x)/φ(x) and x = ε/μ it is φ(x − μ/2) (R(x − μ/2) − R(x + μ/2)): about
    μ φ(x − μ/2) (1 − x R(x)) for a small μ, where the difference of probabilities has no digits left.
    """
    if mu < _SMALL_SHIFT:
        x = epsilon / mu
        # Beyond, φ(x) is 0.
        return float(mu * np.exp(-((x - mu / 2) ** 2) / 2) / np.sqrt(2 * np.pi) * (1 - x * mills(x))) if x < 40 else 0.0
    if epsilon > _LARGE_EPSILON:
        near, far = epsilon / mu - mu / 2, epsilon / mu + mu / 2
        return float(np.exp(log_ndtr(-near)) * (1 - mills(far) / mills(near)))
    above, below = log_ndtr(0.5 * mu - epsilon / mu), epsilon + log_ndtr(-0.5 * mu - epsilon / mu)
    return float(np.exp(above) * -np.expm1(min(below - above, 0.0)))


def mills(x: float) -> float:
    """Mills' ratio Φ(−x)/φ(x) of the standard normal law; inf below about −38."""
    return float(np.sqrt(np.pi / 2) * erfcx(x / np.sqrt(2)))


def beta_curve(parameters_p, parameters_q, epsilon, low: float = 0.0, high: float = 1.0) -> np.ndarray:
    """Hockey-stick divergence of beta distributions with equal α+β, both truncated to [low, high].

    The log-ratio is then monotone in θ, so that the best event is a half-line.

    Args:
        parameters_p, parameters_q: (α, β), shape (..., 2), with equal sums.
        epsilon: ε, broadcast against the leading axes; below 0 only for laws that differ.
        low, high: ends of the interval.

    Returns:
        δ(ε), shape (...); nan where the mass of the interval underflows.
    """
    p, q = np.broadcast_arrays(np.asarray(parameters_p, float), np.asarray(parameters_q, float))
    # The exponential of a larger ε overflows; δ is smaller there still.
    epsilon = np.minimum(epsilon, 700.0)
    # Reflected where P has the smaller α, so that the event is always {θ ≥ t}.
    flip = p[..., 0] < q[..., 0]
    p, q = (np.where(flip[..., None], side[..., ::-1], side) for side in (p, q))
    ends = np.where(flip, 1 - high, low), np.where(flip, 1 - low, high)
    gap = p[..., 0] - q[..., 0]
    middle = (ends[0] + ends[1]) / 2
    at_middle = truncated_beta.log_density(middle, p, *ends) - truncated_beta.log_density(middle, q, *ends)
    # Points are logits: with a small parameter, much of the law lies closer to 0 or 1 than floats can represent.
    with np.errstate(divide="ignore", invalid="ignore"):
        ends = logit(ends[0]), logit(ends[1])
        start = logit(middle) + (epsilon - at_middle) / gap
    start = np.clip(np.where(gap > 0, start, ends[1]), *ends)
    return np.maximum(_above(start, p, *ends) - np.exp(epsilon) * _above(start, q, *ends), 0.0)


def _above(start, parameters, low, high):
    """P(logit θ ≥ start) of a beta distribution truncated to logits in [low, high], from its smaller tail."""
    a, b = parameters[..., 0], parameters[..., 1]
    # Where most of the law lies above the interval, the interval's mass would be lost in 1 − (nearly 1).
    beyond = a > (a + b) * expit(high)
    a, b = np.where(beyond, b, a), np.where(beyond, a, b)
    at_start, at_low, at_high = (_upper_tail(np.where(beyond, -end, end), a, b) for end in (start, low, high))
    mass = at_low - at_high
    # A mass near underflow has lost some or all of its digits.
    return (at_start - at_high) / np.where(np.abs(mass) > 1e-280, mass, np.nan)


def _upper_tail(place, a, b):
    """P(logit θ ≥ place) of a beta distribution, from θ where θ is small, else from 1 − θ, which is quicker."""
    place, a, b = np.broadcast_arrays(place, a, b)
    low = place < -8
    tails = np.empty(place.shape)
    betainc(b, a, expit(-place), out=tails, where=~low)
    betaincc(a, b, expit(place), out=tails, where=low)
    # Where θ underflows, the first term of the series is exact.
    if np.any(far := np.abs(place) > 600):
        near, other = np.where(low, a, b), np.where(low, b, a)
        least = np.exp(np.minimum(-near * np.abs(place) - np.log(near) - betaln(near, other), 0.0))
        tails = np.where(far, np.where(low, 1 - least, least), tails)
    return tails


def bits_curve(mechanism, epsilon: float) -> float:
    """δ(ε) of a mechanism for bits that draws from a beta law: the maximum over all neighbouring counts, both ways.

    Args:
        mechanism: its `release_law` has the (α, β) of statistics (successes, failures), truncated to its `ends`.
        epsilon: ε ≥ 0.
    """
    successes = np.arange(mechanism.n + 1.0)
    laws = mechanism.release_law(np.stack([successes, mechanism.n - successes], axis=-1))
    ways = (laws[1:], laws[:-1]), (laws[:-1], laws[1:])
    return float(np.max([beta_curve(*way, epsilon, *mechanism.ends) for way in ways]))


def largest_within(met: Callable[[float], bool], low: float, high: float, steps: int = 40) -> float:
    """Largest value in [low, high] that meets a condition, by bisection of the logarithm; all smaller values meet it.

    Raises:
        ValueError: `low` does not meet it.
    """
    if met(high):
        return high
    if not met(low):
        raise ValueError(f"low is {low!r}; it does not meet the condition")
    for _ in range(steps):
        middle = float(np.sqrt(low * high))
        low, high = (middle, high) if met(middle) else (low, middle)
    return low


def converted_epsilon(rdp: Callable[[np.ndarray], np.ndarray], delta: float) -> float:
    """Smallest ε that a Rényi DP curve implies at δ, over `ORDERS` (dp-accounting)."""
    return to_approximate(ORDERS, rdp(ORDERS), delta)[0]


def implied(cost: Cost, rdp: Callable, budget: Cost) -> Cost:
    """The (ε, δ) guarantee that a pure or Rényi guarantee implies, stated at the budget's ε or δ.

    Args:
        cost: of notion "pure", or "rdp".
        rdp: the guarantee's Rényi curve, a function of orders.
        budget: of notion "approximate". A pure ε0 ≤ ε is stated with δ = 0, a larger one at the budget's ε; a Rényi
            curve at the budget's δ.
    """
    if cost.notion == "rdp":
        return Cost("approximate", converted_epsilon(rdp, budget.delta or 0.0), delta=budget.delta)
    if cost.epsilon <= budget.epsilon:
        return Cost("approximate", cost.epsilon, delta=0.0)
    delta = pure_curve(cost.epsilon, budget.epsilon)
    return Cost("approximate", budget.epsilon, delta=delta)


def largest_setting(at: Callable[[float], Any], budget: Cost, accounting: str, low: float, high: float, steps: int):
    """The mechanism of the largest setting in [low, high] whose cost by an accounting is within an (ε, δ) budget.

    Args:
        at: function of the setting, returning a mechanism.
        budget: of notion "approximate".
        accounting: "stated" or "exact".
        low, high, steps: as in `largest_within`.

    Raises:
        ValueError: the setting `low` costs more than the budget.
    """
    at = cache(at)

    def met(setting: float) -> bool:
        cost = at(setting).cost_in(budget, accounting)
        return cost.epsilon <= budget.epsilon and cost.delta <= budget.delta

    if not met(high) and not met(low):
        raise ValueError(f"budget is {budget}; {at(low).method} costs {at(low).cost_in(budget, accounting)} or more")
    return at(largest_within(met, low, high, steps))


def by_curve(mechanism: Any, budget: Cost, largest: float | None = None):
    """The mechanism with the least private setting whose privacy curve is within an (ε, δ) budget.

    Args:
        mechanism: without a calibrated setting it is returned if it meets the budget, else None.
        budget: of notion "approximate".
        largest: the largest setting that is tried, where privacy falls with the setting; when None, the search starts
            at the mechanism's setting and doubles or halves it.
    """
    _, allowed = approximate_budget(budget)
    setting = mechanism.calibrated
    if setting is None:
        return mechanism if mechanism.cost_in(budget, "exact").within(budget) else None

    def at(value: float):
        return replace(mechanism, **{setting: value})

    if largest is not None:
        return largest_setting(at, budget, "exact", 1e-6, largest, steps=30)
    start = getattr(mechanism, setting)

    @cache
    def delta(factor: float) -> float:
        try:
            return float(at(start * factor).privacy_curve(budget.epsilon))
        except ValueError:
            return math.inf

    # Which direction loses privacy; a refused value counts as no privacy.
    sign = 1 if delta(2.0) > delta(0.5) else -1
    factor = 1.0
    while delta(factor**sign) > allowed and factor > _FARTHEST**-1:
        factor /= 2
    while delta((2 * factor) ** sign) <= allowed and factor < _FARTHEST:
        factor *= 2
    if delta(factor**sign) > allowed:
        return None
    furthest = largest_within(lambda value: delta(value**sign) <= allowed, factor, 2 * factor, steps=20)
    return at(start * furthest**sign)


def largest_renyi_budget(calibrate: Callable, epsilon: float, delta: float, order: float = 2.0):
    """The mechanism with the largest Rényi budget at one order whose whole curve converts to at most (ε, δ).

    The mechanisms form a family with one free setting, so any order at which their curves are finite can index them.

    Args:
        calibrate: function of a `Cost`, returning a mechanism.
        epsilon, delta: what the release may cost.
        order: λ of the budgets.
    """
    return largest_setting(
        lambda setting: calibrate(Cost("rdp", setting, order=order)),
        Cost("approximate", epsilon, delta=delta),
        "stated",
        low=1e-9,
        high=1e6,
        steps=26,
    )
