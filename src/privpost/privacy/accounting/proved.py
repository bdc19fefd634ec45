"""Finds the posterior draw that is nearest to the true posterior and whose cost is proved to be within a budget.

The search is in floating point. The proof is in interval arithmetic, with the numbers that a draw uses.
"""

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from privpost.distributions.exact_draws import flint
from privpost.privacy.accounting.approximate import ORDERS, largest_within
from privpost.privacy.divergences import certified

# The search tries no smaller coefficient.
_LEAST = 1e-12


def nearest(make: Callable[[float], Any], weighting: str, epsilon: float, delta: float | None) -> tuple[Any, float]:
    """Among mechanisms within a budget, return the one nearest to the true posterior, and an upper bound of its ε.

    Args:
        make: function that returns the mechanism, given an ε for "ops" and otherwise a coefficient.
        weighting: "ops", or the weighting of a weighted posterior.
        epsilon, delta: the budget; δ is None for "ops".

    Raises:
        ValueError: python-flint is missing, or no draw is within the budget.
    """
    flint()
    if weighting == "direct":
        mechanism = make(1.0)
        if (cost := bound(mechanism, delta)[0]) > epsilon:
            raise ValueError(
                f"epsilon is {epsilon:g}, but a draw from the posterior itself costs {cost:.4g} at delta {delta:g}; "
                "diffused and concentrated draws cost less."
            )
        return mechanism, cost
    if weighting == "ops":
        # If T = 1 costs less than ε, the first setting is within the budget.
        largest, step, what = epsilon, 2.0**-53, "temperature"
    else:
        assert delta is not None
        largest, step, what = _largest(make, epsilon, delta), 1e-12, "coefficient"
    for setting in _lessened(largest, step):
        mechanism = make(setting)
        if (cost := bound(mechanism, delta)[0]) <= epsilon:
            return mechanism, cost
    raise ValueError(f"epsilon is {epsilon:g}: no {what} is proved to meet it")


def bound(mechanism, delta: float | None) -> tuple[float, float]:
    """Return the proved ε of a mechanism and the Rényi order used. A `delta` of None asks for the pure ε."""
    if delta is None:
        return mechanism.certified_epsilon(), math.inf
    order = _converted(mechanism, delta)[1]
    return certified.approximate_epsilon(mechanism.certified_rdp(order), order, delta), order


def _largest(make, epsilon: float, delta: float) -> float:
    """Return the largest coefficient that costs at most ε at δ, computed in floating point."""
    try:
        return largest_within(lambda value: _converted(make(value), delta)[0] <= epsilon, _LEAST, 1.0, 60)
    except ValueError:
        # As orders are bounded, even a draw from the prior costs something at δ. The ε in the message is rounded up.
        least = 1.005 * _converted(make(_LEAST), delta)[0]
        raise ValueError(
            f"epsilon is {epsilon:g}, but must be at least {least:.3g}: less cannot be shown at delta {delta:g} by "
            f"Rényi orders up to {ORDERS[-1]:g}."
        ) from None


def _lessened(value: float, step: float) -> Iterator[float]:
    """Yield a value and then smaller values, down to 1e-12 times this value, with doubling relative steps."""
    least = 1e-12 * value
    while value >= least:
        yield value
        value = min(math.nextafter(value, 0.0), value * (1 - step))
        step = min(2 * step, 0.5)


def _converted(mechanism, delta: float) -> tuple[float, float]:
    """Return the smallest ε at δ over all orders (inf if none is finite), and the order that gives it."""
    # The conversion of dp-accounting returns no order for an infinite or negligible cost.
    epsilons = mechanism.rdp(ORDERS) + np.log1p(-1 / ORDERS) - (math.log(delta) + np.log(ORDERS)) / (ORDERS - 1)
    best = np.argmin(epsilons)
    return float(epsilons[best]), float(ORDERS[best])
