"""Divergences between neighbours for a release of one whole number, by sums over its probabilities."""

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.special import logsumexp

# Sums run over NEAR whole numbers on either side of the statistic at first, and over FAR at most.
NEAR = 64
FAR = 1 << 22
# A sum ends when its last terms are at most this share of it.
LAST = 1e-18
# The sum of the probabilities may differ from 1 by this much.
NORMALISED = 1e-9


def _laws(mechanism: Any, of: Callable, reach: int = NEAR) -> tuple[np.ndarray, np.ndarray, np.ndarray] | None:
    """Return whole numbers (points,) and both neighbours' log-probabilities (pairs, points), or None if unknown."""
    pairs = mechanism.neighbouring_statistics()
    if pairs is None:
        return None
    centre = mechanism.select(pairs[0, 0])
    if centre.shape != (1,) or mechanism.log_density(centre, pairs[0, 0]) is None:
        return None
    pairs = np.concatenate([pairs, pairs[:, ::-1]])
    points = np.arange(-reach, reach + 1) + np.rint(centre[0])
    p, q = (mechanism.log_density(points[:, None], pairs[:, side, None]) for side in (0, 1))
    terms = of(p, q)
    ends = np.maximum(terms[:, 0], terms[:, -1])
    if reach < FAR and np.any(ends > logsumexp(terms, axis=1) + np.log(LAST)):
        return _laws(mechanism, of, 4 * reach)
    total = np.exp(logsumexp(p, axis=1))
    if np.any(np.abs(total - 1) > NORMALISED):
        worst = f"{total[np.argmax(np.abs(total - 1))]:.6g}"
        raise ValueError(f"log_mass of {type(mechanism).__name__} sums to {worst} over all whole numbers; it must be 1")
    return points, p, q


def curve(mechanism: Any, epsilon: float) -> float | None:
    """Return δ(ε), the maximum over neighbours of Σ (p − e^ε q)⁺.

    The result is None unless a release is one number, with known probabilities and known pairs of neighbours. Raises a
    ValueError if the probabilities do not sum to one.
    """
    laws = _laws(mechanism, lambda p, q: p)
    if laws is None:
        return None
    _, p, q = laws
    with np.errstate(invalid="ignore"):
        share = np.where(np.isneginf(p), 0.0, -np.expm1(np.minimum(epsilon + q - p, 0.0)))
    return float((np.exp(p) * share).sum(axis=1).max())


def rdp(mechanism: Any, orders) -> np.ndarray | None:
    """Return the largest Rényi divergence over neighbours at each order λ ≥ 1. None and errors are as in `curve`."""
    divergences = [_renyi(mechanism, order) for order in np.ravel(np.asarray(orders, float))]
    return None if None in divergences else np.reshape(np.array(divergences), np.shape(orders))


def _renyi(mechanism, order: float) -> float | None:
    def integrand(p, q):
        with np.errstate(invalid="ignore"):
            return np.where(np.isneginf(p), -np.inf, order * p + (1 - order) * q)

    laws = _laws(mechanism, integrand)
    if laws is None:
        return None
    _, p, q = laws
    if order == 1:
        with np.errstate(invalid="ignore"):
            return float(np.where(np.isneginf(p), 0.0, np.exp(p) * (p - q)).sum(axis=1).max())
    terms = integrand(p, q)
    if np.any(np.maximum(terms[:, 0], terms[:, -1]) > terms.max(axis=1) + np.log(1e-6)):
        return np.inf
    return float(logsumexp(terms, axis=1).max() / (order - 1))


def cdf(mechanism: Any, values) -> np.ndarray | None:
    """Return the distribution function of additive noise at any values. None and errors are as in `curve`."""
    laws = _laws(mechanism, lambda p, q: p)
    if laws is None:
        return None
    points, p, _ = laws
    centre = points[len(points) // 2]
    below = np.append(0.0, np.cumsum(np.exp(p[0])))
    return below[np.clip(np.floor(np.asarray(values, float)) + centre - points[0] + 1, 0, len(points)).astype(int)]
