"""Rényi divergences in closed form, their suprema over neighbouring data sets, and the search for coefficients.

Orders are λ ≥ 1, where λ = 1 is the Kullback-Leibler limit. A supremum is over all data sets of the public size n. The
equations are from Geumlek, Song and Chaudhuri (2017).
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
# This many bisections are computed in one call, as calls dominate the time for small arrays.
_STEPS = 4


def dirichlet_divergence(alpha_p, alpha_q, order) -> np.ndarray:
    """Rényi divergence D_λ(P‖Q) of two Dirichlet (or beta) distributions, accurate to nearly all digits.

    Args:
        alpha_p, alpha_q: concentrations > 0, (..., d).
        order: λ ≥ 1, broadcast against the leading axes.

    Returns:
        Divergences (...); inf if some α_Q or some λα_P + (1−λ)α_Q is not positive.

    Raises:
        ValueError: an order is below 1, or some α_P is not positive.
    """
    order = _orders(order)
    p, q = np.broadcast_arrays(np.asarray(alpha_p, float), np.asarray(alpha_q, float))
    check_range("(0, inf)", alpha_p=p)
    coordinates = _log_gamma_divergence(p, q, order[..., None]).sum(axis=-1)
    total = _log_gamma_divergence(p.sum(axis=-1), q.sum(axis=-1), order)
    with np.errstate(invalid="ignore"):
        return np.where(np.isinf(coordinates), np.inf, np.maximum(coordinates - total, 0.0))


def gamma_divergence(shape, rate, step, order) -> np.ndarray:
    """The larger of the Rényi divergences in both directions between gamma laws with rates `rate` and `rate` + `step`.

    Both laws have the same `shape`. All arguments are numbers or arrays of one shape. A divergence can be inf.
    """
    worst = np.zeros(np.shape(order))
    excess = np.where(order == 1, 1.0, order - 1)
    for change in (step / rate, -step / (rate + step)):
        mixed = 1 + order * change
        valid = mixed > 0
        # A change that rounds to −1 makes the logarithm infinite.
        with np.errstate(divide="ignore", invalid="ignore"):
            gap = order * np.log1p(change) - np.log1p(np.where(valid, order * change, 0.0))
            # At order 1, each unit of shape adds ln ρ + 1/ρ − 1 with ρ = 1 + change.
            limit = np.log1p(change) - np.divide(change, 1 + change)
            divergence = shape * np.where(order == 1, limit, gap / excess)
        worst = np.maximum(worst, np.where(valid, divergence, np.inf))
    return worst


def dirichlet_categorical_supremum(prior, n: int, order, r=1.0, m=1.0, supremum: str = "exact") -> np.ndarray:
    """Largest Rényi divergence between posteriors for neighbouring data sets. Records are categorical or binary.

    The posterior is Dirichlet(α/m + r·counts). The diffused mechanism has r < 1 (algorithm 2), the concentrated
    mechanism has m < 1 (algorithm 3), and the direct posterior has r = m = 1.

    Args:
        prior: α > 0, shape (d,).
        n: public number of records, ≥ 1.
        order: λ ≥ 1; order, r and m broadcast.
        r: coefficient of the likelihood, in (0, 1].
        m: coefficient of the prior, in (0, 1].
        supremum: "exact" takes the pairs of posteriors that data sets can lead to. "paper" takes the pairs of corollary
            2 as printed, where P has all n records in one category and Q = P + r(e_i − e_j) for all i ≠ j. The value of
            "paper" is at least the value of "exact".

    Returns:
        Suprema of the broadcast shape; inf beyond the asymptote.

    Raises:
        ValueError: an argument is outside its range.
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
    """Return the pairs of posteriors among which `dirichlet_categorical_supremum` takes the largest divergence.

    The posteriors P and Q differ in two categories: P has one more record in the first and one fewer in the second.

    Returns:
        Array (4, pairs) for P: prior and count of the first category, then prior and count of the second.
    """
    # By the convexity in theorem 15, the worst case has all common records in one category: the first, the second or
    # a third one.
    single, others = (1, n - 1) if supremum == "exact" else (0, n)
    counts = [(single + others, 0), (single, others), *[(single, 0)] * (len(prior) > 2)]
    # Categories with equal prior values give equal divergences, so each value is used once.
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
    """Largest coefficient in (0, 1] whose Rényi DP parameter is at most the target, by bisection (section 3.1).

    The result is exactly 1 if 1 meets the target.

    Args:
        epsilon_of_coefficient: increasing function on (0, 1] that maps arrays of coefficients to arrays of Rényi DP
            parameters. The arrays have the target's shape, or one more axis in front.
        target: Rényi DP parameters > 0, any shape.
        iterations: largest number of bisections.

    Raises:
        ValueError: a target is not positive, iterations < 1, or no coefficient that was tried met the target.
    """
    target = np.asarray(target, float)
    check_range("(0, inf]", target=target)
    check_count("iterations", iterations)
    high = np.ones_like(target)
    low = np.where(epsilon_of_coefficient(high) <= target, 1.0, 0.0)
    while iterations > 0:
        # All midpoints of the next bisections are evaluated at once, as a binary tree: 2i + 1 and 2i + 2 follow node i.
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
    """Return a term [ln Γ(λp + (1−λ)q) − ln Γ(p)] / (λ−1) − ln Γ(p) + ln Γ(q) of a divergence, or inf if undefined."""
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
    """Return ln Γ(x+h) − ln Γ(x) for x > 0 and x+h > 0, with an error proportional to h."""
    # A difference of two log-gammas has an error of |ln Γ| · 1e-16. At x = 1e5 this exceeds the divergences of
    # neighbours. So the recurrence first raises the argument by 20, where Stirling's series has converged.
    steps = 20
    # A quotient can be −1 where x + h is not positive; the caller masks these results.
    with np.errstate(divide="ignore", invalid="ignore"):
        shift = np.log1p(np.asarray(h)[..., None] / (np.asarray(x)[..., None] + np.arange(steps))).sum(axis=-1)
    y = x + steps
    z = y + h
    # (1/z^k − 1/y^k)/(1/z − 1/y) for k = 3, 5, 7, written in the product and the sum of squares of 1/y and 1/z.
    product, squares = 1 / (y * z), 1 / y**2 + 1 / z**2
    third = squares + product
    fifth = squares**2 + product * squares - product**2
    seventh = squares**3 + product * squares**2 - 2 * squares * product**2 - product**3
    tail = -h * product * (1 / 12 - third / 360 + fifth / 1260 - seventh / 1680)
    return (y - 0.5) * np.log1p(h / y) + h * np.log(z) - h + tail - shift
