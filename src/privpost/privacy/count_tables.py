"""Sensitivities and costs of releases about events in cells: Laplace noise on counts, and posterior sampling.

A record is an event with one cell and one level of each of D fields. Substituting an event changes at most two counts
of each field by 1. So a field's table has L1 sensitivity 2 and is released with Laplace noise of scale 2/ε_d, where
ε_d = ε/D (Foulds et al. 2016, section 5).
"""

import math
from collections.abc import Sequence

import numpy as np

from privpost.models.base import check_range

SENSITIVITY = 2.0
# Range of the truncation M. For a smaller M, floats cannot tell the probabilities apart. For a larger M, a0 underflows.
SMALLEST_TRUNCATION = 1.0001
LARGEST_TRUNCATION = 1e100


def noise_scale(epsilon: float, n_fields: int) -> float:
    """Return the scale 2D/ε of Laplace noise on every count of D fields. Raises a ValueError unless ε > 0 and D ≥ 1."""
    check_range("(0, inf)", epsilon=epsilon)
    check_range("[1, inf)", n_fields=n_fields)
    return SENSITIVITY * n_fields / epsilon


def clip(noisy) -> np.ndarray:
    """Replace negative counts by 0. On average, this adds half a noise scale to a true count of 0."""
    return np.maximum(noisy, 0.0)


def project(noisy, sizes: Sequence[int]) -> np.ndarray:
    """Return, for each field, the non-negative counts nearest to the noisy counts, with the same sum s.

    The result is the Euclidean projection onto {x ≥ 0, Σx = s}. If s ≤ 0, all counts of the field are 0.

    Args:
        noisy: noisy counts (..., levels), with the levels of all fields one after the other.
        sizes: number of levels of each field.
    """
    noisy = np.asarray(noisy, float)
    projected = np.empty_like(noisy)
    start = 0
    for size in sizes:
        field = noisy[..., start : start + size]
        total = field.sum(axis=-1, keepdims=True)
        descending = -np.sort(-field, axis=-1)
        surplus = (np.cumsum(descending, axis=-1) - total) / np.arange(1, size + 1)
        positive = np.maximum((descending > surplus).sum(axis=-1, keepdims=True), 1)
        shift = np.take_along_axis(surplus, positive - 1, axis=-1)
        projected[..., start : start + size] = np.where(total > 0, np.maximum(field - shift, 0.0), 0.0)
        start += size
    if start != noisy.shape[-1]:
        raise ValueError(f"sizes sum to {start}, but there are {noisy.shape[-1]} levels")
    return projected


def processed(noisy, sizes: Sequence[int], variant: str) -> np.ndarray:
    """Return the counts that a sampler uses, made from noisy counts.

    The variant "paper" clips noisy counts at 0. "corrected" projects them, so that each field keeps its noisy sum.
    "sums" leaves them unchanged, and the sampler clips the sums over each state.
    """
    if variant == "sums":
        return noisy
    return clip(noisy) if variant == "paper" else project(noisy, sizes)


def smallest_probabilities(sizes: Sequence[int], truncation: float) -> list[float]:
    """Return the smallest probability a0 = 1/(M K_d) of each field, for the truncation M and the field's K_d levels.

    Raises a ValueError if the truncation is outside [1.0001, 1e100].
    """
    check_range(f"[{SMALLEST_TRUNCATION}, {LARGEST_TRUNCATION}]", truncation=truncation)
    return [1 / (truncation * size) for size in sizes]


def log_likelihood_range(sizes: Sequence[int], truncation: float) -> float:
    """Return the largest difference between the log-likelihoods of two events: Δ = Σ_d ln((1 − (K_d − 1) a0)/a0)."""
    lows = smallest_probabilities(sizes, truncation)
    return math.fsum(math.log((1 - (size - 1) * low) / low) for size, low in zip(sizes, lows, strict=True))


def temperature(sizes: Sequence[int], truncation: float, epsilon: float) -> float:
    """Return the temperature T = max(1, 2Δ/ε) at which one exact joint sample costs at most ε."""
    check_range("(0, inf)", epsilon=epsilon)
    return max(1.0, 2 * log_likelihood_range(sizes, truncation) / epsilon)


def sampling_cost(sizes: Sequence[int], truncation: float, epsilon: float) -> float:
    """Return the cost 2Δ/T of one exact joint sample at the temperature T for ε. The cost is ε if T > 1."""
    return 2 * log_likelihood_range(sizes, truncation) / temperature(sizes, truncation, epsilon)


def unconverged_cost(sizes: Sequence[int], truncation: float, epsilon: float, iterations: int) -> float:
    """Return the cost of a Gibbs chain that may not have converged.

    A substituted event changes one or two cells, so the update of all states costs 2Δ/T by parallel composition. The
    update of the emissions costs 2Δ/T too. So 200 iterations cost 400 updates (Foulds et al. 2016, section 5).
    """
    return 2 * iterations * sampling_cost(sizes, truncation, epsilon)
