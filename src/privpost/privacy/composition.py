"""Privacy of several releases about the same data, by composing privacy loss distributions (package dp-accounting).

The draws of one mechanism for bits share one pair of neighbours, so that k of them have the curve δ(ε) of the pair's
laws to the power k, and the largest over all pairs is exact. A loss distribution is put on a grid by connecting the
dots of the exact curve of one draw (Doroshenko et al. 2022), and what lies beyond the grid counts as an infinite loss:
the rounded law loses more at every ε, and so do its powers. Releases of different kinds are composed by the laws that
dominate them.
"""

import math
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from scipy.special import betaincinv

from privpost.distributions import truncated_beta
from privpost.privacy.accounting import to_approximate
from privpost.privacy.approximate import ORDERS, beta_curve, largest_within
from privpost.privacy.losses import Law, Normal, Summed

# Probability of losses beyond the grid, and the smallest and largest ε that is looked for.
TAIL = 1e-18
_SMALLEST, _LARGEST = 1e-6, 1e4
# Points of the grid of all losses together, different laws, and rounding of a curve.
_POINTS, _LAWS, _ROUNDING = 2.0**18, 200, 1e-12


def loss_distribution(parameters_p, parameters_q, points: int, low: float = 0.0, high: float = 1.0) -> Any:
    """The privacy loss ln P/Q under P, on a grid, never less private than it is (`dp_accounting.pld.pld_pmf.PLDPmf`).

    Args:
        parameters_p, parameters_q: (α, β), shape (2,), of beta laws with equal sums, truncated to [low, high].
        points: of the grid.
    """
    from dp_accounting.pld import pld_pmf

    laws = law_p, law_q = np.array([parameters_p, parameters_q], float)
    # The loss is monotone in θ: its ends are those of what either law holds.
    ends = np.clip([betaincinv(*laws.T, TAIL), 1 - betaincinv(*laws.T[::-1], TAIL)], low, high)
    loss = np.subtract(*(truncated_beta.log_density(ends, law, low, high) for law in laws))
    width = np.ptp(loss) / points
    grid = np.arange(int(np.floor(loss.min() / width)), int(np.ceil(loss.max() / width)) + 1)
    deltas = np.clip(beta_curve(law_p, law_q, grid * width, low, high), 0.0, 1.0)
    return pld_pmf.create_pmf_pessimistic_connect_dots(width, grid, deltas)


def bits_epsilon(mechanism: Any, draws: Sequence[int], delta: float, points: int) -> np.ndarray:
    """Smallest ε at which so many draws are (ε, δ)-DP together, the largest over all neighbouring counts, both ways.

    Args:
        mechanism: for bits; its `release_law` has the (α, β) of (successes, failures), truncated to its `ends`.
        draws: numbers k of draws.
        delta: δ of all of them together.
        points: of the grid of losses of one draw.
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
    """k ε₁ of k draws that are (ε₁, δ/k)-DP each, by the curve δ(ε) of one draw."""
    if curve(0.0) <= delta / draws:
        return 0.0
    inverse = largest_within(lambda value: curve(1 / value) <= delta / draws, 1 / _LARGEST, 1 / _SMALLEST)
    return draws / inverse


def renyi_epsilon(rdp: Callable[[np.ndarray], np.ndarray], draws: int, delta: float) -> float:
    """ε of k draws by their summed Rényi curve, converted at δ."""
    return to_approximate(ORDERS, draws * rdp(ORDERS), delta)[0]


def together(laws: Sequence[Law], delta: float) -> float:
    """An ε at which releases with these laws are (ε, δ)-DP together; inf where none is known.

    It is the smaller one of two: by the product of all laws, in which those known by Rényi curves are one, of the sum
    of their curves; and by the sum of the Rényi curves of all. Losses are rounded upwards, and δ is lowered by what
    floats may be off by.

    It holds where neither the laws nor their number depend on what was released before, though a release may: who
    stops by what came out spends what all that were in store would. Where laws were chosen by earlier results only
    sums of ε and δ are proved; a sum of Rényi curves would be under a budget set for it beforehand (Feldman and Zrnic
    2021), which ledgers do not have.

    Args:
        laws: one or more.
        delta: δ in (0, 1).
    """
    counts = Counter(laws)
    curves = {law: number * law.rdp(ORDERS) for law, number in counts.items()}
    summed = to_approximate(ORDERS, np.sum(list(curves.values()), axis=0), delta)[0]
    if normal := [law for law in counts if isinstance(law, Normal)]:
        counts[Summed(tuple(np.sum([curves[law] for law in normal], axis=0).tolist()))] = 1
    for law in normal:
        del counts[law]
    return min(summed, _product_epsilon(counts, delta)) if len(counts) <= _LAWS else summed


def _product_epsilon(counts: "Counter[Law]", delta: float) -> float:
    """ε at δ of so many of each law."""
    from dp_accounting.pld import pld_pmf

    reaches = {law: law.reach for law in counts}
    if any(law.curve(np.array([reach]))[0] > delta for law, reach in reaches.items()):
        return math.inf
    numbers = {law: count * law.times for law, count in counts.items()}
    finest = min(reach / law.parts for law, reach in reaches.items())
    width = max(finest, 2 * sum(reaches[law] * number for law, number in numbers.items()) / _POINTS)
    # Responses of multiples of one ε lie on the grid.
    least = min(reaches.values())
    width = least / math.ceil(least / width) if width < least else width
    total: Any = None
    lost = 0.0
    for law, number in numbers.items():
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
    # In e^ε a curve is convex: between knots it is below its chord.
    above = np.interp(np.exp(grid), np.exp(knots), np.clip(law.curve(knots), 0.0, 1.0))
    # Both ways are alike: δ(−ε) = 1 − e^−ε (1 − δ(ε)).
    below = 1 - np.exp(-grid[:0:-1]) * (1 - above[:0:-1])
    deltas = np.minimum.accumulate(np.append(below, above))
    # The smallest of floats overflow where they divide.
    deltas[deltas < 1e-100] = 0.0
    return pld_pmf.create_pmf_pessimistic_connect_dots(width, np.arange(-last, last + 1), deltas)
