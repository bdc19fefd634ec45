"""Beta distribution truncated to an interval: mass, density and exact draws, stable far in its tails."""

import numpy as np
from scipy.special import betainc, betaincinv, betaln, xlog1py, xlogy

# Below this mass the regularised incomplete beta function loses digits to underflow.
_SMALLEST_MASS = 1e-280


def log_mass(parameters, low, high) -> np.ndarray:
    """Return ln P(low ≤ θ ≤ high) for θ ~ Beta(α, β).

    Args:
        parameters: (α, β), shape (..., 2).
        low, high: ends of the interval, 0 ≤ low < high ≤ 1, broadcast against the leading axes.

    Raises:
        ValueError: an empty interval or one outside [0, 1], or a parameter that is not positive.
    """
    a, b, low, high, _ = _toward_lower_tail(parameters, low, high)
    log_high, log_low = _log_cdf(a, b, high), _log_cdf(a, b, low)
    return log_high + np.log1p(-np.exp(log_low - log_high))


def log_density(theta, parameters, low, high) -> np.ndarray:
    """Return the log-density at θ of Beta(α, β) truncated to [low, high]. Shapes and errors are as in `log_mass`."""
    theta, parameters = np.asarray(theta, float), np.asarray(parameters, float)
    a, b = parameters[..., 0], parameters[..., 1]
    outside = (theta < low) | (theta > high)
    safe = np.where(outside, 0.5, theta)
    unnormalised = xlogy(a - 1, safe) + xlog1py(b - 1, -safe) - betaln(a, b)
    return np.where(outside, -np.inf, unnormalised - log_mass(parameters, low, high))


def mean(parameters, low, high) -> np.ndarray:
    """Return the mean of Beta(α, β) truncated to [low, high]. Shapes and errors are as in `log_mass`."""
    parameters = np.asarray(parameters, float)
    # The mean is α/(α+β) · P(α+1, β) / P(α, β), where P is the interval's mass.
    untruncated = parameters[..., 0] / parameters.sum(axis=-1)
    ratio = np.exp(log_mass(parameters + np.array([1.0, 0.0]), low, high) - log_mass(parameters, low, high))
    return np.clip(untruncated * ratio, low, high)


def quantile(probability, parameters, low, high) -> np.ndarray:
    """Return quantiles of Beta(α, β) truncated to [low, high].

    Args:
        probability: in [0, 1], broadcast against the leading axes.
        parameters, low, high: as in `log_mass`.

    Raises:
        ValueError: as in `log_mass`, or a probability outside [0, 1].
    """
    probability = np.asarray(probability, float)
    if not np.all((probability >= 0) & (probability <= 1)):
        raise ValueError("probability must lie in [0, 1]")
    a, b, low, high, flipped = _toward_lower_tail(parameters, low, high)
    a, b, low, high, flipped, u = np.broadcast_arrays(a, b, low, high, flipped, probability)
    u = np.where(flipped, 1 - u, u)
    mass_low, mass_high = betainc(a, b, low), betainc(a, b, high)
    theta = betaincinv(a, b, mass_low + u * (mass_high - mass_low))
    tail = mass_high < _SMALLEST_MASS
    if tail.any():
        theta = np.array(theta)
        theta[tail] = _tail_quantile(u[tail], a[tail], b[tail], low[tail], high[tail])
    theta = np.clip(theta, low, high)
    return np.where(flipped, 1 - theta, theta)


def sample(parameters, low, high, rng: np.random.Generator) -> np.ndarray:
    """Return one exact draw per leading index from Beta(α, β) truncated to [low, high].

    Shapes and errors are as in `log_mass`.
    """
    shape = np.broadcast_shapes(np.shape(parameters)[:-1], np.shape(low), np.shape(high))
    return np.clip(quantile(rng.random(shape), parameters, low, high), low, high)


def _toward_lower_tail(parameters, low, high):
    """Reflect θ → 1−θ where the interval lies above the mean, and return the new parameters, ends and a mask."""
    parameters = np.asarray(parameters, float)
    low, high = np.asarray(low, float), np.asarray(high, float)
    if not np.all((low >= 0) & (low < high) & (high <= 1)):
        raise ValueError(f"low is {low!r} and high is {high!r}; 0 <= low < high <= 1 must hold")
    if not np.all(parameters > 0):
        raise ValueError("parameters must be > 0")
    a, b = parameters[..., 0], parameters[..., 1]
    # Reflection avoids masses that are differences of numbers near 1.
    flipped = low > a / (a + b)
    return (
        np.where(flipped, b, a),
        np.where(flipped, a, b),
        np.where(flipped, 1 - high, low),
        np.where(flipped, 1 - low, high),
        flipped,
    )


def _log_cdf(a, b, x) -> np.ndarray:
    a, b, x = np.broadcast_arrays(a, b, x)
    mass = betainc(a, b, x)
    tail = (mass < _SMALLEST_MASS) & (x > 0)
    with np.errstate(divide="ignore"):
        log_cdf = np.array(np.log(mass))
    if tail.any():
        log_cdf[tail] = _log_cdf_in_tail(a[tail], b[tail], x[tail])
    return log_cdf


def _log_cdf_in_tail(a, b, x) -> np.ndarray:
    """Return ln I_x(a, b) from its continued fraction (DLMF 8.17.22), for x far below the mean."""
    tiny = 1e-300
    c, d = np.ones_like(x), 1 / _away_from_zero(1 - (a + b) * x / (a + 1), tiny)
    fraction = d.copy()
    for k in range(1, 10_000):
        even = k * (b - k) * x / ((a + 2 * k - 1) * (a + 2 * k))
        odd = -(a + k) * (a + b + k) * x / ((a + 2 * k) * (a + 2 * k + 1))
        before = fraction.copy()
        for coefficient in (even, odd):
            d = 1 / _away_from_zero(1 + coefficient * d, tiny)
            c = _away_from_zero(1 + coefficient / c, tiny)
            fraction *= c * d
        if np.all(np.abs(fraction / before - 1) < 1e-15):
            return xlogy(a, x) + xlog1py(b, -x) - np.log(a) - betaln(a, b) + np.log(fraction)
    raise ValueError("the continued fraction of the incomplete beta function did not converge")


def _away_from_zero(value, tiny):
    return np.where(np.abs(value) < tiny, tiny, value)


def _tail_quantile(u, a, b, low, high) -> np.ndarray:
    log_high, log_low = _log_cdf_in_tail(a, b, high), _log_cdf(a, b, low)
    share = np.exp(log_low - log_high)
    with np.errstate(divide="ignore"):
        target = log_high + np.log(share + u * (1 - share))
    lower, upper = low.copy(), high.copy()
    # 60 halvings of an interval inside [0, 1] reach its last digit.
    for _ in range(60):
        middle = (lower + upper) / 2
        below = _log_cdf(a, b, middle) < target
        lower, upper = np.where(below, middle, lower), np.where(below, upper, middle)
    return (lower + upper) / 2
