"""Private releases about events counted per cell and field: Laplace noise on counts, and posterior sampling.

A record is an event: one cell and one level of each of D fields. Substituting it changes at most two counts of each
field by 1 (also when the event moves to another cell), so a field's table has L1 sensitivity 2 and is released with
Lap(2/ε_d), ε_d = ε/D (Foulds et al. 2016, section 5).
"""

import math
from collections.abc import Sequence

import numpy as np

from privpost.models.base import check_range

SENSITIVITY = 2.0
# Range of M: below it floats cannot tell the remaining probabilities apart, above it they cannot represent a0.
SMALLEST_TRUNCATION = 1.0001
LARGEST_TRUNCATION = 1e100


def noise_scale(epsilon: float, n_fields: int) -> float:
    """Scale 2D/ε of the Laplace noise on every count when ε is shared equally by D fields.

    Raises:
        ValueError: an ε or a number of fields that is not positive.
    """
    check_range("(0, inf)", epsilon=epsilon)
    check_range("[1, inf)", n_fields=n_fields)
    return SENSITIVITY * n_fields / epsilon


def clip(noisy) -> np.ndarray:
    """max(0, ·) per count, as in the paper. If most counts are 0, it adds half a noise scale to each of them."""
    return np.maximum(noisy, 0.0)


def project(noisy, sizes: Sequence[int]) -> np.ndarray:
    """The non-negative counts nearest to the noisy ones with the same noisy sum, field by field.

    The Euclidean projection onto {x ≥ 0, Σx = s} subtracts one number from all levels of a field and clips; all
    zeros where s ≤ 0. Post-processing of the noisy counts.

    Args:
        noisy: (..., levels), the fields' levels one after the other.
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


def smallest_probabilities(sizes: Sequence[int], truncation: float) -> list[float]:
    """a0 = 1/(M K_d) for each field, with the truncation M and the field's number of levels K_d.

    Raises:
        ValueError: a truncation outside [1.0001, 1e100].
    """
    check_range(f"[{SMALLEST_TRUNCATION}, {LARGEST_TRUNCATION}]", truncation=truncation)
    return [1 / (truncation * size) for size in sizes]


def log_likelihood_range(sizes: Sequence[int], truncation: float) -> float:
    """Δ = Σ_d ln((1 − (K_d − 1) a0)/a0), the largest difference of two events' log-likelihoods."""
    lows = smallest_probabilities(sizes, truncation)
    return math.fsum(math.log((1 - (size - 1) * low) / low) for size, low in zip(sizes, lows, strict=True))


def temperature(sizes: Sequence[int], truncation: float, epsilon: float) -> float:
    """T = max(1, 2Δ/ε), at which one exact sample of the joint costs at most ε."""
    check_range("(0, inf)", epsilon=epsilon)
    return max(1.0, 2 * log_likelihood_range(sizes, truncation) / epsilon)


def sampling_cost(sizes: Sequence[int], truncation: float, epsilon: float) -> float:
    """2Δ/T, the cost of one exact sample at the temperature for ε: ε, or less if T = 1."""
    return 2 * log_likelihood_range(sizes, truncation) / temperature(sizes, truncation, epsilon)


def unconverged_cost(sizes: Sequence[int], truncation: float, epsilon: float, iterations: int) -> float:
    """Cost of a Gibbs chain whose convergence is unknown: the sum over both updates of all iterations.

    Given the emissions a cell's state depends on that cell alone; a substituted event changes one or two cells, by
    2Δ/T together (parallel composition). Given the states the emissions' update costs 2Δ/T as well. For 200
    iterations: 400 times the cost of an update (Foulds et al. 2016, section 5).
    """
    return 2 * iterations * sampling_cost(sizes, truncation, epsilon)
