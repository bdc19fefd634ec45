"""Privacy of several releases about the same data, by composing privacy loss distributions (package dp-accounting).

All k draws of a mechanism for bits have the same pair of neighbours. Their curve δ(ε) is that of the k-fold product of
the pair's laws, and the largest over all pairs is exact. A loss distribution is put on a grid by connecting the dots of
one draw's exact curve (Doroshenko et al. 2022); what lies beyond the grid counts as an infinite loss. The rounded law
has a larger δ at every ε, and so have its powers. Releases of different kinds are composed by laws that dominate them.
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

# Probability of losses beyond the grid.
TAIL = 1e-18
# The smallest and the largest ε of a search.
_SMALLEST = 1e-6
_LARGEST = 1e4
# Points of the grid of composed losses.
_POINTS = 2.0**18
# The most different laws.
_LAWS = 200
# Rounding error of a curve.
_ROUNDING = 1e-12


def loss_distribution(parameters_p, parameters_q, points: int, low: float = 0.0, high: float = 1.0) -> Any:
    """The privacy loss ln P/Q under P on a grid, never understated (`dp_accounting.pld.pld_pmf.PLDPmf`).

    Args:
        parameters_p, parameters_q: (α, β), shape (2,), of beta laws with equal sums, truncated to [low, high].
        points: of the grid.
    """
    from dp_accounting.pld import pld_pmf

    laws = law_p, law_q = np.array([parameters_p, parameters_q], float)
    # The loss is monotone in θ: its extremes are at the ends of the range that either law reaches.
    ends = np.clip([betaincinv(*laws.T, TAIL), 1 - betaincinv(*laws.T[::-1], TAIL)], low, high)
    loss = np.subtract(*(truncated_beta.log_density(ends, law, low, high) for law in laws))
    width = np.ptp(loss) / points
    grid = np.arange(int(np.floor(loss.min() / width)), int(np.ceil(loss.max() / width)) + 1)
    deltas = np.clip(beta_curve(law_p, law_q, grid * width, low, high), 0.0, 1.0)
    return pld_pmf.create_pmf_pessimistic_connect_dots(width, grid, deltas)


def bits_epsilon(mechanism: Any, draws: Sequence[int], delta: float, points: int) -> np.ndarray:
    """Smallest ε at which k draws together are (ε, δ)-DP, for several k; worst over neighbouring counts, both ways.

    Args:
        mechanism: for bits; its `release_law` has the (α, β) of (successes, failures), truncated to its `ends`.
        draws: numbers k of draws.
        delta: δ of all draws together.
        points: number of points of the grid of one draw's losses.
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
    """The sum k ε₁ of k draws, each of which is (ε₁, δ/k)-DP by the curve δ(ε) of one draw."""
    if curve(0.0) <= delta / draws:
        return 0.0
    inverse = largest_within(lambda value: curve(1 / value) <= delta / draws, 1 / _LARGEST, 1 / _SMALLEST)
    return draws / inverse


def renyi_epsilon(rdp: Callable[[np.ndarray], np.ndarray], draws: int, delta: float) -> float:
    """ε of k draws by their summed Rényi curve, converted at δ."""
    return to_approximate(ORDERS, draws * rdp(ORDERS), delta)[0]


def compose(releases: Iterable[Any], delta: float) -> Cost:
    """An (ε, δ) of several releases about the same records together, by this package or by others.

    Args:
        releases: each a law of `privpost.privacy.accounting.losses`, such as `Normal(shift)`, Δ/σ of Gaussian noise, or
            `Response(epsilon, delta)`, which dominates whatever is (ε, δ)-DP; a pure or (ε, δ) `Cost`, which stands for
            that; a mechanism; or a function that gives the Rényi DP parameters at orders (k,).
        delta: δ in (0, 1) of all together.

    Returns:
        An approximate cost, rounded upwards; ε is inf where none is known. It holds if no release, nor their number,
        was chosen by an earlier one's result.

    Raises:
        ValueError: no releases, a cost of Rényi DP, of which one order says too little, or δ outside (0, 1).

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
    """An ε at which releases with these laws together are (ε, δ)-DP; inf if none is known.

    It is the smallest of three values. One is the sum of pure ε, where all are known. One comes from the product of all
    laws; the laws known only by Rényi curves enter it as one law with the summed curve. The third comes from the sum of
    the Rényi curves of all laws. Losses are rounded upwards, and δ is lowered by the possible rounding error.

    It holds if neither the laws nor their number depend on earlier releases. Who stops early because of a result spends
    what all planned releases would. If earlier results chose the laws, only sums of ε and δ are proved; sums of Rényi
    curves would need a budget set beforehand (Feldman and Zrnic 2021), which ledgers do not have.

    Args:
        laws: one or more.
        delta: δ in (0, 1).
        tell: told after each different law how many steps of all are done.
    """
    counts = Counter(law for law in laws if not law.perfect)
    if not counts:
        return 0.0
    pure = math.fsum(law.pure * number for law, number in counts.items())
    # Each law is looked at three times.
    steps = _Steps(3 * len(counts), tell)
    curves = {law: number * law.rdp(ORDERS) for law, number in steps(counts.items())}
    summed = to_approximate(ORDERS, np.sum(list(curves.values()), axis=0), delta)[0]
    # Of these nothing but a Rényi curve is known.
    if normal := [law for law in counts if isinstance(law, Normal | Summed)]:
        for law in normal:
            del counts[law]
        counts[Summed(tuple(np.sum([curves[law] for law in normal], axis=0).tolist()))] = 1
    product = _product_epsilon(counts, delta, steps) if len(counts) <= _LAWS else math.inf
    return min(pure, summed, product)


class _Steps:
    """Passes items on, and tells how many of all steps are done."""

    def __init__(self, total: int, tell: Callable[[int, int], None] | None):
        self._total, self._tell, self._done = total, tell, 0

    def __call__(self, items: Iterable) -> Iterator:
        for item in items:
            yield item
            self._done += 1
            if self._tell:
                self._tell(min(self._done, self._total), self._total)


def _product_epsilon(counts: "Counter[Law]", delta: float, steps: _Steps) -> float:
    """ε at δ of the product of laws, each to the power of its count."""
    from dp_accounting.pld import pld_pmf

    reaches = {law: law.reach for law in steps(counts)}
    if any(law.curve(np.array([reach]))[0] > delta for law, reach in reaches.items()):
        return math.inf
    numbers = {law: count * law.times for law, count in counts.items()}
    finest = min(reach / law.parts for law, reach in reaches.items())
    width = max(finest, 2 * sum(reaches[law] * number for law, number in numbers.items()) / _POINTS)
    # Then randomised responses whose ε are multiples of the smallest lie on the grid.
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
    """A law's losses on the multiples of a width."""
    from dp_accounting.pld import pld_pmf

    last = math.ceil(reach / width * (1 - 1e-12))
    grid = np.arange(last + 1) * width
    knots = np.linspace(0.0, reach, law.parts + 1)
    # As a function of e^ε a curve is convex, so between knots it lies below its chord.
    above = np.interp(np.exp(grid), np.exp(knots), np.clip(law.curve(knots), 0.0, 1.0))
    # Both ways are alike: δ(−ε) = 1 − e^−ε (1 − δ(ε)).
    below = 1 - np.exp(-grid[:0:-1]) * (1 - above[:0:-1])
    deltas = np.minimum.accumulate(np.append(below, above))
    # Dividing by the smallest floats overflows.
    deltas[deltas < 1e-100] = 0.0
    return pld_pmf.create_pmf_pessimistic_connect_dots(width, np.arange(-last, last + 1), deltas)
