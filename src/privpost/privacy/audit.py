"""Statistical lower bounds on privacy parameters, from releases about two neighbouring data sets.

An event is chosen on one pair of samples and counted on another pair, so the choice does not affect the confidence
level. By the data-processing inequality, the divergence between the two-point distributions (event, complement) is at
most the divergence between the releases.
"""

import functools
from typing import NamedTuple

import numpy as np
from scipy.special import betaincinv

from privpost.models.base import check_range


class Counts(NamedTuple):
    """How many of `size` releases about the first data set, and of `size` about the second, are in an event."""

    first: int
    second: int
    size: int


def probability_limits(hits, size: int, level: float) -> tuple[np.ndarray, np.ndarray]:
    """Return the Clopper-Pearson lower and upper limits of a probability.

    Args:
        hits: numbers of successes out of `size`, any shape.
        level: error probability of each limit, in (0, 1).

    Raises:
        ValueError: hits are outside [0, size], or the level is outside (0, 1).
    """
    hits = np.asarray(hits, float)
    check_range(f"[0, {size}]", hits=hits)
    check_range("(0, 1)", level=level)
    low = np.where(hits > 0, betaincinv(np.maximum(hits, 1), size - hits + 1, level), 0.0)
    high = np.where(hits < size, betaincinv(hits + 1, np.maximum(size - hits, 1), 1 - level), 1.0)
    return low, high


@functools.lru_cache(maxsize=16)
def _limits(size: int, level: float) -> tuple[np.ndarray, np.ndarray]:
    """Return `probability_limits` for all counts from 0 to `size`."""
    return probability_limits(np.arange(size + 1), size, level)


def event_divergence(p, q, order: float | None) -> np.ndarray:
    """Return the divergence that an event proves, given its probabilities p and q under the two data sets.

    The divergence is 0 if p ≤ q, and otherwise ln(p/q) for an order of None. For an order λ, it is the Rényi divergence
    of the two-point distributions, ln(p^λ q^(1−λ) + (1−p)^λ (1−q)^(1−λ)) / (λ−1). A lower limit of p and an upper limit
    of q give a lower limit of the divergence.

    Raises:
        ValueError: the order is at most 1.
    """
    p, q = np.asarray(p, float), np.asarray(q, float)
    inside = p > q
    p, q = np.where(inside, p, 0.5), np.where(inside, q, 0.25)
    if order is None:
        return np.where(inside, np.log(p / q), 0.0)
    check_range("(1, inf)", order=order)
    with np.errstate(divide="ignore"):
        both = np.logaddexp(
            order * np.log(p) + (1 - order) * np.log(q), order * np.log1p(-p) + (1 - order) * np.log1p(-q)
        )
    return np.where(inside, both / (order - 1), 0.0)


def lower_bound(counts: Counts, order: float | None, level: float) -> float:
    """Return a lower confidence limit of the divergence between releases. Its error probability is at most `level`."""
    low, _ = probability_limits(counts.first, counts.size, level / 2)
    _, high = probability_limits(counts.second, counts.size, level / 2)
    return float(event_divergence(low, high, order))


class Event(NamedTuple):
    """The event {sign · feature ≥ threshold}: the column of the feature, the sign 1 or −1, and the threshold."""

    column: int
    sign: int
    threshold: float

    def hits(self, features) -> int:
        """Return the number of rows of features (size, columns) that lie in the event."""
        return int((self.sign * features[:, self.column] >= self.threshold).sum())


def choose_event(first, second, order: float | None, level: float, thresholds: int = 60) -> Event:
    """Return the event on one feature that gives the largest lower bound of the divergence, from two samples.

    Args:
        first, second: features of the releases about the two data sets, shape (size, columns) each.
        order: order of the Rényi divergence; None for pure DP.
        level: probability that the lower bound of one event is too high.
        thresholds: about how many quantiles of `first` are tried.

    Raises:
        ValueError: the samples have different shapes.
    """
    first, second = np.asarray(first, float), np.asarray(second, float)
    if first.shape != second.shape:
        raise ValueError(f"first and second have shapes {first.shape} and {second.shape}; they must be equal")
    size = len(first)
    low, high = _limits(size, level / 2)
    shares = np.unique(np.concatenate([np.geomspace(20 / size, 0.5, thresholds // 2), np.linspace(0.5, 1, thresholds)]))
    # Shares with equal cuts give the same event, so each cut is tried once.
    places = np.unique(np.clip(np.floor((1 - shares) * size).astype(int), 0, size - 1))
    best, event = -np.inf, Event(0, 1, -np.inf)
    for column, ordered in enumerate(zip(np.sort(first.T), np.sort(second.T), strict=True)):
        for sign in (1, -1):
            u, v = ordered if sign == 1 else (-values[::-1] for values in ordered)
            cut = u[places]
            hits = size - np.searchsorted(u, cut), size - np.searchsorted(v, cut)
            bounds = event_divergence(low[hits[0]], high[hits[1]], order)
            place = int(bounds.argmax())
            if bounds[place] > best:
                best, event = bounds[place], Event(column, sign, float(cut[place]))
    return event
