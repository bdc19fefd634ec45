"""Independent draws of true counts given noisy counts, exact except for counts of probability below 1e-30.

The true counts sum to a public number. This number is split at random into the sums of both halves of the counts, each
sum is split into the sums of two quarters, and so on. Convolutions of the weights of single counts give the laws of the
sums.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from scipy.special import betainc, gammaln, logsumexp

# Tells the report that these draws are from sums, not from a Markov chain.
EXACT = True
# If the sums can be split in more ways than this, rejection is tried first.
_ELEMENTS = 100_000
# Counts whose log-probability is this far below the largest are left out.
_DEPTH = 80.0
# A convolution of up to this many products is a direct sum; a larger one uses Fourier transforms.
_DIRECT = 10**7
# Results of Fourier transforms below this share of the largest are rounding errors.
_ROUNDING = 1e-14
# Above this number of possible values of a count, a tilt is computed from at least this many evenly spread values.
_EVERY = 20_000
# The tilt then also uses this many values on either side of each peak.
_NEAR = 500
# Number of splits whose weights are computed at once: they fit into the processor's cache.
_AT_ONCE = 1 << 17
# Rounds of rejection before the remaining sums are split one by one.
_ROUNDS = 30


def _drawn(weights, row, uniform) -> np.ndarray:
    """For each uniform variate, return a random column by the weights (rows, columns) in the variate's row."""
    cumulative, columns = np.cumsum(weights, axis=1), weights.shape[1]
    cumulative /= cumulative[:, -1:]
    # Adding the row's number to each row makes one increasing list of all rows, which is searched once.
    flat = (cumulative + np.arange(len(weights))[:, None]).ravel()
    return np.minimum(np.searchsorted(flat, uniform + row, side="right") - columns * row, columns - 1)


def latent_counts(log_factors, size: int, rng: np.random.Generator) -> np.ndarray:
    """Return independent draws (size, d) of counts s_j that sum to n.

    The probability of a draw is proportional to Π_j exp(log_factors[j, s_j]). The draws follow p(s | y) if the
    log-factors are ln(Γ(α_j + s)/s!) plus the log-density of the noise on count j. With three or more counts, values
    less likely than 1e-34 times the likeliest are left out.

    Args:
        log_factors: log-factor of each count at s = 0..n, shape (d, n + 1), d ≥ 2, −inf where s is impossible.
        size: number of draws.
    """
    log_factors = np.asarray(log_factors, float)
    n = log_factors.shape[1] - 1
    if len(log_factors) == 2:
        log_weights = log_factors[:1] + log_factors[1, ::-1]
        first = _drawn(np.exp(log_weights - log_weights.max()), np.zeros(size, np.int64), rng.random(size))
        return np.stack([first, n - first], axis=1)
    # Factors are tilted as in `exact.category_weights`, so that the counts of the largest factors sum to about n.
    return _Sum.of(log_factors + _fine_tilt(log_factors, n) * np.arange(n + 1)).counts(np.full(size, n), rng)


def class_counts(
    release, sizes, concentration: float, n: int, scale: float, size: int, rng, elsewhere=False
) -> np.ndarray:
    """Return independent draws (size, classes, levels) of a naive Bayes model's true counts given noisy counts.

    A priori, all class sizes that sum to n are equally likely. Given the size of a class, the counts of each field are
    Dirichlet-multinomial and independent of other fields. Draws are exact except for counts of probability below 1e-30.

    Args:
        release: noisy counts, shape (classes, levels), the fields' levels one after the other.
        sizes: number of levels of each field.
        concentration: concentration > 0 of the fields' Dirichlet priors.
        n, scale: public number of records, and scale of the Laplace noise.
        size: number of draws.
        elsewhere: whether records may belong to no class, so that the class sizes may sum to less than n.
    """
    s, ends = np.arange(n + 1.0), np.cumsum(sizes)
    log_factorial = gammaln(s + 1)
    log_prior = gammaln(concentration + s) - log_factorial
    # Sums are most precise near this guess of the class sizes: the fields' noisy sums, averaged with weights 1/levels.
    guess = np.add.reduceat(np.maximum(release, 0.0), ends - sizes, axis=1) @ (1 / np.array(sizes)) + 1e-9
    guess /= (1 / np.array(sizes)).sum()
    guess *= min(1.0, n / guess.sum()) if elsewhere else n / guess.sum()
    weights, fields = np.zeros((len(release) + elsewhere, n + 1)), []
    for k, (row, expected) in enumerate(zip(release, guess, strict=True)):
        fields.append([])
        for levels, end in zip(sizes, ends, strict=True):
            own = row[end - levels : end]
            tilt = _near_tilt(own, log_prior, scale, expected)
            fields[-1].append(_Sum.joined([_near(y, log_prior, scale, tilt) for y in own], n))
            weights[k] += fields[-1][-1].all.at(np.arange(n + 1)) - tilt * s
            weights[k] += log_factorial - gammaln(levels * concentration + s)
    totals = latent_counts(weights, size, rng)
    drawn = [[field.counts(totals[:, k], rng) for field in row] for k, row in enumerate(fields)]
    return np.stack([np.concatenate(row, axis=1) for row in drawn], axis=1)


def log_dirichlet(parameters, fields: list[slice], rng) -> np.ndarray:
    """Return logarithms of Dirichlet variates, drawn for each field along the last axis."""
    # Gamma(α) = Gamma(α + 1) U^(1/α). Its logarithm does not underflow.
    logs = np.log(rng.standard_gamma(parameters + 1)) - rng.standard_exponential(parameters.shape) / parameters
    for field in fields:
        logs[..., field] -= logsumexp(logs[..., field], axis=-1, keepdims=True)
    return logs


def class_posterior(release, sizes, concentration: float, n: int, scale: float, size: int, rng):
    """Return draws of class shares (size, classes) and level probabilities (size, classes, levels).

    The model is naive Bayes with a flat prior of the class shares. Arguments are as for `class_counts`.
    """
    counts = class_counts(release, sizes, concentration, n, scale, size, rng)
    totals = counts[..., : sizes[0]].sum(axis=-1)
    shares = log_dirichlet(1.0 + totals, [slice(None)], rng)
    fields = [slice(end - levels, end) for levels, end in zip(sizes, np.cumsum(sizes), strict=True)]
    return np.exp(shares), np.exp(log_dirichlet(concentration + counts, fields, rng))


def count_probabilities(noisy, n: int, scale: float) -> np.ndarray:
    """Return the exact posterior (trials, n + 1) of the true count C_1 of a field's first level.

    The prior is a flat Dirichlet law, so all counts that sum to n are equally likely. Then P(C_1 = c | Ĉ) is
    proportional to w_1(c) = exp(−|Ĉ_1 − c|/s) times the value, at n − c, of the convolution of all other w_j.

    Args:
        noisy: noisy counts Ĉ, shape (trials, levels), at least 2 levels.
        n, scale: public number of events, and scale s > 0 of the Laplace noise.
    """
    from privpost.samplers.noise_aware.convolution import convolved

    # Levels come first, so that all arrays have one memory layout; loops are compiled once per layout.
    noisy = np.asarray(noisy, float).T.copy()
    weights = np.exp(-np.abs(noisy[:2, :, None] - np.arange(n + 1.0)) / scale)
    weights /= weights.max(axis=-1, keepdims=True)
    others = weights[1]
    for releases in noisy[2:]:
        others = convolved(others, releases, float(scale))
        others /= others.max(axis=1, keepdims=True)
    law = weights[0] * others[:, ::-1]
    return law / law.sum(axis=1, keepdims=True)


def probability_cdf(count_law, theta, n_levels: int) -> np.ndarray:
    """Return P(φ_1 ≤ θ), shape (trials,), for the first level's probability φ_1 given the law of its true count.

    The prior is φ ~ Dir(1, …, 1).

    Args:
        count_law: probabilities of the counts 0..n, shape (trials, n + 1).
        theta: values θ in (0, 1), shape (trials,).
    """
    n = count_law.shape[1] - 1
    counts = np.arange(n + 1.0)
    cdf = betainc(1 + counts, n_levels - 1 + n - counts, np.asarray(theta, float)[:, None])
    return np.clip((count_law * cdf).sum(axis=1), 0.0, 1.0)


class _Window(NamedTuple):
    """The positive entries of a sequence: their logarithms `logs`, and the place `start` of the first."""

    start: int
    logs: np.ndarray

    @classmethod
    def of(cls, start: int, logs) -> "_Window":
        """Return the window without the ends that lie more than `_DEPTH` below the largest log-entry."""
        near = np.flatnonzero(logs >= logs.max() - _DEPTH)
        return cls(start + int(near[0]), logs[near[0] : near[-1] + 1])

    def convolved(self, other: "_Window", n: int) -> "_Window":
        """Return the convolution of both sequences, up to place n."""
        high, start = (self.logs.max(), other.logs.max()), self.start + other.start
        pair = np.exp(self.logs - high[0]), np.exp(other.logs - high[1])
        if len(self.logs) * len(other.logs) <= _DIRECT:
            # Terms are positive, so nothing cancels.
            products = np.convolve(*pair)
        else:
            # This import loads scipy.stats, which takes longer than most draws.
            from scipy import signal

            products = signal.fftconvolve(*pair)
            products[products < _ROUNDING * products.max()] = 0.0
        with np.errstate(divide="ignore"):
            return _Window.of(start, (np.log(products) + sum(high))[: n + 1 - start])

    @property
    def end(self) -> int:
        """Place of the last entry."""
        return self.start + len(self.logs) - 1

    @property
    def shares(self) -> np.ndarray:
        """The entries as shares of the largest entry."""
        return np.exp(self.logs - self.logs.max())

    def at(self, places) -> np.ndarray:
        """Return the log-entries at the given places, −inf outside the window."""
        places = places - self.start
        inside = (places >= 0) & (places < len(self.logs))
        return np.where(inside, self.logs[np.where(inside, places, 0)], -np.inf)


class _Sum(NamedTuple):
    """Log-weights of the sum of some counts, and a `_Sum` for each half of the counts."""

    all: _Window
    halves: "tuple[_Sum, _Sum] | None"

    @classmethod
    def of(cls, log_factors) -> "_Sum":
        """Return the `_Sum` of counts with the log-factors (d, n + 1)."""
        return cls.joined([_Window.of(0, row) for row in log_factors], log_factors.shape[1] - 1)

    @classmethod
    def joined(cls, windows: "list[_Window]", n: int) -> "_Sum":
        """Return the `_Sum` of counts up to n, given the log-factors of each count as a window."""
        half = len(windows) // 2
        if not half:
            return cls(windows[0], None)
        one, other = cls.joined(windows[:half], n), cls.joined(windows[half:], n)
        return cls(one.all.convolved(other.all, n), (one, other))

    def counts(self, totals, rng) -> np.ndarray:
        """Return draws (size, d) of counts with the given totals (size,)."""
        if self.halves is None:
            return totals[:, None]
        # Sums of few counts are small and can be split in few ways.
        one, other = self.halves
        first = _split(one.all, other.all, totals, rng)
        return np.concatenate([one.counts(first, rng), other.counts(totals - first, rng)], axis=1)


def _split(window: _Window, others: _Window, totals, rng) -> np.ndarray:
    """Split each total (size,) at random by the log-weights of both parts, and return the first parts."""
    firsts, open_ = np.full(len(totals), -1), np.arange(len(totals))
    cumulative, highest = np.cumsum(window.shares), others.logs.max()
    for _ in range(_ROUNDS):
        if len(np.unique(totals[open_])) * len(window.logs) <= _ELEMENTS:
            break
        # Rejection comes first. The first part's weights give proposals; the other part's weights decide acceptance.
        places = np.searchsorted(cumulative, rng.random(len(open_)) * cumulative[-1], side="right")
        places = window.start + np.minimum(places, len(cumulative) - 1)
        accepted = others.at(totals[open_] - places) - highest > -rng.standard_exponential(len(open_))
        firsts[open_[accepted]] = places[accepted]
        open_ = open_[~accepted]
    sums, row = np.unique(totals[open_], return_inverse=True)
    order, uniform = np.argsort(row, kind="stable"), rng.random(len(open_))
    shares, rest, part = window.shares, others.shares[::-1], max(1, _AT_ONCE // len(window.logs))
    for start in range(0, len(sums), part):
        some = sums[start : start + part]
        low, high = max(window.start, some[0] - others.end), min(window.end, some[-1] - others.start)
        # Each row has the other part's shares for a first part of low..high, and 0 outside the other part's window.
        padded = np.pad(rest, high - low + 1)
        rest_shares = sliding_window_view(padded, high - low + 1)[others.end + high + 1 - some]
        mine = order[slice(*np.searchsorted(row[order], (start, start + part)))]
        weights = rest_shares * shares[low - window.start : high - window.start + 1]
        firsts[open_[mine]] = low + _drawn(weights, row[mine] - start, uniform[mine])
    return firsts


def _near(noisy: float, log_prior, scale: float, tilt: float) -> _Window:
    """Return the tilted log-weights of the counts within `_DEPTH` noise scales of a noisy count."""
    reach, n = math.ceil(_DEPTH * scale), len(log_prior) - 1
    start, stop = max(0, math.floor(noisy) - reach), min(n, max(0, math.ceil(noisy)) + reach) + 1
    s = np.arange(min(start, n), stop)
    return _Window.of(int(s[0]), log_prior[s] - np.abs(noisy - s) / scale + tilt * s)


def _near_tilt(noisy, log_prior, scale: float, n: float) -> float:
    """Return an approximation of `_fine_tilt`, computed on a grid around each noisy count (d,)."""
    steps = scale * np.concatenate([np.arange(12, _DEPTH), np.arange(0, 12, 0.125)])
    # If the noise is far below 1, only the noisy count and its neighbours have weight.
    steps = np.unique(np.rint(np.concatenate([-steps, [-1, 0, 1], steps])))
    grid = np.clip(np.rint(np.maximum(noisy, 0.0))[:, None] + steps, 0, len(log_prior) - 1).astype(int)
    with np.errstate(divide="ignore"):
        # A grid that is clipped at an end has equal points. All of these points but one have no width.
        widths = np.log(np.maximum(np.gradient(grid.astype(float), axis=1), 0.0))
    logs = log_prior[grid] - np.abs(noisy[:, None] - grid) / scale + widths
    return _bisected(logs, grid.astype(float), n)


def _fine_tilt(log_factors, n: float) -> float:
    """Return the exponent t at which the factors (d, n + 1) times e^(ts) give mean counts that sum to n."""
    size = log_factors.shape[1]
    s = np.arange(float(size))
    if size > _EVERY:
        # Every tilt gives the same law of draws, so a rough tilt is enough. It uses evenly spread counts and counts
        # near the peaks, each weighted by the distance to the neighbouring counts.
        near = np.argmax(log_factors, axis=1)[:, None] + np.arange(-_NEAR, _NEAR + 1)
        s = np.unique(np.concatenate([np.arange(0, size, size // _EVERY), near.ravel().clip(0, size - 1), [size - 1]]))
        log_factors = log_factors[:, s] + np.log(np.gradient(s.astype(float)))
    return _bisected(log_factors, np.broadcast_to(s, log_factors.shape), n)


def _bisected(log_factors, s, n: float) -> float:
    """Return the exponent t of `_fine_tilt` by bisection, for factors (d, points) at the counts s (d, points)."""
    with np.errstate(invalid="ignore", divide="ignore"):
        steps = np.diff(log_factors) / np.diff(s)
    steep = np.abs(steps[np.isfinite(steps)]).max(initial=1.0)
    low, high = -2 * steep, 2 * steep
    for _ in range(40):
        middle = (low + high) / 2
        tilted = log_factors + middle * s
        weights = np.exp(tilted - tilted.max(axis=1, keepdims=True))
        mean = (weights * s).sum(axis=1) / weights.sum(axis=1)
        low, high = (low, middle) if mean.sum() > n else (middle, high)
    return (low + high) / 2
