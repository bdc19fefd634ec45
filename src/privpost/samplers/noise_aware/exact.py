"""Exact posteriors of probabilities given noisy counts: the reference for the noise-aware Gibbs sampler.

For binary data

    p(θ | y) = Σ_s p(θ | s) p(s | y),   p(s | y) ∝ BetaBinomial(s; n, α, β) exp(−|y − s|/b),

summed over s = 0..n, without a normal approximation and without a Markov chain. Categories work in the same way, with
a convolution over the other categories' counts.
"""

import numpy as np
from scipy import fft
from scipy.special import betainc, betaln, gammaln, xlog1py, xlogy

# Tells the report that this is a sum, not a Markov chain.
EXACT = True
# Elements of one work array, some tens of megabytes.
_ELEMENTS = 2_000_000
# Approximate number of values of a count from which a tilt is computed.
_TILTED = 400


def count_weights(prior, release, n: int, scale: float) -> np.ndarray:
    """Return p(s | y) for s = 0..n.

    Args:
        prior: (α, β).
        release: y, shape (trials,).
        n: public number of records.
        scale: scale b of the Laplace noise.

    Returns:
        Weights, shape (trials, n + 1), summing to 1 over the last axis.
    """
    alpha, beta = map(float, prior)
    s = np.arange(n + 1.0)
    log_prior = betaln(alpha + s, beta + n - s) - betaln(s + 1, n - s + 1)
    log_weights = log_prior - np.abs(np.asarray(release, float)[:, None] - s) / scale
    weights = np.exp(log_weights - log_weights.max(axis=1, keepdims=True))
    return weights / weights.sum(axis=1, keepdims=True)


def conditional_cdf(prior, theta, n: int, counts: tuple[int, int] | None = None) -> np.ndarray:
    """Return P(Θ ≤ θ | s) = I_θ(α + s, β + n − s) for s = 0..n.

    Recursion from the largest s down adds positive terms: I_θ(a, b) = I_θ(a+1, b−1) + θ^a (1−θ)^(b−1) / (a B(a, b)).

    Args:
        prior: (α, β).
        theta: values in (0, 1), shape (trials,).
        n: public number of records.
        counts: smallest and largest s; None for 0 and n.

    Returns:
        Shape (trials, n + 1), or fewer columns if `counts` is given: one for each s.
    """
    alpha, beta = map(float, prior)
    theta = np.asarray(theta, float)[:, None]
    low, high = counts or (0, n)
    s = np.arange(low, high, dtype=float)
    a, b = alpha + s, beta + n - s
    log_factor = gammaln(alpha + beta + n) - gammaln(a + 1) - gammaln(b)
    steps = np.exp(xlogy(a, theta) + xlog1py(b - 1, -theta) + log_factor)
    cdf = np.empty((len(theta), high - low + 1))
    cdf[:, -1:] = betainc(alpha + high, beta + n - high, theta)
    cdf[:, :-1] = cdf[:, -1:] + np.cumsum(steps[:, ::-1], axis=1)[:, ::-1]
    return np.minimum(cdf, 1.0)


def posterior_cdf(prior, release, theta, n: int, scales) -> np.ndarray:
    """Return P(Θ ≤ θ | y) at each trial's θ, for several noise scales.

    Args:
        prior: (α, β).
        release: y, shape (scales, trials).
        theta: shape (trials,).
        n: public number of records.
        scales: scales b of the Laplace noise, shape (scales,).

    Returns:
        Shape (scales, trials). Memory is bounded: trials are taken in parts.
    """
    release, theta = np.asarray(release, float), np.asarray(theta, float)
    values = np.empty(release.shape)
    part = max(1, _ELEMENTS // (n + 1))
    for start in range(0, len(theta), part):
        trials = slice(start, start + part)
        given_count = conditional_cdf(prior, theta[trials], n)
        for row, y, scale in zip(values, release, scales, strict=True):
            row[trials] = (count_weights(prior, y[trials], n, scale) * given_count).sum(axis=1)
    return np.clip(values, 0.0, 1.0)


def category_weights(prior, release, n: int, scale: float, first: int | None = None) -> np.ndarray:
    """Return p(s_j | y), s_j = 0..n, for the first `first` of d categories, given noisy counts of the first q ones.

    The joint weight of counts that sum to n is Π_j g_j(s_j), g_j(s) = Γ(α_j + s)/s! · e^(−|y_j − s|/b). The weight of
    one count is g_j(s) times the convolution of all other g at n − s. The convolutions use Fourier transforms, whose
    rounding error is about 1e-16 of the largest weight.

    Args:
        prior: concentrations α, shape (d,).
        release: y, shape (q, trials).
        n: public number of records.
        scale: scale b of the Laplace noise.
        first: number of categories in the result; d when None.

    Returns:
        Weights, shape (first, trials, n + 1), summing to 1 over the last axis.
    """
    release = np.asarray(release, float)
    alpha, s = np.asarray(prior, float)[:, None, None], np.arange(n + 1.0)
    log_factor = np.repeat(gammaln(alpha + s) - gammaln(s + 1), release.shape[1], axis=1)
    log_factor[: len(release)] -= np.abs(release[..., None] - s) / scale
    # A tilt e^(ts) of all factors does not change the weights and makes the means sum to n. Without a tilt, and with
    # many categories, the convolution is large only far from n, and its value at n is lost in rounding.
    log_factor += _tilt(log_factor, s, n)[:, None] * s
    factor = np.exp(log_factor - log_factor.max(axis=2, keepdims=True))
    length = fft.next_fast_len(max(1, len(factor) - 1) * n + 1, real=True)
    waves = fft.rfft(factor, length)
    weights = factor[:first].copy()
    for j in range(len(weights)):
        others = fft.irfft(np.prod(np.delete(waves, j, axis=0), axis=0), length)[:, n::-1]
        weights[j] *= np.maximum(others, 0.0)
    return weights / weights.sum(axis=2, keepdims=True)


def _tilt(log_factor, s, n: int) -> np.ndarray:
    """Return t (trials,) for which Σ_j E s_j is about n under the factors e^(ts) g_j, by ten steps of bisection.

    Some hundreds of values s are enough: every tilt gives the same weights, and a tilt near this one loses few digits.
    """
    some = slice(None, None, max(1, n // _TILTED))
    log_factor, s = log_factor[..., some], s[some]
    low, high = np.full(log_factor.shape[1], -100.0 / n), np.full(log_factor.shape[1], 100.0 / n)
    for _ in range(10):
        middle = (low + high) / 2
        tilted = log_factor + middle[:, None] * s
        weights = np.exp(tilted - tilted.max(axis=2, keepdims=True))
        above = ((weights @ s) / weights.sum(axis=2)).sum(axis=0) > n
        low, high = np.where(above, low, middle), np.where(above, middle, high)
    return (low + high) / 2


def categories_cdf(prior, release, theta, n: int, scale: float) -> np.ndarray:
    """Return P(Θ_j ≤ θ_j | y) for each category j, at each trial's θ.

    Args:
        prior: concentrations α, shape (d,).
        release: y, noisy counts of the first q categories, shape (q, trials).
        theta: shape (d, trials).
        n: public number of records.
        scale: scale of the Laplace noise.

    Returns:
        Shape (d, trials). Memory is bounded: trials are taken in parts.
    """
    release, theta = np.asarray(release, float), np.asarray(theta, float)
    values, total = np.empty(theta.shape), float(np.sum(prior))
    part = max(1, _ELEMENTS // (len(theta) ** 2 * (n + 1)))
    for start in range(0, release.shape[1], part):
        trials = slice(start, start + part)
        weights = category_weights(prior, release[:, trials], n, scale)
        for j, alpha in enumerate(prior):
            cdf = conditional_cdf((alpha, total - alpha), theta[j, trials], n)
            values[j, trials] = (weights[j] * cdf).sum(axis=1)
    return np.clip(values, 0.0, 1.0)


def expectations(prior, release, n: int, scale: float, given_count) -> np.ndarray:
    """Return E[f(θ_1) | y] of k functions f, from the law Beta(α_1 + s, Σα − α_1 + n − s) of θ_1 given its count s.

    Args: as for `category_weights`, and
        given_count: function of the arrays a and b that returns E f under Beta(a, b), shape (k, n + 1).

    Returns:
        Shape (k, trials). Memory is bounded: trials are taken in parts.
    """
    s, alpha, beta = np.arange(n + 1.0), float(prior[0]), float(np.sum(prior[1:]))
    values, parts = np.ascontiguousarray(given_count(alpha + s, beta + n - s).T), []
    part = max(1, _ELEMENTS // (len(prior) * (n + 1)))
    for start in range(0, release.shape[1], part):
        some = release[:, start : start + part]
        # With two categories one count determines both.
        binary = len(prior) == 2 and len(release) == 1
        weights = count_weights(prior, some[0], n, scale) if binary else category_weights(prior, some, n, scale, 1)[0]
        parts.append((weights @ values).T)
    return np.concatenate(parts, axis=1)


def posterior_density(prior, release, theta, n: int, scale: float) -> np.ndarray:
    """Return p(θ | y) on a grid of θ.

    Args:
        prior: (α, β).
        release: y, shape (trials,).
        theta: values in (0, 1), shape (points,).
        n: public number of records.
        scale: scale of the Laplace noise.

    Returns:
        Shape (trials, points).
    """
    alpha, beta = map(float, prior)
    weights, theta = count_weights(prior, release, n, scale), np.asarray(theta, float)
    # Smaller weights are below rounding.
    s = np.flatnonzero(weights.max(axis=0) > 1e-20)
    a, b = (alpha + s)[:, None], (beta + n - s)[:, None]
    return weights[:, s] @ np.exp(xlogy(a - 1, theta) + xlog1py(b - 1, -theta) - betaln(a, b))
