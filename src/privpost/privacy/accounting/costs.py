"""Privacy costs, their composition and their conversion between notions."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from privpost.models.base import Checked, check_range, is_number

Notion = Literal["pure", "rdp", "approximate"]
NOTIONS = get_args(Notion)

# With this tolerance, a budget covers its k equal parts, or a charge found by bisection, despite rounding.
RELATIVE_TOLERANCE = 1e-9


@dataclass(frozen=True)
class Cost(metaclass=Checked):
    """The cost of one release in one notion of differential privacy. Neighbours differ by substitution of a record.

    Attributes:
        notion: "pure" (ε-DP), "rdp" (Rényi DP of one order, Mironov 2017) or "approximate" ((ε, δ)-DP).
        epsilon: ε ≥ 0; `inf` means no privacy.
        order: order λ ≥ 1 of the Rényi divergence, for "rdp" only: 1 is the Kullback-Leibler limit, `inf` is pure DP.
        delta: δ in [0, 1], for "approximate" only.

    Raises:
        ValueError: a field is outside its range, missing, or given for a notion that does not have it.

    >>> print(Cost("pure", 0.5) + Cost("pure", 0.25))
    pure(epsilon=0.75)
    """

    notion: Notion
    epsilon: float
    order: float | None = None
    delta: float | None = None

    def __post_init__(self):
        if self.notion not in NOTIONS:
            raise ValueError(f"notion is {self.notion!r}; allowed: {', '.join(NOTIONS)}")
        if not is_number(self.epsilon) or not self.epsilon >= 0:
            raise ValueError(f"epsilon is {self.epsilon!r}; it must be >= 0 (inf is allowed)")
        if self.notion == "rdp":
            if not is_number(self.order) or not self.order >= 1:
                raise ValueError(f"order is {self.order!r}; an rdp cost needs an order >= 1")
        elif self.order is not None:
            raise ValueError(f"order is {self.order!r}; only an rdp cost has one, this one is {self.notion}")
        if self.notion == "approximate":
            if not is_number(self.delta) or not 0 <= self.delta <= 1:
                raise ValueError(f"delta is {self.delta!r}; an approximate cost needs a delta in [0, 1]")
        elif self.delta is not None:
            raise ValueError(f"delta is {self.delta!r}; only an approximate cost has one, this one is {self.notion}")

    def to_notion_of(self, other: "Cost") -> "Cost":
        """Return the guarantee in the notion and order of another cost.

        A pure cost converts to Rényi DP by `pure_to_rdp`, and to approximate DP with δ = 0. Any other cost converts
        only to its own notion and order. Raises a ValueError if there is no conversion.
        """
        check_cost("budget", other)
        if self.notion == other.notion:
            if self.order != other.order:
                raise ValueError(f"a cost of order {self.order} does not convert to order {other.order}")
            return self
        if self.notion == "pure" and other.notion == "rdp":
            return Cost("rdp", float(pure_to_rdp(self.epsilon, other.order)), order=other.order)
        if self.notion == "pure" and other.notion == "approximate":
            return Cost("approximate", self.epsilon, delta=0.0)
        raise ValueError(f"notion: a cost of notion {self.notion!r} does not convert to {other.notion!r}")

    def within(self, budget: "Cost") -> bool:
        """Whether the cost, in the budget's notion, is at most the budget up to a relative tolerance of 1e-9."""
        cost = self.to_notion_of(budget)
        return at_most(cost.epsilon, budget.epsilon) and at_most(cost.delta or 0.0, budget.delta or 0.0)

    def __add__(self, other: "Cost") -> "Cost":
        """Return the cost of two releases about the same records together."""
        check_cost("other", other)
        return sequential([self, other])

    def __str__(self):
        order = "" if self.order is None else f", order={self.order:g}"
        delta = "" if self.delta is None else f", delta={self.delta:g}"
        return f"{self.notion}(epsilon={self.epsilon:g}{order}{delta})"


def check_cost(name: str, value) -> None:
    """Raises a ValueError unless a value is a `Cost`."""
    if not isinstance(value, Cost):
        raise ValueError(f'{name} is {value!r}; it must be a Cost, for instance Cost("pure", 1.0)')


def at_most(value: float, limit: float) -> bool:
    return value <= limit * (1 + RELATIVE_TOLERANCE)


def sequential(costs: Sequence[Cost]) -> Cost:
    """Return the cost of several releases about the same records: the sums of ε and of δ.

    Raises a ValueError if there are no costs, or if they differ in notion or order.
    """
    first = _one_notion(costs)
    delta = None if first.delta is None else min(1.0, math.fsum(cost.delta or 0.0 for cost in costs))
    return Cost(first.notion, math.fsum(cost.epsilon for cost in costs), first.order, delta)


def parallel(costs: Sequence[Cost], changed_parts: int = 1) -> Cost:
    """Return the cost of releases about disjoint parts of the records: the sum of the `changed_parts` largest costs.

    Args:
        costs: cost of the release about each part.
        changed_parts: number of parts in which neighbouring data sets can differ: 1 if every record stays in its
            part, 2 if a substitution may move a record from one part to another.

    Raises:
        ValueError: there are no costs, they differ in notion or order, or changed_parts is not 1 or 2.
    """
    _one_notion(costs)
    if changed_parts not in (1, 2):
        raise ValueError(f"changed_parts is {changed_parts!r}; one substituted record changes 1 or 2 parts")
    largest = sorted(costs, key=lambda cost: (cost.epsilon, cost.delta or 0.0), reverse=True)[:changed_parts]
    total = sequential(largest)
    if total.notion == "approximate":
        # One part may have the largest ε and another the largest δ, so ε and δ are summed separately.
        deltas = sorted((cost.delta or 0.0 for cost in costs), reverse=True)[:changed_parts]
        total = Cost("approximate", total.epsilon, delta=min(1.0, math.fsum(deltas)))
    return total


def _one_notion(costs: Sequence[Cost]) -> Cost:
    if not costs:
        raise ValueError("costs is empty; composition needs at least one cost")
    for cost in costs:
        check_cost("cost", cost)
    kinds = {(cost.notion, cost.order) for cost in costs}
    if len(kinds) > 1:
        raise ValueError(f"costs mix notions or orders: {', '.join(sorted(map(str, costs)))}")
    return costs[0]


def pure_to_rdp(epsilon, order) -> np.ndarray:
    """Return the largest Rényi divergence D_λ that ε-DP allows. Randomised response attains this bound.

        D_λ ≤ (ln cosh((λ−½)ε) − ln cosh(ε/2)) / (λ−1),    λ → 1: ε tanh(ε/2),    λ → ∞: ε.

    Args:
        epsilon: ε ≥ 0, any shape; `inf` gives `inf`.
        order: λ ≥ 1, broadcast against epsilon; `inf` is allowed.

    Raises:
        ValueError: an ε is below 0 or an order is below 1.
    """
    check_range("[0, inf]", epsilon=epsilon)
    check_range("[1, inf]", order=order)
    epsilon, order = np.broadcast_arrays(np.asarray(epsilon, float), np.asarray(order, float))
    excess = order - 1
    with np.errstate(invalid="ignore", over="ignore", divide="ignore"):
        # With h = (λ−1)ε the numerator is ln(cosh h + tanh(ε/2) sinh h), which avoids a difference of large numbers.
        h = excess * epsilon
        small = np.log1p(2 * np.sinh(h / 2) ** 2 + np.tanh(epsilon / 2) * np.sinh(h)) / excess
        large = (h + np.log1p(np.exp(-epsilon - 2 * h)) - np.log1p(np.exp(-epsilon))) / excess
        bound = np.where(h < 1, small, large)
    bound = np.where(excess == 0, epsilon * np.tanh(epsilon / 2), bound)
    bound = np.where(np.isinf(order) | np.isinf(epsilon), epsilon, bound)
    return np.where(epsilon == 0, 0.0, np.minimum(bound, epsilon))


def rdp_to_pure_epsilon(target, order) -> np.ndarray:
    """Return the largest ε for which every ε-DP mechanism has Rényi divergence at most `target` at the given order.

    Args:
        target: Rényi DP parameter ≥ 0, any shape; `inf` gives `inf`.
        order: λ ≥ 1, broadcast against target; `inf` is allowed.

    Raises:
        ValueError: a target is below 0 or an order is below 1.
    """
    check_range("[0, inf]", target=target)
    check_range("[1, inf]", order=order)
    target, order = np.broadcast_arrays(np.asarray(target, float), np.asarray(order, float))
    # As ε ≥ D_λ(ε) ≥ D_1(ε) = ε tanh(ε/2) ≥ ε − 0.56, the root lies in [target, target + 0.6].
    low, high = target.copy(), target + 0.6
    for _ in range(200):
        middle = (low + high) / 2
        below = pure_to_rdp(middle, order) <= target
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    return np.where(target == 0, 0.0, low)


def to_approximate(orders, epsilons, delta: float) -> tuple[float, float]:
    """Return the smallest ε such that a Rényi DP curve implies (ε, δ)-DP, and the order that gives this ε.

    The package dp-accounting computes ε (Canonne, Kamath and Steinke 2020, proposition 12). The result is (inf, nan) if
    the curve is infinite at all orders.

    Args:
        orders: orders ≥ 1 of the curve, shape (k,). Orders up to 1.01 give no finite ε. The order inf means pure DP.
        epsilons: Rényi DP parameters, shape (k,); `inf` beyond an asymptote.
        delta: δ in (0, 1).

    Raises:
        ValueError: the shapes differ, an order is below 1, an ε is below 0, or δ is outside (0, 1).
    """
    orders, epsilons = np.asarray(orders, float), np.asarray(epsilons, float)
    if orders.ndim != 1 or orders.shape != epsilons.shape:
        raise ValueError(f"orders and epsilons have shapes {orders.shape} and {epsilons.shape}; both must be (k,)")
    check_range("[0, inf]", epsilons=epsilons)
    check_range("[1, inf]", orders=orders)
    check_range("(0, 1)", delta=delta)
    # At the order inf, dp-accounting would divide inf by inf.
    pure = float(np.min(epsilons[np.isinf(orders)], initial=math.inf))
    best = (pure, math.inf) if pure < math.inf else (math.inf, math.nan)
    known = np.isfinite(epsilons) & np.isfinite(orders)
    if known.any():
        from dp_accounting.rdp import rdp_privacy_accountant

        epsilon, order = map(float, rdp_privacy_accountant.compute_epsilon(orders[known], epsilons[known], delta))
        if not epsilon >= 0:
            raise ValueError(f"orders and epsilons have no (ε, δ) at delta {delta!r}: dp-accounting says {epsilon}")
        best = min((epsilon, order), best, key=lambda answer: answer[0])
    return best
