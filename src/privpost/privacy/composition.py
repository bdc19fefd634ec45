"""Privacy of several draws about the same bits, by composing privacy loss distributions (package dp-accounting).

The draws of one mechanism share one pair of neighbours, so that k of them have the curve δ(ε) of the pair's laws to the
power k, and the largest over all pairs is exact. A loss distribution is put on a grid by connecting the dots of the
exact curve of one draw (Doroshenko et al. 2022), and what lies beyond the grid counts as an infinite loss: the rounded
law loses more at every ε, and so do its powers.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from scipy.special import betaincinv

from privpost.distributions import truncated_beta
from privpost.privacy.accounting import to_approximate
from privpost.privacy.approximate import ORDERS, beta_curve, largest_within

# Probability of losses beyond the grid, and the smallest and largest ε that is looked for.
TAIL = 1e-18
_SMALLEST, _LARGEST = 1e-6, 1e4


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
    found = np.zeros(len(draws))
    for pair in mechanism.neighbouring_statistics():
        laws = mechanism.release_law(pair)
        for law_p, law_q in (laws, laws[::-1]):
            one = loss_distribution(law_p, law_q, points, *mechanism.ends)
            for place, k in enumerate(draws):
                together = one.self_compose(k)
                if together.get_delta_for_epsilon(found[place]) > delta:
                    found[place] = together.get_epsilon_for_delta(delta)
    return found


def naive_epsilon(curve: Callable[[float], float], draws: int, delta: float) -> float:
    """k ε₁ of k draws that are (ε₁, δ/k)-DP each, by the curve δ(ε) of one draw."""
    if curve(0.0) <= delta / draws:
        return 0.0
    inverse = largest_within(lambda value: curve(1 / value) <= delta / draws, 1 / _LARGEST, 1 / _SMALLEST)
    return draws / inverse


def renyi_epsilon(rdp: Callable[[np.ndarray], np.ndarray], draws: int, delta: float) -> float:
    """ε of k draws by their summed Rényi curve, converted at δ."""
    return to_approximate(ORDERS, draws * rdp(ORDERS), delta)[0]
