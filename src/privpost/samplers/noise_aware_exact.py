"""Exact posteriors of probabilities given noisy counts: the oracle for the noise-aware Gibbs sampler.

For bits

    p(θ | y) = Σ_s p(θ | s) p(s | y),   p(s | y) ∝ BetaBinomial(s; n, α, β) exp(−|y − s|/b),

summed over s = 0..n, without a normal approximation and without a Markov chain. For categories likewise, the others'
counts summed over by convolution.
"""

from typing import NamedTuple

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from scipy import fft
from scipy.special import betainc, betaln, gammaln, xlog1py, xlogy

# A sum, which the report says: no Markov chain.
EXACT = True
# Elements of one work array, some tens of megabytes.
_ELEMENTS = 2_000_000
# Values of a count that its tilt is found by.
_TILTED = 400
# How far below the likeliest count, in nats, others are left out.
_DEPTH = 80.0
# Products of a convolution up to which it is a sum; beyond, by Fourier transforms, shares that are only rounding.
_DIRECT, _ROUNDING = 10**7, 1e-14
# Counts that a tilt is found by, at least, and on either side of a peak.
_EVERY, _NEAR = 20_000, 500
# Splits of sums that are weighed at once: they stay in the processor's memory.
_AT_ONCE = 1 << 17
# Rounds of rejection before the sums that are left are split one by one.
_ROUNDS = 30


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


def category_weights(prior, release, n: int, scale: float, first: int | None = None) -> np.ndarray:
    """p(s_j | y) for s_j = 0..n, of the first of d categories, or all; the first q counts were released.

    The joint weight of counts that sum to n is Π_j g_j(s_j), g_j(s) = Γ(α_j + s)/s! · e^(−|y_j − s|/b); that of one
    count is g_j(s) times the convolution of all other g at n − s. The convolutions go through Fourier transforms, whose
    rounding is some 1e-16 of the largest weight.

    Args:
        prior: concentrations α, shape (d,).
        release: y, shape (q, trials).
        n: public number of records.
        scale: scale b of the Laplace noise.
        first: number of categories; d when None.

    Returns:
        Weights, shape (first, trials, n + 1), summing to 1 over the last axis.
    """
    release = np.asarray(release, float)
    alpha, s = np.asarray(prior, float)[:, None, None], np.arange(n + 1.0)
    log_factor = np.repeat(gammaln(alpha + s) - gammaln(s + 1), release.shape[1], axis=1)
    log_factor[: len(release)] -= np.abs(release[..., None] - s) / scale
    # A tilt e^(ts) of all factors leaves the weights as they are and makes their means sum to n: of many categories
    # n is far from where the convolution is large, and lost in its rounding, without it.
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
    """t (trials,) with Σ_j E s_j of about n under the factors e^(ts) g_j, by bisection to a thousandth of its range.

    The sums run over some hundreds of s: any tilt is right, and one near this spares digits.
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


def expectations(prior, release, n: int, scale: float, given_count) -> np.ndarray:
    """E f(θ_1 | y) of the first probability, by its conditionals Beta(α_1 + s, Σα − α_1 + n − s) given its count s.

    Args: as of `category_weights`, and
        given_count: E f under Beta(a, b), shape (k, n + 1), as a function of the arrays a and b.

    Returns:
        Shape (k, trials). Memory is bounded: trials are taken in parts.
    """
    s, alpha, beta = np.arange(n + 1.0), float(prior[0]), float(np.sum(prior[1:]))
    values, parts = np.ascontiguousarray(given_count(alpha + s, beta + n - s).T), []
    part = max(1, _ELEMENTS // (len(prior) * (n + 1)))
    for start in range(0, release.shape[1], part):
        some = release[:, start : start + part]
        # Of two categories one count is all.
        binary = len(prior) == 2 and len(release) == 1
        weights = count_weights(prior, some[0], n, scale) if binary else category_weights(prior, some, n, scale, 1)[0]
        parts.append((weights @ values).T)
    return np.concatenate(parts, axis=1)


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


def _drawn(weights, row, uniform) -> np.ndarray:
    """Columns where uniform variates fall in the distributions (rows, columns) of their rows."""
    cumulative, columns = np.cumsum(weights, axis=1), weights.shape[1]
    cumulative /= cumulative[:, -1:]
    # One search for all: each row has its own unit interval.
    flat = (cumulative + np.arange(len(weights))[:, None]).ravel()
    return np.minimum(np.searchsorted(flat, uniform + row, side="right") - columns * row, columns - 1)


def latent_counts(log_factors, size: int, rng: np.random.Generator) -> np.ndarray:
    """Independent draws of counts that sum to n, with probability proportional to Π_j exp(log_factors[j, s_j]).

    With ln(Γ(α_j + s)/s!) plus the log-density of the noise on count j as factors they are draws from p(s | y): sums of
    half of the counts, of a quarter, and so on, by convolutions of their factors. Of three and more, counts whose
    chance is below 1e-34 of the likeliest are left out.

    Args:
        log_factors: shape (d, n + 1) for s = 0..n, d of at least 2; each up to a constant, −inf where impossible.
        size: number of draws.

    Returns:
        Counts, shape (size, d).
    """
    log_factors = np.asarray(log_factors, float)
    n = log_factors.shape[1] - 1
    if len(log_factors) == 2:
        log_weights = log_factors[:1] + log_factors[1, ::-1]
        first = _drawn(np.exp(log_weights - log_weights.max()), np.zeros(size, np.int64), rng.random(size))
        return np.stack([first, n - first], axis=1)
    # As in `category_weights`: the factors are largest where they sum to n.
    return _Sum.of(log_factors + _fine_tilt(log_factors, n) * np.arange(n + 1)).counts(np.full(size, n), rng)


def class_counts(release, sizes, concentration: float, n: int, scale: float, size: int, rng) -> np.ndarray:
    """Independent draws of a naive Bayes model's counts given noisy ones, exact but for counts of a chance below 1e-30.

    Given the number N of records of a class its fields are independent, each with a Dirichlet-multinomial law of its
    levels, so that p(N | y) is a product over the fields of sums over their counts. All numbers of records of the
    classes that sum to n are equally likely, as in `noise_aware_events`.

    Args:
        release: noisy counts, shape (classes, levels), the fields' levels one after the other.
        sizes: levels of each field.
        concentration: b > 0 of the fields' Dirichlet priors.
        n: public number of records.
        scale: scale of the Laplace noise.
        size: number of draws.
        rng: source of randomness.

    Returns:
        Counts, shape (size, classes, levels).
    """
    s, ends = np.arange(n + 1.0), np.cumsum(sizes)
    own, log_factorial = gammaln(concentration + s) - gammaln(s + 1), gammaln(s + 1)
    # About where the classes' numbers lie, and sums are made precise: the fields' noisy sums, the larger ones' less.
    guess = np.add.reduceat(np.maximum(release, 0.0), ends - sizes, axis=1) @ (1 / np.array(sizes)) + 1e-9
    guess *= n / guess.sum()
    weights, fields = np.zeros((len(release), n + 1)), []
    for k, (row, expected) in enumerate(zip(release, guess, strict=True)):
        fields.append([])
        for levels, end in zip(sizes, ends, strict=True):
            factors = own - np.abs(row[end - levels : end, None] - s) / scale
            tilt = _fine_tilt(factors, expected)
            fields[-1].append(_Sum.of(factors + tilt * s))
            weights[k] += fields[-1][-1].all.at(np.arange(n + 1)) - tilt * s
            weights[k] += log_factorial - gammaln(levels * concentration + s)
    totals = latent_counts(weights, size, rng)
    drawn = [[field.counts(totals[:, k], rng) for field in row] for k, row in enumerate(fields)]
    return np.stack([np.concatenate(row, axis=1) for row in drawn], axis=1)


class _Window(NamedTuple):
    """Logarithms of a sequence's entries from `start` on; all others count as 0."""

    start: int
    logs: np.ndarray

    @classmethod
    def of(cls, start: int, logs) -> "_Window":
        """Without the ends that lie more than `_DEPTH` below the largest entry."""
        kept = np.flatnonzero(logs >= logs.max() - _DEPTH)
        return cls(start + int(kept[0]), logs[kept[0] : kept[-1] + 1])

    def convolved(self, other: "_Window", n: int) -> "_Window":
        """The convolution of both, up to n."""
        high, start = (self.logs.max(), other.logs.max()), self.start + other.start
        pair = np.exp(self.logs - high[0]), np.exp(other.logs - high[1])
        if len(self.logs) * len(other.logs) <= _DIRECT:
            # Terms are positive, so nothing cancels.
            found = np.convolve(*pair)
        else:
            # Brings scipy.stats, which takes longer to import than most draws.
            from scipy import signal

            found = signal.fftconvolve(*pair)
            found[found < _ROUNDING * found.max()] = 0.0
        with np.errstate(divide="ignore"):
            return _Window.of(start, (np.log(found) + sum(high))[: n + 1 - start])

    @property
    def end(self) -> int:
        """The last entry's place."""
        return self.start + len(self.logs) - 1

    @property
    def shares(self) -> np.ndarray:
        """The entries as shares of the largest."""
        return np.exp(self.logs - self.logs.max())

    def at(self, places) -> np.ndarray:
        """Entries at some places, −inf outside."""
        places = places - self.start
        inside = (places >= 0) & (places < len(self.logs))
        return np.where(inside, self.logs[np.where(inside, places, 0)], -np.inf)


class _Sum(NamedTuple):
    """What counts weigh together by their sum, and the same of the halves of them; no halves of a single count."""

    all: _Window
    halves: "tuple[_Sum, _Sum] | None"

    @classmethod
    def of(cls, log_factors) -> "_Sum":
        """Of factors (d, n + 1)."""
        half, n = len(log_factors) // 2, log_factors.shape[1] - 1
        if not half:
            return cls(_Window.of(0, log_factors[0]), None)
        one, other = cls.of(log_factors[:half]), cls.of(log_factors[half:])
        return cls(one.all.convolved(other.all, n), (one, other))

    def counts(self, totals, rng) -> np.ndarray:
        """Draws of the counts, shape (size, d), that sum to the totals (size,).

        By halves, as sums of few counts are small and can be split in few ways.
        """
        if self.halves is None:
            return totals[:, None]
        one, other = self.halves
        first = _split(one.all, other.all, totals, rng)
        return np.concatenate([one.counts(first, rng), other.counts(totals - first, rng)], axis=1)


def _split(window: _Window, others: _Window, totals, rng) -> np.ndarray:
    """Draws of the first part of each sum (size,) of it and the others."""
    found, open_ = np.full(len(totals), -1), np.arange(len(totals))
    cumulative, highest = np.cumsum(window.shares), others.logs.max()
    for _ in range(_ROUNDS):
        if len(np.unique(totals[open_])) * len(window.logs) <= _ELEMENTS:
            break
        # Proposed by the part's own factor and accepted by the others', before sums are taken.
        places = np.searchsorted(cumulative, rng.random(len(open_)) * cumulative[-1], side="right")
        places = window.start + np.minimum(places, len(cumulative) - 1)
        accepted = others.at(totals[open_] - places) - highest > -rng.standard_exponential(len(open_))
        found[open_[accepted]] = places[accepted]
        open_ = open_[~accepted]
    sums, row = np.unique(totals[open_], return_inverse=True)
    order, uniform = np.argsort(row, kind="stable"), rng.random(len(open_))
    own, rest, part = window.shares, others.shares[::-1], max(1, _AT_ONCE // len(window.logs))
    for start in range(0, len(sums), part):
        some = sums[start : start + part]
        low, high = max(window.start, some[0] - others.end), min(window.end, some[-1] - others.start)
        # Row by row the others' shares for low..high of the first part, 0 where they have none.
        padded = np.pad(rest, high - low + 1)
        shares = sliding_window_view(padded, high - low + 1)[others.end + high + 1 - some]
        mine = order[slice(*np.searchsorted(row[order], (start, start + part)))]
        weights = shares * own[low - window.start : high - window.start + 1]
        found[open_[mine]] = low + _drawn(weights, row[mine] - start, uniform[mine])
    return found


def _fine_tilt(log_factors, n: float) -> float:
    """t with Σ_j E s_j = n under the factors (d, …) times e^(ts), by bisection."""
    size = log_factors.shape[1]
    s = np.arange(float(size))
    if size > _EVERY:
        # Any tilt is right: some of the counts, and those around the peaks, weighed by their distances.
        near = np.argmax(log_factors, axis=1)[:, None] + np.arange(-_NEAR, _NEAR + 1)
        s = np.unique(np.concatenate([np.arange(0, size, size // _EVERY), near.ravel().clip(0, size - 1), [size - 1]]))
        log_factors = log_factors[:, s] + np.log(np.gradient(s.astype(float)))
    with np.errstate(invalid="ignore"):
        steps = np.diff(log_factors)
    steep = np.abs(steps[np.isfinite(steps)]).max(initial=1.0)
    low, high = -2 * steep, 2 * steep
    for _ in range(40):
        middle = (low + high) / 2
        tilted = log_factors + middle * s
        weights = np.exp(tilted - tilted.max(axis=1, keepdims=True))
        low, high = (low, middle) if ((weights @ s) / weights.sum(axis=1)).sum() > n else (middle, high)
    return (low + high) / 2
