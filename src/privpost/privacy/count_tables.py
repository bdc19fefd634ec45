"""Sensitivities and costs of releases about events in cells: Laplace noise on counts, and posterior sampling.

A record is an event: it has one cell and one level of each of D fields. Substituting it changes at most two counts of
each field by 1, even if the event moves to another cell. So a field's table has L1 sensitivity 2 and is released with
Lap(2/ε_d) noise, ε_d = ε/D (Foulds et al. 2016, section 5).
"""

import math
from collections.abc import Sequence

import numpy as np

from privpost.models.base import check_range

SENSITIVITY = 2.0
# Range of M: for smaller M floats cannot tell the possible probabilities apart, for larger M a0 underflows.
SMALLEST_TRUNCATION = 1.0001
LARGEST_TRUNCATION = 1e100


def noise_scale(epsilon: float, n_fields: int) -> float:
    """Scale 2D/ε of the Laplace noise on every count if D fields share ε equally.

    Raises:
        ValueError: ε or the number of fields is not positive.
    """
    check_range("(0, inf)", epsilon=epsilon)
    check_range("[1, inf)", n_fields=n_fields)
    return SENSITIVITY * n_fields / epsilon


def clip(noisy) -> np.ndarray:
    """Replace negative counts by 0, as in the paper. On average, this adds half a noise scale to a true count of 0."""
    return np.maximum(noisy, 0.0)


def project(noisy, sizes: Sequence[int]) -> np.ndarray:
    """Return, for each field, the nearest non-negative counts with the same sum s as the noisy counts.

    The Euclidean projection onto {x ≥ 0, Σx = s} subtracts the same number from all levels of a field and sets negative
    results to 0. If s ≤ 0, all counts are 0. This is post-processing of the noisy counts.

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
    """Return what a sampler takes for the counts: noisy counts clipped at 0 (`paper`), projected so that each field
    keeps its noisy sum (`corrected`), or unchanged (`sums`). For `sums`, the sampler clips the sums over each state."""
    if variant == "sums":
        return noisy
    return clip(noisy) if variant == "paper" else project(noisy, sizes)


def smallest_probabilities(sizes: Sequence[int], truncation: float) -> list[float]:
    """Smallest probabilities a0 = 1/(M K_d) of the fields, for truncation M and K_d levels.

    Raises:
        ValueError: the truncation is outside [1.0001, 1e100].
    """
    check_range(f"[{SMALLEST_TRUNCATION}, {LARGEST_TRUNCATION}]", truncation=truncation)
    return [1 / (truncation * size) for size in sizes]


def log_likelihood_range(sizes: Sequence[int], truncation: float) -> float:
    """Largest difference Δ = Σ_d ln((1 − (K_d − 1) a0)/a0) between the log-likelihoods of two events."""
    lows = smallest_probabilities(sizes, truncation)
    return math.fsum(math.log((1 - (size - 1) * low) / low) for size, low in zip(sizes, lows, strict=True))


def temperature(sizes: Sequence[int], truncation: float, epsilon: float) -> float:
    """Temperature T = max(1, 2Δ/ε) at which one exact joint sample costs at most ε."""
    check_range("(0, inf)", epsilon=epsilon)
    return max(1.0, 2 * log_likelihood_range(sizes, truncation) / epsilon)


def sampling_cost(sizes: Sequence[int], truncation: float, epsilon: float) -> float:
    """Cost 2Δ/T of one exact joint sample at the temperature for ε. The cost is ε if T > 1, at most ε if T = 1."""
    return 2 * log_likelihood_range(sizes, truncation) / temperature(sizes, truncation, epsilon)


def unconverged_cost(sizes: Sequence[int], truncation: float, epsilon: float, iterations: int) -> float:
    """Cost of a Gibbs chain that may not have converged: the sum of the costs of both updates in all iterations.

    Given the emissions, the update of a cell's state uses only the events of this cell. A substituted event changes one
    or two cells, so the update of all states costs 2Δ/T (parallel composition). The update of the emissions given the
    states costs 2Δ/T as well. So 200 iterations cost 400 updates (Foulds et al. 2016, section 5).
    """
    return 2 * iterations * sampling_cost(sizes, truncation, epsilon)
