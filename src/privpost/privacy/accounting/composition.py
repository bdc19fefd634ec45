"""Privacy of several releases about the same data, by composing privacy loss distributions (package dp-accounting).

The curve δ(ε) of k releases with equal laws is the curve of the k-fold product of these laws. Releases of different
kinds are composed through laws that dominate them (`losses`). Loss distributions are put on a grid, which raises δ
(Doroshenko et al. 2022). Losses beyond the grid count as infinite.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np
from scipy.special import betaincinv

from privpost.distributions import truncated_beta
from privpost.models.base import check_range
from privpost.privacy.accounting.approximate import ORDERS, beta_curve, largest_within
from privpost.privacy.accounting.costs import Cost, to_approximate
from privpost.privacy.accounting.losses import Law, Normal, Response, Summed

# Probability of losses beyond the grid, which count as infinite.
TAIL = 1e-18
# The smallest and the largest ε of a search.
_SMALLEST = 1e-6
_LARGEST = 1e4
# Number of points of the grid for composed losses.
_POINTS = 2.0**18
# The product of more than this many different laws is not computed.
_LAWS = 200
# Bound on the rounding error of a curve.
_ROUNDING = 1e-12


def loss_distribution(parameters_p, parameters_q, points: int, low: float = 0.0, high: float = 1.0) -> Any:
    """Return the law of the privacy loss ln P/Q under P, rounded up on a grid (`dp_accounting.pld.pld_pmf.PLDPmf`).

    Args:
        parameters_p, parameters_q: (α, β), shape (2,), of beta laws with equal α + β, truncated to [low, high].
        points: number of grid points.
    """
    from dp_accounting.pld import pld_pmf

    laws = law_p, law_q = np.array([parameters_p, parameters_q], float)
    # The loss is monotone in θ, so its extremes are at the ends of the range of both laws.
    ends = np.clip([betaincinv(*laws.T, TAIL), 1 - betaincinv(*laws.T[::-1], TAIL)], low, high)
    loss = np.subtract(*(truncated_beta.log_density(ends, law, low, high) for law in laws))
    width = np.ptp(loss) / points
    grid = np.arange(int(np.floor(loss.min() / width)), int(np.ceil(loss.max() / width)) + 1)
    deltas = np.clip(beta_curve(law_p, law_q, grid * width, low, high), 0.0, 1.0)
    return pld_pmf.create_pmf_pessimistic_connect_dots(width, grid, deltas)


def bits_epsilon(mechanism: Any, draws: Sequence[int], delta: float, points: int) -> np.ndarray:
    """Return, for each number k of draws, the smallest ε at which k draws together are (ε, δ)-DP.

    Args:
        mechanism: a mechanism for binary data that draws from a beta law, as in `approximate.bits_curve`.
        draws: numbers k of draws.
        delta: δ of all draws together.
        points: number of grid points for the losses of one draw.
    """
    epsilons = np.zeros(len(draws))
    for pair in mechanism.neighbouring_statistics():
        laws = mechanism.release_law(pair)
        for law_p, law_q in (laws, laws[::-1]):
            single = loss_distribution(law_p, law_q, points, *mechanism.ends)
            for place, k in enumerate(draws):
                together = single.self_compose(k)
                if together.get_delta_for_epsilon(epsilons[place]) > delta:
                    epsilons[place] = together.get_epsilon_for_delta(delta)
    return epsilons


def naive_epsilon(curve: Callable[[float], float], draws: int, delta: float) -> float:
    """Return the ε of k draws by simple addition: k ε₁, where one draw is (ε₁, δ/k)-DP by its curve δ(ε)."""
    if curve(0.0) <= delta / draws:
        return 0.0
    inverse = largest_within(lambda value: curve(1 / value) <= delta / draws, 1 / _LARGEST, 1 / _SMALLEST)
    return draws / inverse


def renyi_epsilon(rdp: Callable[[np.ndarray], np.ndarray], draws: int, delta: float) -> float:
    """Return the ε at δ of k draws, by conversion of the sum of their Rényi curves."""
    return to_approximate(ORDERS, draws * rdp(ORDERS), delta)[0]


def compose(releases: Iterable[Any], delta: float) -> Cost:
    """Return an (ε, δ) cost of several releases about the same records.

    The cost is rounded up, and its ε is inf if none is known. The cost is valid only if no release influenced the
    choice or the number of later releases.

    Args:
        releases: each is a law of `privpost.privacy.accounting.losses`, a pure or (ε, δ) `Cost`, a mechanism, or a
            function that returns Rényi DP parameters at orders (k,). `Normal(shift)` with shift = Δ/σ is the law of
            Gaussian noise. `Response(epsilon, delta)` is a law for anything that is (ε, δ)-DP.
        delta: δ in (0, 1) of all releases together.

    Raises:
        ValueError: there are no releases, a cost is in Rényi DP (one order is not enough), or δ is outside (0, 1).

    >>> from privpost.privacy.accounting.losses import Normal, Response
    >>> print(compose([Normal(0.5)] * 4 + [Response(0.1)], 1e-6))
    approximate(epsilon=5.25166, delta=1e-06)
    """
    check_range("(0, 1)", delta=delta)
    laws = [_law(release) for release in releases]
    if not laws:
        raise ValueError("releases is empty; composition needs at least one")
    return Cost("approximate", together(laws, delta), delta=delta)


def _law(release: Any) -> Law:
    law = getattr(release, "loss", release)
    if isinstance(law, Law):
        return law
    cost = release.cost() if hasattr(release, "cost") else release
    if isinstance(cost, Cost) and cost.notion != "rdp":
        return Response(cost.epsilon, cost.delta or 0.0)
    curve = getattr(release, "rdp", release)
    if callable(curve) and (epsilons := curve(ORDERS)) is not None:
        return Summed(tuple(np.asarray(epsilons, float).tolist()))
    raise ValueError(
        f"a release is {release!r}; it must be a law of privpost.privacy.accounting.losses, a pure or approximate "
        "Cost, a mechanism, or a function of orders that gives Rényi DP parameters"
    )


def together(laws: Sequence[Law], delta: float, tell: Callable[[int, int], None] | None = None) -> float:
    """Return an ε at which several releases, one per law, are (ε, δ)-DP together, or inf if no ε is known.

    The result is the smallest of three values: the sum of the pure ε, the ε of the sum of all Rényi curves, and the ε
    of the product of all laws. The result is valid only if neither the laws nor their number depend on earlier
    releases. Otherwise only sums of ε and δ are proved. A series of releases that is stopped because of a result
    costs as much as the whole series.

    Args:
        laws: at least one law.
        delta: δ in (0, 1).
        tell: function that is called after each step with the number of steps done and the number of all steps.
    """
    counts = Counter(law for law in laws if not law.perfect)
    if not counts:
        return 0.0
    pure = math.fsum(law.pure * number for law, number in counts.items())
    # Each different law takes three steps.
    steps = _Steps(3 * len(counts), tell)
    curves = {law: number * law.rdp(ORDERS) for law, number in steps(counts.items())}
    summed = to_approximate(ORDERS, np.sum(list(curves.values()), axis=0), delta)[0]
    # Only Rényi curves of the laws `Normal` and `Summed` are known.
    if normal := [law for law in counts if isinstance(law, Normal | Summed)]:
        for law in normal:
            del counts[law]
        counts[Summed(tuple(np.sum([curves[law] for law in normal], axis=0).tolist()))] = 1
    product = _product_epsilon(counts, delta, steps) if len(counts) <= _LAWS else math.inf
    return min(pure, summed, product)


class _Steps:
    """Iterates over items, and reports after each item the number of steps done and the number of all steps."""

    def __init__(self, total: int, tell: Callable[[int, int], None] | None):
        self._total, self._tell, self._done = total, tell, 0

    def __call__(self, items: Iterable) -> Iterator:
        for item in items:
            yield item
            self._done += 1
            if self._tell:
                self._tell(min(self._done, self._total), self._total)


def _product_epsilon(counts: "Counter[Law]", delta: float, steps: _Steps) -> float:
    """Return the ε at δ of the product of all laws, in which each law occurs as often as it is counted."""
    from dp_accounting.pld import pld_pmf

    reaches = {law: law.reach for law in steps(counts)}
    if any(law.curve(np.array([reach]))[0] > delta for law, reach in reaches.items()):
        return math.inf
    numbers = {law: count * law.times for law, count in counts.items()}
    finest = min(reach / law.parts for law, reach in reaches.items())
    width = max(finest, 2 * sum(reaches[law] * number for law, number in numbers.items()) / _POINTS)
    # With this width, randomised responses whose ε are multiples of the smallest ε have losses on the grid.
    least = min(reaches.values())
    width = least / math.ceil(least / width) if width < least else width
    total: Any = None
    lost = 0.0
    for law, number in steps(numbers.items()):
        single = _on_grid(law, reaches[law], width)
        lost += number * (_ROUNDING + 2.0**-51 * single.size)
        several = single.self_compose(number)
        total = several if total is None else pld_pmf.compose_pmfs(total, several)
    lost += 2.0**-50 * sum(numbers.values()) * math.sqrt(total.size) * math.log2(total.size + 1)
    return total.get_epsilon_for_delta(delta - lost) if delta > lost else math.inf


def _on_grid(law: Law, reach: float, width: float) -> Any:
    """Return the distribution of a law's losses on the multiples of `width`, with losses rounded up."""
    from dp_accounting.pld import pld_pmf

    last = math.ceil(reach / width * (1 - 1e-12))
    grid = np.arange(last + 1) * width
    knots = np.linspace(0.0, reach, law.parts + 1)
    # A curve is convex in e^ε, so it lies below its chord between two knots.
    above = np.interp(np.exp(grid), np.exp(knots), np.clip(law.curve(knots), 0.0, 1.0))
    # The curve holds for both orders of the neighbours, so δ(−ε) = 1 − e^−ε (1 − δ(ε)).
    below = 1 - np.exp(-grid[:0:-1]) * (1 - above[:0:-1])
    deltas = np.minimum.accumulate(np.append(below, above))
    # Division by very small floats would overflow.
    deltas[deltas < 1e-100] = 0.0
    return pld_pmf.create_pmf_pessimistic_connect_dots(width, np.arange(-last, last + 1), deltas)
