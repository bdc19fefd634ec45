"""Maximum mean discrepancy between samples of parameters, in linear time: in [0, 1] to machine precision.

The kernel is exp(−(p − q)²/2), without the factor 1/√(2π) of a density.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

# With p, q in [0, 1] and x = p − ½, e^(−(p−q)²/2) = e^(−x²/2) e^(−y²/2) Σ_k (xy)^k/k!, |xy| ≤ 1/4: the terms from
# k = 12 on sum to less than 0.25^12/12! · 1.02 < 1.3e-16.
TERMS = 12
# Terms of the power series of e^(−x²/2) for |x| ≤ ½: the next one is below 8^−11/11! < 3e-18.
_SERIES = 11
_SCALES = 1 / np.sqrt([math.factorial(k) for k in range(TERMS)])


def embedding_sum(draws) -> np.ndarray:
    """Sum over draws of the features whose inner product is the kernel.

    Args:
        draws: values in [0, 1], shape (m, ...).

    Returns:
        Σ_i e^(−x_i²/2) x_i^k/√k! with x = draw − ½, shape (12, ...). Sums over parts of a sample add.

    Raises:
        ValueError: a value outside [0, 1], where the number of terms would not do.
    """
    draws = np.asarray(draws, float)
    if not (draws.min() >= 0 and draws.max() <= 1):
        raise ValueError("draws must lie in [0, 1]")
    centred = draws - 0.5
    feature = np.exp(-0.5 * centred * centred)
    sums = np.empty((TERMS, *draws.shape[1:]))
    for k in range(TERMS):
        sums[k] = feature.sum(axis=0)
        feature *= centred
    return sums * _SCALES.reshape(-1, *[1] * (sums.ndim - 1))


def beta_embedding(alpha, beta) -> np.ndarray:
    """Expectation of the features of `embedding_sum` under Beta(alpha, beta).

    With x = θ − ½ and M_j = E x^j, integration by parts gives (α + β + j) M_{j+1} = (α − β)/2 M_j + j/4 M_{j−1},
    whose terms have one sign; e^(−x²/2) is its power series, |x| ≤ ½.

    Args:
        alpha, beta: parameters > 0, broadcast against each other, shape (...).

    Returns:
        Shape (12, ...). Expectations over mixtures of beta laws are mixtures of these.
    """
    alpha, beta = np.broadcast_arrays(np.asarray(alpha, float), np.asarray(beta, float))
    moments = np.empty((TERMS + 2 * _SERIES, *alpha.shape))
    moments[0] = 1.0
    half = (alpha - beta) / 2
    moments[1] = half / (alpha + beta)
    for j in range(1, len(moments) - 1):
        moments[j + 1] = (half * moments[j] + j / 4 * moments[j - 1]) / (alpha + beta + j)
    features = np.zeros((TERMS, *alpha.shape))
    for i in range(_SERIES):
        features += (-0.5) ** i / math.factorial(i) * moments[2 * i : 2 * i + TERMS]
    return features * _SCALES.reshape(-1, *[1] * alpha.ndim)


def mmd2_of_embeddings(p, q) -> np.ndarray:
    """MMD² between two laws given the expectations of their features, shape (12, ...); shape (...)."""
    return ((np.asarray(p) - q) ** 2).sum(axis=0)


def diagonal_sum(p, q) -> np.ndarray:
    """Σ_i k(p_i, q_i) over the first axis: what the sums over all pairs have too much; parts of a sample add."""
    difference = np.asarray(p, float) - q
    return np.exp(-0.5 * difference * difference).sum(axis=0)


class Bins(NamedTuple):
    """Even grid of points from 0 on, for draws that lie in no unit interval: its step and its number of points.

    A quarter of the grid is meant for the draws. Those beyond it are wrapped around the last five eighths, out of the
    kernel's reach: a law so far away is far from all others, and its distance from itself is that of a law on a
    circle. With 2048 points of step 0.04 this costs at most 0.05 of the squared share of such draws.
    """

    step: float
    size: int

    def counts(self, draws) -> np.ndarray:
        """Each draw of shape (m, trials) shared between its two neighbours on the grid; shape (trials, size).

        Counts of parts of a sample add.
        """
        near, start = self.size // 4, self.size * 3 // 8
        place = draws / self.step
        place = np.where(place < near, place, start + np.fmod(place, self.size - start - 1))
        below = place.astype(np.int64)
        flat = (below + self.size * np.arange(draws.shape[1])).ravel()
        share, total = (place - below).ravel(), self.size * draws.shape[1]
        counts = np.bincount(flat, 1 - share, total) + np.bincount(flat + 1, share, total + 1)[:total]
        return counts.reshape(-1, self.size)

    def mmd2(self, p, q, diagonal, size: int) -> np.ndarray:
        """`mmd2_from_sums` of counts (trials, size); sharing moves a squared distance by about step²/6 of itself."""
        length = 2 * self.size
        distance = self.step * np.minimum(np.arange(length), length - np.arange(length))
        kernel = np.fft.rfft(np.exp(-0.5 * distance * distance)).real
        waves = np.abs(np.fft.rfft(p - q, length)) ** 2 * kernel
        # Parseval's sum over a real transform of even length.
        squared = (2 * waves.sum(axis=-1) - waves[..., 0] - waves[..., -1]) / length
        return (squared - 2 * size + 2 * diagonal) / (size * (size - 1))


def mmd2_from_sums(p_sum, q_sum, diagonal, size: int) -> np.ndarray:
    """Unbiased estimate of MMD² from two samples' embedding sums; it may be negative.

        MMD² = Σ_{i≠j} (k(p_i, p_j) + k(q_i, q_j) − k(p_i, q_j) − k(p_j, q_i)) / (m(m−1))

    as in Bernstein and Sheldon (2018), section 4. The rounding error is below 1e-12: the estimate is a difference of
    numbers near 2.

    Args:
        p_sum, q_sum: from `embedding_sum`, shape (12, ...).
        diagonal: Σ_i k(p_i, q_i), shape (...).
        size: m ≥ 2, the number of draws in either sample.

    Raises:
        ValueError: fewer than 2 draws.
    """
    if size < 2:
        raise ValueError(f"size is {size!r}; the unbiased estimate needs at least 2 draws")
    # |P|² + |Q|² − 2PQ = |P − Q|², without the cancellation of its parts; k(p, p) = 1.
    squared = ((p_sum - q_sum) ** 2).sum(axis=0)
    return (squared - 2 * size + 2 * diagonal) / (size * (size - 1))


def mmd2(p, q) -> np.ndarray:
    """Unbiased estimate of MMD² between two samples of the same size m, shapes (m, ...); shape (...).

    Raises:
        ValueError: samples of different sizes, fewer than 2 draws, or values outside [0, 1].
    """
    if len(p) != len(q):
        raise ValueError(f"the samples have {len(p)} and {len(q)} draws; they must have the same number")
    return mmd2_from_sums(embedding_sum(p), embedding_sum(q), diagonal_sum(p, q), len(p))
