"""Exact posteriors of probabilities given noisy counts, to check the noise-aware Gibbs sampler.

For binary data with true count s, noisy count y and noise of scale b, the posterior is a sum over s = 0..n:

    p(θ | y) = Σ_s p(θ | s) p(s | y),   p(s | y) ∝ BetaBinomial(s; n, α, β) exp(−|y − s|/b).

For more categories, p(s | y) includes a convolution over the counts of the other categories.
"""

import numpy as np
from scipy import fft
from scipy.special import betainc, betaln, gammaln, xlog1py, xlogy

# Tells the report that this is a sum, not a Markov chain.
EXACT = True
# Elements of one work array, some tens of megabytes.
_ELEMENTS = 2_000_000
# A tilt is computed from about this many values of each count.
_TILTED = 400


def count_weights(prior, release, n: int, scale: float) -> np.ndarray:
    """Return the posterior probabilities p(s | y) of the true counts s = 0..n, shape (trials, n + 1).

    Args:
        prior: parameters (α, β) of the beta prior.
        release: noisy counts y, shape (trials,).
        n, scale: public number of records, and scale b of the Laplace noise.
    """
    alpha, beta = map(float, prior)
    s = np.arange(n + 1.0)
    log_prior = betaln(alpha + s, beta + n - s) - betaln(s + 1, n - s + 1)
    log_weights = log_prior - np.abs(np.asarray(release, float)[:, None] - s) / scale
    weights = np.exp(log_weights - log_weights.max(axis=1, keepdims=True))
    return weights / weights.sum(axis=1, keepdims=True)


def conditional_cdf(prior, theta, n: int, counts: tuple[int, int] | None = None) -> np.ndarray:
    """Return P(Θ ≤ θ | s) = I_θ(α + s, β + n − s), with a row per trial and a column per true count s.

    Args:
        prior: parameters (α, β) of the beta prior.
        theta: values θ in (0, 1), shape (trials,).
        n: public number of records.
        counts: smallest and largest s; None for 0 and n.
    """
    alpha, beta = map(float, prior)
    theta = np.asarray(theta, float)[:, None]
    low, high = counts or (0, n)
    s = np.arange(low, high, dtype=float)
    a, b = alpha + s, beta + n - s
    # I_θ(a, b) = I_θ(a+1, b−1) + θ^a (1−θ)^(b−1) / (a B(a, b)) adds positive terms, from the largest s down.
    log_factor = gammaln(alpha + beta + n) - gammaln(a + 1) - gammaln(b)
    steps = np.exp(xlogy(a, theta) + xlog1py(b - 1, -theta) + log_factor)
    cdf = np.empty((len(theta), high - low + 1))
    cdf[:, -1:] = betainc(alpha + high, beta + n - high, theta)
    cdf[:, :-1] = cdf[:, -1:] + np.cumsum(steps[:, ::-1], axis=1)[:, ::-1]
    return np.minimum(cdf, 1.0)


def posterior_cdf(prior, release, theta, n: int, scales) -> np.ndarray:
    """Return P(Θ ≤ θ | y), shape (scales, trials), at each trial's θ, for several noise scales.

    Args:
        prior: parameters (α, β) of the beta prior.
        release: noisy counts y, shape (scales, trials).
        theta: values θ, shape (trials,).
        n: public number of records.
        scales: scales b of the Laplace noise, shape (scales,).
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
    """Return the posteriors p(s_j | y), shape (first, trials, n + 1), of the true count s_j of each category j.

    Counts that sum to n have the joint weight Π_j g_j(s_j), where g_j(s) = Γ(α_j + s)/s! · e^(−|y_j − s|/b). Categories
    without a noisy count y_j lack the exponential. So p(s_j | y) is proportional to g_j(s_j) times the value, at
    n − s_j, of the convolution of all other g. The rounding error is about 1e-16 of the largest weight.

    Args:
        prior: concentrations α, shape (d,).
        release: noisy counts y of the first q categories, shape (q, trials).
        n, scale: public number of records, and scale b of the Laplace noise.
        first: number of categories in the result, from the first category on; d when None.
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
    """Return exponents t (trials,) for which the factors e^(ts) g_j(s) give mean counts that sum to about n."""
    # Every tilt gives the same weights, and a tilt near this one loses few digits. So some hundreds of s are enough.
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
    """Return P(Θ_j ≤ θ_j | y), shape (d, trials), for each category j at each trial's θ.

    Args:
        prior: concentrations α, shape (d,).
        release: noisy counts y of the first q categories, shape (q, trials).
        theta: values θ, shape (d, trials).
        n, scale: public number of records, and scale of the Laplace noise.
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
    """Return posterior expectations (k, trials) of k functions f of the first category's probability θ_1.

    Given the count s of this category, θ_1 has the law Beta(α_1 + s, Σα − α_1 + n − s). `given_count(a, b)` returns E f
    under Beta(a, b), shape (k, n + 1). All other arguments are as for `category_weights`.
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
    """Return the posterior density p(θ | y), shape (trials, points), at the points `theta`.

    Args:
        prior: parameters (α, β) of the beta prior.
        release: noisy counts y, shape (trials,).
        theta: values in (0, 1), shape (points,).
        n, scale: public number of records, and scale of the Laplace noise.
    """
    alpha, beta = map(float, prior)
    weights, theta = count_weights(prior, release, n, scale), np.asarray(theta, float)
    # Smaller weights are below rounding.
    s = np.flatnonzero(weights.max(axis=0) > 1e-20)
    a, b = (alpha + s)[:, None], (beta + n - s)[:, None]
    return weights[:, s] @ np.exp(xlogy(a - 1, theta) + xlog1py(b - 1, -theta) - betaln(a, b))
