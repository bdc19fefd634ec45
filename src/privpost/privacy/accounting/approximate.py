"""Settings that meet (ε, δ)-DP, by conversion of pure or Rényi guarantees or by exact privacy curves.

A privacy curve δ(ε) is the maximum over neighbours of the hockey-stick divergence sup_A P(A) − e^ε Q(A).
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
# For a smaller shift μ of normal laws, and for a larger ε, other formulas compute the curve without cancellation.
_SMALL_SHIFT, _LARGE_EPSILON = 1e-4, 1e6
# The smallest shift μ = Δ/σ that is tried, hence the largest noise.
_WEAKEST = 1e-150
# Two computations of a δ agree if their relative difference is at most this.
_AGREES = 1e-6
# Orders at which Rényi curves are converted.
ORDERS = 1 + np.geomspace(0.02, 1000, 90)


def pure_from_approximate(epsilon: float, delta: float) -> float:
    """Return the largest ε0 such that every ε0-DP mechanism is (ε, δ)-DP: ln((e^ε + δ)/(1 − δ)).

    Raises a ValueError if ε is not positive or δ is outside [0, 1).
    """
    check_range("(0, inf)", epsilon=epsilon)
    check_range("[0, 1)", delta=delta)
    pure = float(np.logaddexp(epsilon, np.log(delta) if delta > 0 else -np.inf) - np.log1p(-delta))
    # For a small δ, the rounding error of ε0 can push the curve above δ.
    while pure > epsilon and pure_curve(pure, epsilon) > delta:
        pure = float(np.nextafter(pure, 0.0))
    return pure


def pure_curve(pure: float, epsilon) -> Any:
    """Return the largest δ(ε) of any ε0-DP mechanism: (e^ε0 − e^ε)/(1 + e^ε0), or 0 if ε ≥ ε0.

    Randomised response attains this δ (Kairouz, Oh and Viswanath 2015).
    """
    return -np.expm1(np.minimum(epsilon - pure, 0.0)) * expit(pure)


def laplace_from_approximate(epsilon: float, delta: float) -> float:
    """Return the ratio Δ/b = ε − 2 ln(1 − δ) at which Laplace noise of scale b on one number is exactly (ε, δ)-DP.

    The curve is δ(ε) = 1 − exp((ε − Δ/b)/2) for ε ≤ Δ/b. Raises a ValueError unless ε > 0 and 0 ≤ δ < 1.
    """
    check_range("(0, inf)", epsilon=epsilon)
    check_range("[0, 1)", delta=delta)
    return float(epsilon - 2 * np.log1p(-delta))


def gaussian_from_approximate(epsilon: float, delta: float) -> float:
    """Return the ratio σ/Δ at which Gaussian noise is exactly (ε, δ)-DP (Balle and Wang 2018, theorem 8).

    Raises:
        ValueError: ε is outside (0, 1e300], δ is outside (0, 1), or both are too small for any known noise.
    """
    check_range("(0, 1e300]", epsilon=epsilon)
    check_range("(0, 1)", delta=delta)
    from dp_accounting.gaussian_mechanism import get_sigma_gaussian

    # dp-accounting warns about answers that the check below rejects.
    with np.errstate(all="ignore"):
        try:
            sigma = float(get_sigma_gaussian(epsilon, delta))
        except ValueError:
            sigma = math.nan
        if sigma > 0 and abs(gaussian_curve(1 / sigma, epsilon) - delta) <= _AGREES * min(delta, 1 - delta):
            return sigma
    if gaussian_curve(_WEAKEST, epsilon) > delta:
        raise ValueError(f"epsilon is {epsilon!r} and delta is {delta!r}; no noise is known that meets them")
    # δ is 1 at the largest μ. After 100 bisections of ln μ, μ is exact to its last digit.
    largest = 2 * math.sqrt(2 * epsilon) + 100
    return 1 / largest_within(lambda mu: gaussian_curve(mu, epsilon) <= delta, _WEAKEST, largest, steps=100)


def gaussian_curve(mu: float, epsilon: float) -> float:
    """Return δ(ε) of N(μ, 1) against N(0, 1): Φ(μ/2 − ε/μ) − e^ε Φ(−μ/2 − ε/μ) (Balle and Wang 2018, theorem 8)."""
    # With Mills' ratio R(x) = Φ(−x)/φ(x) and x = ε/μ, δ is φ(x − μ/2) (R(x − μ/2) − R(x + μ/2)). For a small μ this is
    # about μ φ(x − μ/2) (1 − x R(x)).
    if mu < _SMALL_SHIFT:
        x = epsilon / mu
        # φ(x) is 0 in floating point for larger x.
        return float(mu * np.exp(-((x - mu / 2) ** 2) / 2) / np.sqrt(2 * np.pi) * (1 - x * mills(x))) if x < 40 else 0.0
    if epsilon > _LARGE_EPSILON:
        near, far = epsilon / mu - mu / 2, epsilon / mu + mu / 2
        return float(np.exp(log_ndtr(-near)) * (1 - mills(far) / mills(near)))
    above, below = log_ndtr(0.5 * mu - epsilon / mu), epsilon + log_ndtr(-0.5 * mu - epsilon / mu)
    return float(np.exp(above) * -np.expm1(min(below - above, 0.0)))


def mills(x: float) -> float:
    """Mills' ratio Φ(−x)/φ(x) of the standard normal law, which overflows to inf for x below about −38."""
    return float(np.sqrt(np.pi / 2) * erfcx(x / np.sqrt(2)))


def beta_curve(parameters_p, parameters_q, epsilon, low: float = 0.0, high: float = 1.0) -> np.ndarray:
    """Return the hockey-stick divergence of two beta distributions with equal α+β, both truncated to [low, high].

    Args:
        parameters_p, parameters_q: (α, β), shape (..., 2), with equal sums.
        epsilon: ε, broadcast against the leading axes. A negative ε needs two different laws.
        low, high: ends of the interval.

    Returns:
        δ(ε), shape (...); nan if the probability of the interval underflows.
    """
    p, q = np.broadcast_arrays(np.asarray(parameters_p, float), np.asarray(parameters_q, float))
    # For a larger ε, e^ε overflows. The δ at such an ε is below the δ at 700.
    epsilon = np.minimum(epsilon, 700.0)
    # If P has the smaller α, θ is replaced by 1 − θ, so the event is always {θ ≥ t}.
    flip = p[..., 0] < q[..., 0]
    p, q = (np.where(flip[..., None], side[..., ::-1], side) for side in (p, q))
    ends = np.where(flip, 1 - high, low), np.where(flip, 1 - low, high)
    # As α + β is equal, the log-ratio of the densities is monotone in θ, so a half-line attains the supremum.
    gap = p[..., 0] - q[..., 0]
    middle = (ends[0] + ends[1]) / 2
    at_middle = truncated_beta.log_density(middle, p, *ends) - truncated_beta.log_density(middle, q, *ends)
    # Points are logits of θ: with a small parameter, θ is often closer to 0 or 1 than floats can represent.
    with np.errstate(divide="ignore", invalid="ignore"):
        ends = logit(ends[0]), logit(ends[1])
        start = logit(middle) + (epsilon - at_middle) / gap
    start = np.clip(np.where(gap > 0, start, ends[1]), *ends)
    return np.maximum(_above(start, p, *ends) - np.exp(epsilon) * _above(start, q, *ends), 0.0)


def _above(start, parameters, low, high):
    """Return P(logit θ ≥ start) of a beta distribution that is truncated to logits in [low, high]."""
    a, b = parameters[..., 0], parameters[..., 1]
    # If most of the law lies above the interval, upper tails near 1 would cancel. Then lower tails are used.
    beyond = a > (a + b) * expit(high)
    a, b = np.where(beyond, b, a), np.where(beyond, a, b)
    at_start, at_low, at_high = (_upper_tail(np.where(beyond, -end, end), a, b) for end in (start, low, high))
    mass = at_low - at_high
    # A probability near underflow has too few correct digits.
    return (at_start - at_high) / np.where(np.abs(mass) > 1e-280, mass, np.nan)


def _upper_tail(place, a, b):
    """Return P(logit θ ≥ place) of a beta distribution."""
    place, a, b = np.broadcast_arrays(place, a, b)
    low = place < -8
    tails = np.empty(place.shape)
    betainc(b, a, expit(-place), out=tails, where=~low)
    betaincc(a, b, expit(place), out=tails, where=low)
    # If θ underflows, the first term of the power series is exact.
    if np.any(far := np.abs(place) > 600):
        near, other = np.where(low, a, b), np.where(low, b, a)
        least = np.exp(np.minimum(-near * np.abs(place) - np.log(near) - betaln(near, other), 0.0))
        tails = np.where(far, np.where(low, 1 - least, least), tails)
    return tails


def bits_curve(mechanism, epsilon: float) -> float:
    """Return δ(ε), the maximum over neighbours, of a mechanism that draws from a beta law, given binary data.

    Args:
        mechanism: a mechanism with `release_law`, which gives (α, β) for (successes, failures), and with `ends`, which
            truncate the beta law.
        epsilon: ε ≥ 0.
    """
    successes = np.arange(mechanism.n + 1.0)
    laws = mechanism.release_law(np.stack([successes, mechanism.n - successes], axis=-1))
    ways = (laws[1:], laws[:-1]), (laws[:-1], laws[1:])
    return float(np.max([beta_curve(*way, epsilon, *mechanism.ends) for way in ways]))


def largest_within(met: Callable[[float], bool], low: float, high: float, steps: int = 40) -> float:
    """Return the largest value in [low, high] that meets a condition, by bisection on a logarithmic scale.

    All smaller values must meet the condition too. Raises a ValueError if `low` does not meet the condition.
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
    """Return the smallest ε that a Rényi DP curve at `ORDERS` implies at δ."""
    return to_approximate(ORDERS, rdp(ORDERS), delta)[0]


def implied(cost: Cost, rdp: Callable, budget: Cost) -> Cost:
    """Return the (ε, δ) guarantee that a pure or Rényi guarantee implies.

    A Rényi guarantee is converted at the budget's δ. A pure ε0 becomes (ε0, 0) if ε0 is within the budget. Otherwise
    its δ at the budget's ε is returned.

    Args:
        cost: a cost of notion "pure" or "rdp".
        rdp: the Rényi curve of the guarantee, a function of orders.
        budget: a budget of notion "approximate".
    """
    if cost.notion == "rdp":
        return Cost("approximate", converted_epsilon(rdp, budget.delta or 0.0), delta=budget.delta)
    if cost.epsilon <= budget.epsilon:
        return Cost("approximate", cost.epsilon, delta=0.0)
    delta = pure_curve(cost.epsilon, budget.epsilon)
    return Cost("approximate", budget.epsilon, delta=delta)


def largest_setting(at: Callable[[float], Any], budget: Cost, accounting: str, low: float, high: float, steps: int):
    """Return the mechanism with the largest setting in [low, high] whose cost is within an (ε, δ) budget.

    Args:
        at: function of the setting that returns a mechanism.
        budget: a budget of notion "approximate".
        accounting: "stated" or "exact".
        low, high: ends of the search.
        steps: number of bisections.

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
    """Return the mechanism with the least private setting whose privacy curve is within an (ε, δ) budget.

    A mechanism without a setting stays as it is. The result is None if the budget covers no mechanism.

    Args:
        mechanism: the mechanism to calibrate.
        budget: a budget of notion "approximate".
        largest: the largest setting to try, if larger settings are less private. If None, the search starts at the
            mechanism's setting, and doubles or halves it.
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

    # Find the direction in which privacy falls. A setting that the mechanism refuses counts as no privacy.
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
    """Return the mechanism for the largest Rényi budget, at one order, that keeps a release (ε, δ)-DP.

    All orders of the mechanism's Rényi curve are converted to (ε, δ)-DP.

    Args:
        calibrate: function of a `Cost` that returns a mechanism.
        epsilon, delta: what the release may cost.
        order: order λ of the Rényi budgets.
    """
    return largest_setting(
        lambda setting: calibrate(Cost("rdp", setting, order=order)),
        Cost("approximate", epsilon, delta=delta),
        "stated",
        low=1e-9,
        high=1e6,
        steps=26,
    )
