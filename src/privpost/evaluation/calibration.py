"""Simulation-based calibration (Cook, Gelman and Rubin 2006) with the Kolmogorov-Smirnov test.

The test shows whether the quantile U of the true parameter in its posterior is uniform.
"""

import functools

import numpy as np
from scipy.special import kolmogi, kolmogorov, ndtri

# Joint level of all tests behind one claim, here and wherever calibration is scored.
LEVEL = 0.05


def ks_statistic(quantiles) -> np.ndarray:
    """Return the Kolmogorov-Smirnov distance (...) of values (..., M) from the uniform distribution.

    Raises:
        ValueError: there are no values, or a value is outside [0, 1].

    >>> float(ks_statistic(np.array([0.125, 0.375, 0.625, 0.875])))
    0.125
    """
    ordered = np.sort(checked(quantiles), axis=-1)
    size = ordered.shape[-1]
    steps = np.arange(size + 1) / size
    return np.maximum(steps[1:] - ordered, ordered - steps[:-1]).max(axis=-1)


def ks_limit(size: int, level: float = 0.05) -> float:
    """Return the limit that the `ks_statistic` of `size` uniform values exceeds with probability `level`."""
    return float(kolmogi(level) / np.sqrt(size))


def ks_p_value(statistic, size: int) -> np.ndarray:
    """Return the probability that the `ks_statistic` of `size` uniform values exceeds `statistic`, for large `size`."""
    return kolmogorov(np.sqrt(size) * np.asarray(statistic, float))


def ks_visible(size: int, level: float = 0.05, power: float = 0.8) -> float:
    """Return the smallest distance from uniform that M values show at `level` with probability at least `power`.

    The distance δ is the largest difference between the values' distribution function and the uniform one. At this
    largest difference, the empirical function has the error N(0, s²) with s ≤ 1/(2√M). So the test detects
    δ = limit + Φ⁻¹(power)/(2√M).
    """
    return float(ks_limit(size, level) + ndtri(power) / (2 * np.sqrt(size)))


def ks_columns(quantiles) -> dict[str, float]:
    """Return the table columns `ks`, `ks_limit`, `ks_visible`, `p_value` and `n_trials` for quantiles (M,)."""
    size, statistic = np.shape(quantiles)[-1], float(ks_statistic(quantiles))
    test = {"ks": statistic, "ks_limit": ks_limit(size), "ks_visible": ks_visible(size)}
    return {**test, "p_value": float(ks_p_value(statistic, size)), "n_trials": size}


def randomised_rank(below, draws: int, rng: np.random.Generator) -> np.ndarray:
    """Return randomised ranks (rank + V)/(m + 1) of true parameters θ among m posterior draws, with V ~ Uniform(0, 1).

    A randomised rank is uniform if θ and the draws are exchangeable.

    Args:
        below: number of the m draws below θ, any shape.
        draws: number m of posterior draws.
        rng: source of V, which must not be the generator of the draws.
    """
    return (below + rng.random(np.shape(below))) / (draws + 1)


def empirical_cdf(quantiles, at) -> np.ndarray:
    """Return the empirical distribution function of the values (M,) at the points (k,)."""
    values = np.sort(checked(quantiles))
    return np.searchsorted(values, at, side="right") / len(values)


def cdf_band(at, size: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the lower and upper ends of the Kolmogorov-Smirnov band at the points `at`.

    The empirical distribution function of `size` uniform values leaves this band with probability `LEVEL`.
    """
    width = ks_limit(size, LEVEL)
    return np.maximum(at - width, 0.0), np.minimum(at + width, 1.0)


@functools.lru_cache
def simultaneous_band(points: tuple[float, ...], size: int, level: float = LEVEL) -> tuple[np.ndarray, np.ndarray]:
    """Return the ends (k,) of a band that M uniform values leave at one or more points with probability `level`.

    Unlike `cdf_band`, the band narrows towards 0 and 1 (Säilynoja, Bürkner and Vehtari 2022). The band is a binomial
    interval at each point. All intervals have one level, which is found from 4,000 simulated samples.

    Args:
        points: k increasing points in (0, 1) at which the empirical distribution function is evaluated.
        size: number M of values.
    """
    from scipy.stats import binom

    at = np.asarray(points)
    shares = np.diff(at, prepend=0.0, append=1.0)
    # With a fixed seed, equal arguments always give the same band.
    counts = np.random.default_rng(2022).multinomial(size, shares, 4000)[:, :-1].cumsum(axis=1)
    # Each possible count is evaluated once, since most counts occur in many samples.
    every = np.arange(size + 1)[:, None]
    tails = np.minimum(binom.cdf(every, size, at), binom.sf(every - 1, size, at))
    pointwise = np.quantile(np.take_along_axis(tails, counts, axis=0).min(axis=1), level)
    return binom.ppf(pointwise, size, at) / size, binom.isf(pointwise, size, at) / size


def checked(quantiles) -> np.ndarray:
    """Return quantiles as an array. An empty array or a value outside [0, 1] raises a ValueError."""
    quantiles = np.asarray(quantiles, float)
    if quantiles.size == 0 or not np.all((quantiles >= 0) & (quantiles <= 1)):
        raise ValueError("quantiles must be values in [0, 1], at least one")
    return quantiles
