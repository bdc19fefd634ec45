"""Posteriors of a scalar θ given a noisy redacted sum, by quadrature.

The redacted sum is the sum of the records in an interval. Given θ, the redacted sum is treated as normal, as in
Bernstein and Sheldon (2018). So the release y, this sum plus Laplace noise, has a normal-Laplace density.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.special import erfcx, expit, logit

from privpost.models.conjugate.univariate import UnivariateFamily
from privpost.samplers.noise_aware.gibbs import Kernel, State, noise_prior, noise_variance, random_sum

# Numbers of cells of the first grid, which all trials share, and of each trial's two later grids.
_CELLS = (160, 96, 256)
# A cell is left out if its log-density is this far below the peak. The first grid can miss a peak, so it keeps more.
_DEPTHS = (60.0, 18.0)
# Prior mass outside the grid on either side.
_TAIL = 1e-10
# Nodes of the Fourier inversion for the expectation over a record.
_RECORD_NODES = 48
# The inversion goes up to frequencies of this many turns per scale of the noise.
_PERIODS = 6
# Frequencies in a block of the inversion.
_BLOCK = 64
# The inversion ends where |φ|ⁿ is below this.
_NOTHING = 1e-20
# The first grid of `resolved_posterior` goes beyond the prior's range by this multiple of the range on either side.
_BEYOND = 20.0
# The first grid is finer for θ at which the interval is within this many standard deviations of a record's mean.
_DEVIATIONS = 40.0
# Number of cells of the grids of `resolved_posterior`.
_FINE = 2048
# The largest share of the mass in one cell of `resolved_posterior`.
_SHARE = 0.02
# The largest share of the mass outside the grid.
_OUTSIDE = 1e-4
# Depth and number of followed peaks for each grid of `resolved_posterior`, which may stop before the last.
_GRIDS = ((60.0, 16), *((20.0, 16),) * 10, *((20.0, 0),) * 10)
# Elements of one work array.
_ELEMENTS = 100_000
# Below this argument erfcx nears overflow; the Laplace density of the closer tail replaces it.
_FAR = -20.0


def log_normal_laplace(residual, variance, scale) -> np.ndarray:
    """Return the log-density of a normal N(0, variance) plus Laplace noise, in the broadcast shape.

    At the residual r, with variance v, scale b and X(t) = erfcx(t/√(2v)), the density is
    e^(−r²/2v) [X(v/b − r) + X(v/b + r)] / 4b.
    """
    residual, variance = np.abs(residual), np.maximum(variance, 1e-12 * np.square(scale))
    root, shift = np.sqrt(2 * variance), variance / scale
    near = (shift - residual) / root
    both = erfcx(np.maximum(near, _FAR)) + erfcx((shift + residual) / root)
    inside = np.log(both) - np.square(residual / root)
    # Far out, Φ rounds to 1, which leaves e^(v/2b² − r/b) / 2b.
    beyond = (0.5 * shift - residual) / scale + np.log(2.0)
    return np.where(near > _FAR, inside, beyond) - np.log(4 * np.asarray(scale))


class Posterior(NamedTuple):
    """Posteriors of a batch of trials on cells of θ: midpoints, widths and masses, (trials, cells) each."""

    theta: np.ndarray
    width: np.ndarray
    mass: np.ndarray

    def sample(self, draws: int, rng) -> np.ndarray:
        """Return independent draws (draws,) from the first trial's posterior."""
        cell = rng.choice(len(self.mass[0]), draws, p=self.mass[0])
        return self.theta[0, cell] + self.width[0, cell] * (rng.random(draws) - 0.5)

    def cdf(self, at) -> np.ndarray:
        """Return P(Θ ≤ at | y) for one value per trial, shape (trials,)."""
        share = (np.asarray(at)[:, None] - self.theta) / self.width + 0.5
        return np.clip((self.mass * np.clip(share, 0.0, 1.0)).sum(axis=1), 0.0, 1.0)

    def quantiles(self, probabilities) -> np.ndarray:
        """Return quantiles of each trial's posterior, shape (trials, probabilities)."""
        left = self.theta[:, 0] - self.width[:, 0] / 2
        ends = np.concatenate([left[:, None], self.theta + self.width / 2], axis=1)
        reached = np.concatenate([np.zeros((len(left), 1)), np.cumsum(self.mass, axis=1)], axis=1)
        return np.stack([np.interp(probabilities, *pair) for pair in zip(reached, ends, strict=True)])

    def moments(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the posterior means and standard deviations, shape (trials,) each."""
        mean = (self.mass * self.theta).sum(axis=1)
        return mean, np.sqrt((self.mass * np.square(self.theta - mean[:, None])).sum(axis=1))


def conjugate_posterior(model: UnivariateFamily, parameters) -> Posterior:
    """Return the laws of the conjugate family with the given parameters (trials, k), on equal cells."""
    mean, sd = model.mean(parameters), np.sqrt(model.variance(parameters))
    ends = np.clip([mean - 8 * sd, mean + 8 * sd], *model.support)
    edges = np.linspace(*ends, _CELLS[-1] + 1, axis=1)
    mass = np.diff(model.posterior_cdf(edges, parameters[:, None]), axis=1)
    return Posterior((edges[:, 1:] + edges[:, :-1]) / 2, np.diff(edges), mass / mass.sum(axis=1, keepdims=True))


def coordinates(model: UnivariateFamily) -> tuple[Callable, Callable]:
    """Return the functions from a real coordinate (θ, ln θ or logit θ) to θ and back."""
    ends = np.isfinite(model.support)
    if ends.all():
        return expit, logit
    return (np.exp, np.log) if ends[0] else (np.array, np.array)


def parameter_edges(model: UnivariateFamily, cells: int = _CELLS[0]) -> np.ndarray:
    """Return edges (cells + 1,) of cells that hold the prior's mass and have equal widths in the coordinate of θ."""
    to_theta, _ = coordinates(model)
    limit = 700.0 if np.isfinite(model.support).any() else 1e6 * (1 + abs(float(model.mean(model.prior))))
    reached = []
    for target in (_TAIL, 1 - _TAIL):
        low, high = -limit, limit
        for _ in range(100):
            middle = (low + high) / 2
            above = model.posterior_cdf(to_theta(middle), model.prior) > target
            low, high = (low, middle) if above else (middle, high)
        reached.append(high)
    return to_theta(np.linspace(*reached, cells + 1))


def redacted_posterior(model: UnivariateFamily, release, n: int, scale, low, high) -> Posterior:
    """Return the posterior of θ given the noisy sum of the records in [low, high], by quadrature.

    Args:
        model: the family and its prior.
        release: noisy sums y, shape (trials,).
        n: public number of records.
        scale, low, high: scale of the Laplace noise and ends of the interval, scalars or (trials,).
    """
    release = np.asarray(release, float)
    scale, low, high = (np.broadcast_to(np.asarray(value, float), release.shape) for value in (scale, low, high))
    public = bool(np.all(low == low[:1]) and np.all(high == high[:1]))
    edges = parameter_edges(model)
    parts, part = [], max(1, _ELEMENTS // max(_CELLS))
    for start in range(0, len(release), part):
        trials = slice(start, start + part)

        def log_joint(theta, trials=trials):
            ends = slice(0, 1) if public and len(theta) == 1 else trials
            return _log_joint(model, release[trials], n, scale[trials], (low[ends], high[ends]), theta)

        grid = edges[None]
        for cells, depth in zip(_CELLS[1:], _DEPTHS, strict=True):
            grid = _refined(log_joint, grid, cells, depth)
        theta, width = (grid[:, 1:] + grid[:, :-1]) / 2, np.diff(grid)
        log_density = log_joint(theta)
        mass = np.exp(log_density - log_density.max(axis=1, keepdims=True)) * width
        parts.append(Posterior(theta, width, mass / mass.sum(axis=1, keepdims=True)))
    return Posterior(*(np.concatenate(values) for values in zip(*parts, strict=True)))


def _log_joint(model, release, n: int, scale, interval, theta) -> np.ndarray:
    """Return the log joint density ln p(y, θ), shape (trials, points), at θ of shape (trials or 1, points)."""
    mean, variance = random_sum(n, model.segment_moments(theta, *(end[:, None] for end in interval)))
    return log_normal_laplace(release[:, None] - mean, variance, scale[:, None]) + model.log_density(theta, model.prior)


def resolved_posterior(model: UnivariateFamily, release: float, n: int, scale: float, low, high) -> Posterior:
    """Return the `redacted_posterior` of one release, on cells that each hold little mass.

    Several values of θ may explain one redacted sum, so the cells need not be adjacent.

    Raises:
        ValueError: floats cannot resolve the posterior, or the posterior reaches far beyond the prior's range.
    """
    releases, scales, *interval = (np.atleast_1d(np.asarray(value, float)) for value in (release, scale, low, high))

    def log_joint(theta):
        logs = _log_joint(model, releases, n, scales, interval, theta[None])[0]
        # At very small θ squares of moments overflow.
        return np.where(np.isfinite(logs), logs, -np.inf)

    with np.errstate(all="ignore"):
        edges = _first_edges(model, low, high)
        left, width = edges[:-1], np.diff(edges)
        for depth, peaks in _GRIDS:
            if not (len(width) and np.isfinite(edges).all() and width.min() > 0):
                break
            middle = left + width / 2
            weight = log_joint(middle) + np.log(width)
            mass = np.exp(weight - weight.max())
            mass /= mass.sum()
            if mass.max() < _SHARE:
                outside = log_joint(edges[[0, -1]]) + np.log(np.diff(edges)[[0, -1]] * _FINE / 2)
                if np.exp(outside - weight.max()).max() * mass.max() > _OUTSIDE:
                    break
                return Posterior(middle[None], width[None], mass[None])
            relevant = _relevant(weight, depth, peaks)
            # Cells are at least halved: otherwise a grid of many cells with one too heavy cell would never change.
            number = max(2, _FINE // max(1, relevant.sum()) + 1)
            width = np.repeat(width[relevant] / number, number)
            left = np.repeat(left[relevant], number) + width * np.tile(np.arange(number), relevant.sum())
    raise ValueError("the posterior is too flat, too narrow or too far out for its quadrature")


def _first_edges(model: UnivariateFamily, low, high) -> np.ndarray:
    """Return edges that go far beyond the prior's range. They are denser at θ whose records fall into [low, high]."""
    to_theta, coordinate = coordinates(model)
    least, most = coordinate(parameter_edges(model, 1))
    limit = 700.0 if np.isfinite(model.support).any() else np.inf
    beyond = _BEYOND * (most - least)
    ends = max(least - beyond, -limit), min(most + beyond, limit)

    def place(statistic, deviations):
        # The mean of a record's statistic is monotone in θ.
        start, stop = ends
        rising = np.diff(model.record_moments(to_theta(np.array([0.0, 1e-3]) + (start + stop) / 2))[0])[0] > 0
        for _ in range(100):
            middle = (start + stop) / 2
            mean, variance = model.record_moments(to_theta(middle))
            above = bool(mean - deviations * np.sqrt(variance) > statistic) is bool(rising)
            start, stop = (start, middle) if above else (middle, stop)
        return start

    inner = place(model.statistic(low), -_DEVIATIONS), place(model.statistic(high), _DEVIATIONS)
    return np.unique(to_theta(np.concatenate([np.linspace(*ends, _FINE + 1), np.linspace(*inner, _FINE + 1)])))


def _relevant(weight, depth: float, peaks: int) -> np.ndarray:
    """Return a mask of the cells to keep: cells of non-negligible mass, local peaks, and their neighbours."""
    relevant = weight > weight.max() - depth
    if peaks:
        beside = np.pad(weight, 1, constant_values=-np.inf)
        tops = np.flatnonzero((weight > beside[:-2]) & (weight >= beside[2:]))
        relevant[tops[np.argsort(weight[tops])[-peaks:]]] = True
    wide = relevant.copy()
    wide[1:] |= relevant[:-1]
    wide[:-1] |= relevant[1:]
    return wide


def _refined(log_joint, edges, cells: int, depth: float) -> np.ndarray:
    """Return edges (trials, cells + 1) of new cells that evenly divide the cells of non-negligible log-density."""
    log_density = log_joint((edges[:, 1:] + edges[:, :-1]) / 2)
    near = log_density > log_density.max(axis=1, keepdims=True) - depth
    # Neighbours are divided as well, because a peak can lie between two midpoints.
    relevant = near.copy()
    relevant[:, 1:] |= near[:, :-1]
    relevant[:, :-1] |= near[:, 1:]
    size, row = relevant.shape[1], np.arange(len(relevant))[:, None]
    count = np.cumsum(relevant, axis=1)
    # The last position is just below the end of the last cell: there is no cell beyond.
    position = np.minimum(np.arange(cells + 1) / cells, 1 - 1e-12) * count[:, -1:]
    # One search finds the cell of each position in all rows, because each row is shifted beyond the previous row.
    shift = row * (size + 1)
    cell = np.searchsorted((count + shift).ravel(), (position + shift).ravel(), side="right")
    cell = cell.reshape(position.shape) - row * size
    edges = np.broadcast_to(edges, (len(relevant), size + 1))
    left, right = np.take_along_axis(edges, cell, axis=1), np.take_along_axis(edges, cell + 1, axis=1)
    return left + (position - np.take_along_axis(count, cell, axis=1) + 1) * (right - left)


def redacted_likelihood(model: UnivariateFamily, release, n: int, scale: float, interval, theta) -> np.ndarray:
    """Return the likelihood p(y | θ) up to a constant, shape (trials, points), with the true law of the redacted sum.

    The noisy sum has the characteristic function φ(ω)ⁿ/(1 + b²ω²). Here φ is the characteristic function of
    t(x) 1[low ≤ x ≤ high], the part of one record x in the redacted sum.

    Args:
        release: noisy sums y, shape (trials,).
        n, scale: public number of records, and scale b of the Laplace noise.
        interval: ends (low, high), scalars.
        theta: values of θ, shape (points,).
    """
    release, theta = np.asarray(release, float), np.asarray(theta, float)[:, None]
    below, above = (model.cdf(end, theta) for end in interval)
    # φ is an integral over the record's quantiles.
    node, weight = np.polynomial.legendre.leggauss(_RECORD_NODES)
    statistic = model.statistic(model.quantile(below + (above - below) * (node + 1) / 2, theta))
    # The period holds all sums, and the noise on either side until its density falls below e^−40.
    ends = np.concatenate([[0.0], model.statistic(np.asarray(interval))])
    period = n * np.ptp(ends) + 80 * scale + np.ptp(release)
    step, last = 2 * np.pi / period, int(_PERIODS * period / scale)
    # e^(iωt) is a value of the first block times e^(iωt) at the block's first ω, so a block is one matrix product.
    inner = np.exp(1j * step * np.arange(_BLOCK)[:, None] * statistic[:, None])
    first, turn = np.ones_like(statistic, complex), np.exp(1j * step * _BLOCK * statistic)
    values = np.zeros((len(theta), len(release)))
    for start in range(0, last, _BLOCK):
        omega = step * np.arange(start, min(start + _BLOCK, last))
        waves = (inner @ (first * weight / 2)[..., None])[:, : len(omega), 0]
        first *= turn
        noisy = power(1 + (above - below) * (waves - 1), n)
        size = np.abs(noisy[:, -1]).max()
        noisy /= 1 + (scale * omega) ** 2
        if start == 0:
            noisy[:, 0] /= 2
        values += (noisy @ np.exp(-1j * omega[:, None] * release)).real
        # |φ| falls with ω, so all later terms are below rounding.
        if size < _NOTHING:
            break
    return np.maximum(values.T, 0.0)


def power(values, n: int) -> np.ndarray:
    """Return the n-th powers of values, by repeated squaring."""
    result = values if n % 2 else np.ones_like(values)
    while n := n // 2:
        values = values * values
        result = result * values if n % 2 else result
    return result


def collapsed_kernel(model: UnivariateFamily, release, n: int, scale, low, high) -> Kernel:
    """Return a Gibbs sampler of the law of `redacted_posterior`. The arguments are the same.

    A sweep draws θ with density ∝ p(θ) N(y; m(θ), V(θ) + σ²) on the trial's cells, where m(θ) and V(θ) are the mean and
    variance of the redacted sum s. Then s and the noise variance σ² are drawn as in algorithm 2.
    """
    theta, width, _ = redacted_posterior(model, release, n, scale, low, high)
    low, high = (np.broadcast_to(np.asarray(value, float), release.shape)[:, None] for value in (low, high))
    mean, variance = random_sum(n, model.segment_moments(theta, low, high))
    squared = np.square(release[:, None] - mean)
    log_prior = model.log_density(theta, model.prior) + np.log(width)
    row = np.arange(len(release))

    def init(rng):
        start = theta[row, rng.integers(theta.shape[1], size=len(row))]
        return State(start, np.zeros_like(start), noise_prior(release.shape, scale, rng))

    def step(state, rng):
        total = variance + state.variance[:, None]
        log_weights = log_prior - 0.5 * (np.log(total) + squared / total)
        log_weights -= log_weights.max(axis=1, keepdims=True)
        cumulative = np.cumsum(np.exp(log_weights), axis=1)
        target = rng.random(len(row)) * cumulative[:, -1]
        cell = row, (cumulative <= target[:, None]).sum(axis=1)
        gain = variance[cell] / total[cell]
        spread = np.sqrt(gain * state.variance)
        statistic = mean[cell] + gain * (release - mean[cell]) + spread * rng.standard_normal(len(row))
        drawn = theta[cell] + width[cell] * (rng.random(len(row)) - 0.5)
        return State(drawn, statistic, noise_variance(release - statistic, scale, rng)), 0

    return Kernel(init, step)
