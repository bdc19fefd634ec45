"""Exact posteriors of probabilities given noisy counts: the oracle for the noise-aware Gibbs sampler.

For bits

    p(θ | y) = Σ_s p(θ | s) p(s | y),   p(s | y) ∝ BetaBinomial(s; n, α, β) exp(−|y − s|/b),

summed over s = 0..n, without a normal approximation and without a Markov chain. For categories likewise, the others'
counts summed over by convolution.
"""

from __future__ import annotations

import numpy as np
from scipy import fft
from scipy.special import betainc, betaln, gammaln, xlog1py, xlogy

# A sum, which the report says: no Markov chain.
EXACT = True
# Elements of one work array, some tens of megabytes.
_ELEMENTS = 2_000_000


def count_weights(prior, release, n: int, scale: float) -> np.ndarray:
    """p(s | y) for s = 0..n.

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
    """P(Θ ≤ θ | s) = I_θ(α + s, β + n − s) for s = 0..n.

    By I_θ(a, b) = I_θ(a+1, b−1) + θ^a (1−θ)^(b−1) / (a B(a, b)) from the largest s downwards: positive terms only.

    Args:
        prior: (α, β).
        theta: values in (0, 1), shape (trials,).
        n: public number of records.
        counts: smallest and largest s; all when None.

    Returns:
        Shape (trials, n + 1), or as many columns as there are counts.
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
    """P(Θ ≤ θ | y) for each trial's own θ, at several noise scales.

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


def category_weights(prior, release, n: int, scale: float) -> np.ndarray:
    """p(s_j | y) for s_j = 0..n, of each of d categories, of whose counts the first q were released.

    The joint weight of counts that sum to n is Π_j g_j(s_j), g_j(s) = Γ(α_j + s)/s! · e^(−|y_j − s|/b); that of one
    count is g_j(s) times the convolution of all other g at n − s. The convolutions go through Fourier transforms, whose
    rounding is some 1e-16 of the largest weight.

    Args:
        prior: concentrations α, shape (d,).
        release: y, shape (q, trials).
        n: public number of records.
        scale: scale b of the Laplace noise.

    Returns:
        Weights, shape (d, trials, n + 1), summing to 1 over the last axis.
    """
    release = np.asarray(release, float)
    alpha, s = np.asarray(prior, float)[:, None, None], np.arange(n + 1.0)
    log_factor = np.repeat(gammaln(alpha + s) - gammaln(s + 1), release.shape[1], axis=1)
    log_factor[: len(release)] -= np.abs(release[..., None] - s) / scale
    # A tilt e^(ts) of all factors leaves the weights as they are and makes their means sum to n: of many categories
    # n is far from where the convolution is large, and lost in its rounding, without it.
    log_factor += _tilt(log_factor, s, n)[:, None] * s
    factor = np.exp(log_factor - log_factor.max(axis=2, keepdims=True))
    length = fft.next_fast_len(len(factor) * n + 1, real=True)
    waves = fft.rfft(factor, length)
    weights = np.empty_like(factor)
    for j in range(len(factor)):
        others = fft.irfft(np.prod(np.delete(waves, j, axis=0), axis=0), length)[:, n::-1]
        weights[j] = factor[j] * np.maximum(others, 0.0)
    return weights / weights.sum(axis=2, keepdims=True)


def _tilt(log_factor, s, n: int) -> np.ndarray:
    """t (trials,) with Σ_j E s_j = n under the factors e^(ts) g_j, by bisection to a thousandth of its range."""
    low, high = np.full(log_factor.shape[1], -100.0 / n), np.full(log_factor.shape[1], 100.0 / n)
    for _ in range(10):
        middle = (low + high) / 2
        tilted = log_factor + middle[:, None] * s
        weights = np.exp(tilted - tilted.max(axis=2, keepdims=True))
        above = ((weights @ s) / weights.sum(axis=2)).sum(axis=0) > n
        low, high = np.where(above, low, middle), np.where(above, middle, high)
    return (low + high) / 2


def categories_cdf(prior, release, theta, n: int, scale: float) -> np.ndarray:
    """P(Θ_j ≤ θ_j | y) for each trial's own θ.

    Args:
        prior: concentrations α, shape (d,).
        release: y, of the first q, shape (q, trials).
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


def posterior_density(prior, release, theta, n: int, scale: float) -> np.ndarray:
    """p(θ | y) on a grid of θ.

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
    # The rest is less than rounding.
    s = np.flatnonzero(weights.max(axis=0) > 1e-20)
    a, b = (alpha + s)[:, None], (beta + n - s)[:, None]
    return weights[:, s] @ np.exp(xlogy(a - 1, theta) + xlog1py(b - 1, -theta) - betaln(a, b))


def drawn_counts(weights, size: int, rng: np.random.Generator) -> np.ndarray:
    """Independent draws (size, trials) of counts with the probabilities `weights`, shape (trials, n + 1)."""
    trials, columns = weights.shape
    cumulative, row = np.cumsum(weights, axis=1), np.arange(trials)
    cumulative /= cumulative[:, -1:]
    # One search for all trials: each has its own unit interval.
    found = np.searchsorted((cumulative + row[:, None]).ravel(), rng.random((size, trials)) + row, side="right")
    return np.minimum(found - columns * row, columns - 1)


def latent_counts(log_factors, size: int, rng: np.random.Generator) -> np.ndarray:
    """Independent draws of counts that sum to n, with probability proportional to Π_j exp(log_factors[j, s_j]).

    With ln(Γ(α_j + s)/s!) plus the log-density of the noise on count j as factors they are draws from p(s | y): one
    count after the other, each given those before, by convolutions of the others' factors.

    Args:
        log_factors: shape (d, n + 1) for s = 0..n, d of at least 2; each up to a constant, −inf where impossible.
        size: number of draws.

    Returns:
        Counts, shape (size, d).
    """
    log_factors = np.asarray(log_factors, float)
    categories, n = len(log_factors), log_factors.shape[1] - 1
    s = np.arange(n + 1)
    if categories > 2:
        # As in `category_weights`: without a tilt the convolutions may be too small for floating point at n.
        log_factors = log_factors + _tilt(log_factors[:, None], s, n)[0] * s
    tails = [log_factors[-1]]
    for factor in log_factors[-2:0:-1]:
        tails.insert(0, _log_convolution(factor, tails[0]))
    first = log_factors[0] + tails[0][::-1]
    counts = np.zeros((size, categories), np.int64)
    counts[:, 0] = drawn_counts(np.exp(first - first.max())[None], size, rng)[:, 0]
    part = max(1, _ELEMENTS // (n + 1))
    for j, start in np.ndindex(categories - 2, -(-size // part)):
        rows = slice(start * part, (start + 1) * part)
        rest = (n - counts[rows].sum(axis=1))[:, None] - s
        log_weights = np.where(rest >= 0, log_factors[j + 1] + tails[j + 1][np.maximum(rest, 0)], -np.inf)
        weights = np.exp(log_weights - log_weights.max(axis=1, keepdims=True))
        counts[rows, j + 1] = drawn_counts(weights, 1, rng)[0]
    counts[:, -1] = n - counts.sum(axis=1)
    return counts


def _log_convolution(first, second) -> np.ndarray:
    """Logarithm of the convolution of two sequences given by theirs, cut to their length."""
    high = first.max(), second.max()
    # Terms are positive, so nothing cancels; what underflows is smaller than 1e-300 of the largest.
    with np.errstate(divide="ignore"):
        return np.log(np.convolve(np.exp(first - high[0]), np.exp(second - high[1]))[: len(first)]) + sum(high)
