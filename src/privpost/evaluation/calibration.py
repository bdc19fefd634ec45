"""Simulation-based calibration: is the quantile U of the true parameter in its posterior uniform?

Cook, Gelman and Rubin (2006); the test of uniformity is that of Kolmogorov and Smirnov.
"""

import functools

import numpy as np
from scipy.special import kolmogi, kolmogorov, ndtri
from scipy.stats import binom

# Level of all of a claim's tests together, here and wherever calibration is scored.
LEVEL = 0.05


def ks_statistic(quantiles) -> np.ndarray:
    """Largest distance between the empirical distribution function of `quantiles` and that of Uniform(0, 1).

    Args:
        quantiles: values in [0, 1], M of them along the last axis.

    Returns:
        D = max_i max(i/M − u_(i), u_(i) − (i−1)/M), without that axis.

    Raises:
        ValueError: no values, or one outside [0, 1].

    >>> float(ks_statistic(np.array([0.125, 0.375, 0.625, 0.875])))
    0.125
    """
    ordered = np.sort(checked(quantiles), axis=-1)
    size = ordered.shape[-1]
    steps = np.arange(size + 1) / size
    return np.maximum(steps[1:] - ordered, ordered - steps[:-1]).max(axis=-1)


def ks_limit(size: int, level: float = 0.05) -> float:
    """Statistic that uniform values exceed with probability `level`: 1.358/√M at 5 %, asymptotically."""
    return float(kolmogi(level) / np.sqrt(size))


def ks_p_value(statistic, size: int) -> np.ndarray:
    """Probability that M uniform values give a larger statistic, asymptotically."""
    return kolmogorov(np.sqrt(size) * np.asarray(statistic, float))


def ks_visible(size: int, level: float = 0.05, power: float = 0.8) -> float:
    """Distance of U's law from uniform that a test of M values at `level` detects with probability at least `power`.

    Where the law is furthest, by δ, the empirical distribution function of M values is off by N(δ, s²) with
    s ≤ 1/(2√M): it leaves the limit with that chance from δ = limit + Φ⁻¹(power)/(2√M) on.
    """
    return float(ks_limit(size, level) + ndtri(power) / (2 * np.sqrt(size)))


def ks_columns(quantiles) -> dict[str, float]:
    """Columns of a table about M quantiles: `ks`, `ks_limit` and `ks_visible` (5 %), `p_value` and `n_trials`."""
    size, statistic = np.shape(quantiles)[-1], float(ks_statistic(quantiles))
    test = {"ks": statistic, "ks_limit": ks_limit(size), "ks_visible": ks_visible(size)}
    return {**test, "p_value": float(ks_p_value(statistic, size)), "n_trials": size}


def randomised_rank(below, draws: int, rng: np.random.Generator) -> np.ndarray:
    """(rank + V)/(m + 1) with V ~ Uniform(0, 1): exactly uniform where θ and m draws of its posterior are exchangeable.

    Args:
        below: number of the m draws below the true parameter, any shape.
        draws: m.
        rng: source of V, apart from that of the draws.
    """
    return (below + rng.random(np.shape(below))) / (draws + 1)


def empirical_cdf(quantiles, at) -> np.ndarray:
    """Share of the values (M,) that are at most each of the points (k,)."""
    values = np.sort(checked(quantiles))
    return np.searchsorted(values, at, side="right") / len(values)


def cdf_band(at, size: int) -> tuple[np.ndarray, np.ndarray]:
    """Band that the empirical distribution function of M uniform values leaves anywhere with probability `LEVEL`.

    It is the points plus or minus `ks_limit`, clipped to [0, 1]: a function that leaves it fails the test.
    """
    width = ks_limit(size, LEVEL)
    return np.maximum(at - width, 0.0), np.minimum(at + width, 1.0)


@functools.lru_cache
def simultaneous_band(points: tuple[float, ...], size: int, level: float = LEVEL) -> tuple[np.ndarray, np.ndarray]:
    """Band that the empirical distribution function of M uniform values leaves at a point with probability `level`.

    Unlike `cdf_band` it is as narrow near 0 and 1 as the function varies there (Säilynoja, Bürkner and Vehtari 2022):
    pointwise binomial intervals, at the level that gives the simultaneous level, by 4,000 simulated functions.

    Args:
        points: where the function is looked at, increasing, in (0, 1); k of them.
        size: M.

    Returns:
        Lower and upper ends (k,), as shares of M.
    """
    at = np.asarray(points)
    shares = np.diff(at, prepend=0.0, append=1.0)
    # A fixed stream: the band is a constant of its arguments.
    counts = np.random.default_rng(2022).multinomial(size, shares, 4000)[:, :-1].cumsum(axis=1)
    tails = np.minimum(binom.cdf(counts, size, at), binom.sf(counts - 1, size, at)).min(axis=1)
    pointwise = np.quantile(tails, level)
    return binom.ppf(pointwise, size, at) / size, binom.isf(pointwise, size, at) / size


def checked(quantiles) -> np.ndarray:
    """Return quantiles as an array; raises ValueError where there are none, or one is outside [0, 1]."""
    quantiles = np.asarray(quantiles, float)
    if quantiles.size == 0 or not np.all((quantiles >= 0) & (quantiles <= 1)):
        raise ValueError("quantiles must be values in [0, 1], at least one")
    return quantiles
