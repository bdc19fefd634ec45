"""Rényi divergences in closed form, their suprema over neighbouring data sets, and the search for coefficients.

Orders are λ ≥ 1; λ = 1 is the Kullback-Leibler limit. Nothing here takes data: a supremum runs over every
data set of the public size n. Equations are those of Geumlek, Song and Chaudhuri (2017).
"""

import functools
import itertools
from collections.abc import Callable
from typing import Literal, get_args

import numpy as np
from scipy.special import psi

from privpost.models.base import check_range
from privpost.privacy.checks import check_choice, check_count

Supremum = Literal["exact", "paper"]
SUPREMA = get_args(Supremum)
# Bisections of a coefficient whose divergences are computed together: most of a small array's time is its calls.
_STEPS = 4


def dirichlet_divergence(alpha_p, alpha_q, order) -> np.ndarray:
    """Rényi divergence D_λ(P‖Q) of two Dirichlet (or beta) distributions, to nearly full relative precision.

    Args:
        alpha_p, alpha_q: concentrations > 0, (..., d).
        order: λ ≥ 1, broadcast against the leading axes.

    Returns:
        Divergences (...); inf where an α_Q or a λα_P + (1−λ)α_Q is not positive.

    Raises:
        ValueError: an order below 1, or an α_P that is not positive.
    """
    order = _orders(order)
    p, q = np.broadcast_arrays(np.asarray(alpha_p, float), np.asarray(alpha_q, float))
    check_range("(0, inf)", alpha_p=p)
    coordinates = _log_gamma_divergence(p, q, order[..., None]).sum(axis=-1)
    total = _log_gamma_divergence(p.sum(axis=-1), q.sum(axis=-1), order)
    with np.errstate(invalid="ignore"):
        return np.where(np.isinf(coordinates), np.inf, np.maximum(coordinates - total, 0.0))


def gamma_divergence(shape, rate, step, order) -> np.ndarray:
    """The larger of both directions' Rényi divergences of gamma laws of one shape, with rates `rate` and rate + step.

    All arguments are arrays of one shape, or numbers; inf where a divergence is infinite.
    """
    worst = np.zeros(np.shape(order))
    excess = np.where(order == 1, 1.0, order - 1)
    for change in (step / rate, -step / (rate + step)):
        mixed = 1 + order * change
        valid = mixed > 0
        # A change that is −1 but for rounding has no valid order.
        with np.errstate(divide="ignore", invalid="ignore"):
            gap = order * np.log1p(change) - np.log1p(np.where(valid, order * change, 0.0))
            # At order 1: ln ρ + 1/ρ − 1, ρ = 1 + change.
            limit = np.log1p(change) - np.divide(change, 1 + change)
            divergence = shape * np.where(order == 1, limit, gap / excess)
        worst = np.maximum(worst, np.where(valid, divergence, np.inf))
    return worst


def dirichlet_categorical_supremum(prior, n: int, order, r=1.0, m=1.0, supremum: str = "exact") -> np.ndarray:
    """Largest divergence between the posteriors of neighbouring data sets of categorical records, or of bits.

    The posterior is Dirichlet(α/m + r·counts): r < 1 is the diffused, m < 1 the concentrated mechanism
    (algorithms 2 and 3), both 1 the direct posterior. By the convexity of theorem 15 the worst case has all n−1 common
    records in one category, so O(d³) pairs are enough.

    Args:
        prior: α > 0, shape (d,).
        n: public number of records, ≥ 1.
        order: λ ≥ 1; order, r and m broadcast.
        r: coefficient of the likelihood, in (0, 1].
        m: coefficient of the prior, in (0, 1].
        supremum: "exact" for the pairs that data sets can reach; "paper" for corollary 2 as printed, P at a
            vertex (all n records in one category, at r·n) and Q = P + r(e_i − e_j) for all i ≠ j, reachable or
            not. "paper" is never below "exact".

    Returns:
        Suprema of the broadcast shape; inf beyond the asymptote.

    Raises:
        ValueError: an argument outside its range.
    """
    prior = np.asarray(prior, float)
    if prior.ndim != 1 or prior.size < 2 or not np.all(prior > 0):
        raise ValueError(f"prior is {prior!r}; it must be a vector of at least 2 entries > 0")
    check_count("n", n)
    check_choice("supremum", supremum, SUPREMA)
    check_range("(0, 1]", r=r, m=m)
    order, r, m = np.broadcast_arrays(_orders(order), np.asarray(r, float), np.asarray(m, float))
    alpha_gain, p_gain, alpha_lose, p_lose = extreme_pairs(tuple(prior.tolist()), n, supremum)
    r, m, order = r[..., None], m[..., None], order[..., None]
    divergence = sum(
        _log_gamma_divergence(alpha / m + r * p_counts, alpha / m + r * q_counts, order)
        for alpha, p_counts, q_counts in ((alpha_gain, p_gain, p_gain - 1), (alpha_lose, p_lose, p_lose + 1))
    )
    return np.maximum(divergence, 0.0).max(axis=-1)


@functools.lru_cache(maxsize=64)
def extreme_pairs(prior: tuple[float, ...], n: int, supremum: str = "exact") -> np.ndarray:
    """The pairs of posteriors among which `dirichlet_categorical_supremum` takes the largest divergence.

    Neighbours have equal totals, so only two categories contribute: P has one record more than Q in the first, and one
    fewer in the second. A pair is given by the prior and P's count in both.

    Returns:
        Prior and count of the first category, then of the second, shape (4, pairs).
    """
    # The common records are in the category that gains, in the one that loses, or in a third one.
    single, others = (1, n - 1) if supremum == "exact" else (0, n)
    counts = [(single + others, 0), (single, others), *[(single, 0)] * (len(prior) > 2)]
    # Only the distinct values of the prior's entries matter.
    values = set(prior)
    return np.array(
        sorted(
            {
                (gain, float(p_gain), lose, float(p_lose))
                for gain, lose in itertools.product(values, values)
                if gain != lose or prior.count(gain) > 1
                for p_gain, p_lose in counts
            }
        )
    ).T


def largest_coefficient(
    epsilon_of_coefficient: Callable[[np.ndarray], np.ndarray], target, iterations: int = 500
) -> np.ndarray:
    """Largest coefficient in (0, 1] whose Rényi DP parameter is within the target, by bisection (section 3.1).

    The result re-evaluates to at most the target; it is exactly 1 where 1 itself does.

    Args:
        epsilon_of_coefficient: increasing function on (0, 1] of arrays shaped as target, perhaps with one more first
            axis; returns the same shape.
        target: Rényi DP parameters > 0, any shape.
        iterations: bisections; they end early once no floating-point number is left between the bounds.

    Raises:
        ValueError: a target that is not positive, iterations < 1, or a target that no coefficient visited met.
    """
    target = np.asarray(target, float)
    check_range("(0, inf]", target=target)
    check_count("iterations", iterations)
    high = np.ones_like(target)
    low = np.where(epsilon_of_coefficient(high) <= target, 1.0, 0.0)
    while iterations > 0:
        # All middles that the next bisections can reach are evaluated at once: node i is followed by 2i + 1, 2i + 2.
        steps = min(iterations, _STEPS)
        iterations -= steps
        lows, highs = [low], [high]
        for node in range(2 ** (steps - 1) - 1):
            middle = (lows[node] + highs[node]) / 2
            lows += [lows[node], middle]
            highs += [middle, highs[node]]
        middles = (np.stack(lows) + np.stack(highs)) / 2
        if np.all((middles[0] == low) | (middles[0] == high)):
            break
        within = epsilon_of_coefficient(middles) <= target
        nodes = np.zeros(target.shape, int)
        for _ in range(steps):
            middle, met = (np.take_along_axis(values, nodes[None], axis=0)[0] for values in (middles, within))
            low, high = np.where(met, middle, low), np.where(met, high, middle)
            nodes = 2 * nodes + 1 + met
    if not np.all(low > 0):
        raise ValueError(f"target is {target!r}; no coefficient in (0, 1] was found to meet it")
    return low


def _orders(order) -> np.ndarray:
    check_range("[1, inf)", order=order)
    return np.asarray(order, float)


def _log_gamma_divergence(p, q, order) -> np.ndarray:
    """[ln Γ(λp + (1−λ)q) − ln Γ(p)] / (λ−1) − ln Γ(p) + ln Γ(q), a coordinate's contribution; inf where not finite."""
    excess = order - 1
    mixed = p + excess * (p - q)
    valid = (p > 0) & (q > 0) & (mixed > 0)
    p, q, excess, valid = np.broadcast_arrays(p, q, excess, valid)
    p, q = np.where(valid, p, 1.0), np.where(valid, q, 1.0)
    gap = p - q
    step = np.where(excess == 0, 1.0, excess)
    forward = np.where(excess == 0, gap * psi(p), _log_gamma_increment(p, excess * gap) / step)
    return np.where(valid, forward + _log_gamma_increment(p, -gap), np.inf)


def _log_gamma_increment(x, h) -> np.ndarray:
    """ln Γ(x+h) − ln Γ(x) for x, x+h > 0, with an error proportional to h.

    Subtracting two log-gammas would leave an error of |ln Γ| · 1e-16, larger than the divergences of neighbours
    at x = 1e5. Twenty steps of the recurrence reach an argument at which Stirling's series has converged.
    """
    steps = 20
    # Where the sum is masked, as no gamma function is defined there, a quotient may be −1.
    with np.errstate(divide="ignore", invalid="ignore"):
        shift = np.log1p(np.asarray(h)[..., None] / (np.asarray(x)[..., None] + np.arange(steps))).sum(axis=-1)
    y = x + steps
    z = y + h
    # 1/z^k − 1/y^k for k = 1, 3, 5, 7, each divided by 1/z − 1/y, in product and sum of squares of 1/y and 1/z.
    product, squares = 1 / (y * z), 1 / y**2 + 1 / z**2
    third = squares + product
    fifth = squares**2 + product * squares - product**2
    seventh = squares**3 + product * squares**2 - 2 * squares * product**2 - product**3
    tail = -h * product * (1 / 12 - third / 360 + fifth / 1260 - seventh / 1680)
    return (y - 0.5) * np.log1p(h / y) + h * np.log(z) - h + tail - shift
