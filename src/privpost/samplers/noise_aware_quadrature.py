"""Posteriors of noise-aware models by quadrature over a scalar θ: no Markov chain.

The redacted sum given θ is taken to be normal, as Bernstein and Sheldon (2018) take it; with Laplace noise its
release y has a normal-Laplace density, so that p(θ | y) is known up to a one-dimensional integral.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.special import erfcx, expit, logit

from privpost.models.univariate import UnivariateFamily
from privpost.samplers.noise_aware_gibbs import Kernel, State, noise_prior, noise_variance, random_sum

# Cells of the first, common grid, and of each trial's own ones, each within what matters of the one before.
_CELLS = (160, 96, 256)
# Logarithms of the density relative to its peak below which a cell is left out: on a coarse grid a peak can be missed.
_DEPTHS = (60.0, 18.0)
# Prior mass outside the grid on either side.
_TAIL = 1e-10
# Of the Fourier inversion: nodes for the expectation over a record, and frequencies up to so many turns per scale.
_RECORD_NODES, _PERIODS = 48, 6
# Elements of one work array.
_ELEMENTS = 100_000
# Below this argument erfcx nears overflow, and the Laplace density of the closer tail takes its place.
_FAR = -20.0


def log_normal_laplace(residual, variance, scale) -> np.ndarray:
    """Log-density of the sum of N(0, variance) and Laplace noise of a scale b, broadcast shape.

    With r the residual and v the variance it is e^(−r²/2v) [X(v/b − r) + X(v/b + r)] / 4b, X(t) = erfcx(t/√(2v)).
    """
    residual, variance = np.abs(residual), np.maximum(variance, 1e-12 * np.square(scale))
    root, shift = np.sqrt(2 * variance), variance / scale
    near = (shift - residual) / root
    both = erfcx(np.maximum(near, _FAR)) + erfcx((shift + residual) / root)
    inside = np.log(both) - np.square(residual / root)
    # Φ is 1 to rounding there: e^(v/2b² − r/b) / 2b.
    beyond = (0.5 * shift - residual) / scale + np.log(2.0)
    return np.where(near > _FAR, inside, beyond) - np.log(4 * np.asarray(scale))


class Posterior(NamedTuple):
    """Posteriors of a batch of trials: midpoints of intervals of θ, their widths and their masses, (trials, nodes)."""

    theta: np.ndarray
    width: np.ndarray
    mass: np.ndarray

    def cdf(self, at) -> np.ndarray:
        """P(Θ ≤ at | y) for each trial's own value, shape (trials,)."""
        share = (np.asarray(at)[:, None] - self.theta) / self.width + 0.5
        return np.clip((self.mass * np.clip(share, 0.0, 1.0)).sum(axis=1), 0.0, 1.0)

    def quantiles(self, probabilities) -> np.ndarray:
        """Quantiles at some probabilities, shape (trials, probabilities)."""
        left = self.theta[:, 0] - self.width[:, 0] / 2
        ends = np.concatenate([left[:, None], self.theta + self.width / 2], axis=1)
        reached = np.concatenate([np.zeros((len(left), 1)), np.cumsum(self.mass, axis=1)], axis=1)
        return np.stack([np.interp(probabilities, *pair) for pair in zip(reached, ends, strict=True)])

    def moments(self) -> tuple[np.ndarray, np.ndarray]:
        """Mean and standard deviation, shape (trials,) each."""
        mean = (self.mass * self.theta).sum(axis=1)
        return mean, np.sqrt((self.mass * np.square(self.theta - mean[:, None])).sum(axis=1))


def conjugate_posterior(model: UnivariateFamily, parameters) -> Posterior:
    """The prior family's law with parameters (trials, k) in even cells within eight standard deviations."""
    mean, sd = model.mean(parameters), np.sqrt(model.variance(parameters))
    ends = np.clip([mean - 8 * sd, mean + 8 * sd], *model.support)
    edges = np.linspace(*ends, _CELLS[-1] + 1, axis=1)
    mass = np.diff(model.posterior_cdf(edges, parameters[:, None]), axis=1)
    return Posterior((edges[:, 1:] + edges[:, :-1]) / 2, np.diff(edges), mass / mass.sum(axis=1, keepdims=True))


def coordinates(model: UnivariateFamily) -> tuple[Callable, Callable]:
    """From a coordinate on the real line to θ and back: θ itself, ln θ or logit θ by the support of θ."""
    ends = np.isfinite(model.support)
    if ends.all():
        return expit, logit
    return (np.exp, np.log) if ends[0] else (np.array, np.array)


def parameter_edges(model: UnivariateFamily, cells: int = _CELLS[0]) -> np.ndarray:
    """Edges of cells that hold the prior's mass, even in the coordinate of θ; shape (cells + 1,)."""
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
    """Posterior of θ given the noisy sum of the records in [low, high], by quadrature.

    Args:
        model: the family and its prior.
        release: y, shape (trials,).
        n: public number of records.
        scale: scale of the Laplace noise, scalar or (trials,).
        low, high: the interval, scalars or (trials,).
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
            mean, variance = random_sum(n, model.segment_moments(theta, low[ends][:, None], high[ends][:, None]))
            density = log_normal_laplace(release[trials, None] - mean, variance, scale[trials, None])
            return density + model.log_density(theta, model.prior)

        grid = edges[None]
        for cells, depth in zip(_CELLS[1:], _DEPTHS, strict=True):
            grid = _refined(log_joint, grid, cells, depth)
        theta, width = (grid[:, 1:] + grid[:, :-1]) / 2, np.diff(grid)
        log_density = log_joint(theta)
        mass = np.exp(log_density - log_density.max(axis=1, keepdims=True)) * width
        parts.append(Posterior(theta, width, mass / mass.sum(axis=1, keepdims=True)))
    return Posterior(*(np.concatenate(values) for values in zip(*parts, strict=True)))


def _refined(log_joint, edges, cells: int, depth: float) -> np.ndarray:
    """Edges (trials, cells + 1) of cells that divide evenly those cells whose log-density is not negligible.

    A neighbour of such a cell is kept as well: a peak can lie between two midpoints.
    """
    log_density = log_joint((edges[:, 1:] + edges[:, :-1]) / 2)
    near = log_density > log_density.max(axis=1, keepdims=True) - depth
    kept = near.copy()
    kept[:, 1:] |= near[:, :-1]
    kept[:, :-1] |= near[:, 1:]
    size, row = kept.shape[1], np.arange(len(kept))[:, None]
    count = np.cumsum(kept, axis=1)
    # Just below the last cell's end, beyond which there is none.
    position = np.minimum(np.arange(cells + 1) / cells, 1 - 1e-12) * count[:, -1:]
    # The cell in which a position lies; every row of the flattened counts is moved beyond the one before.
    shift = row * (size + 1)
    found = np.searchsorted((count + shift).ravel(), (position + shift).ravel(), side="right")
    found = found.reshape(position.shape) - row * size
    edges = np.broadcast_to(edges, (len(kept), size + 1))
    left, right = np.take_along_axis(edges, found, axis=1), np.take_along_axis(edges, found + 1, axis=1)
    return left + (position - np.take_along_axis(count, found, axis=1) + 1) * (right - left)


def redacted_likelihood(model: UnivariateFamily, release, n: int, scale: float, interval, theta) -> np.ndarray:
    """p(y | θ) up to a constant, without the normal approximation of the redacted sum: an oracle for it.

    The characteristic function of the noisy sum is φ(ω)ⁿ/(1 + b²ω²), φ that of one record's t(x) 1[low ≤ x ≤ high], and
    p(y | θ) its Fourier inversion by the trapezoidal rule. The expectation over a record is taken over its quantiles.

    Args:
        model: the family.
        release: y, shape (trials,).
        n: public number of records.
        scale: scale b of the Laplace noise.
        interval: (low, high), scalars.
        theta: shape (points,).

    Returns:
        Shape (trials, points).
    """
    release, theta = np.asarray(release, float), np.asarray(theta, float)[:, None]
    below, above = (model.cdf(end, theta) for end in interval)
    node, weight = np.polynomial.legendre.leggauss(_RECORD_NODES)
    statistic = model.statistic(model.quantile(below + (above - below) * (node + 1) / 2, theta))
    # A period that holds all sums, and noise of a density below e^−40 beyond them on either side.
    ends = np.concatenate([[0.0], model.statistic(np.asarray(interval))])
    period = n * np.ptp(ends) + 80 * scale + np.ptp(release)
    omega = 2 * np.pi / period * np.arange(int(_PERIODS * period / scale))
    values = np.zeros((len(theta), len(release)))
    for part in np.array_split(omega, max(1, len(omega) * len(theta) * _RECORD_NODES // (32 * _ELEMENTS))):
        waves = np.exp(1j * part[:, None, None] * statistic) @ (weight / 2)
        record = 1 + (above - below).T * (waves - 1)
        noisy = record**n / (1 + (scale * part[:, None]) ** 2)
        noisy[part == 0] /= 2
        values += (noisy.T @ np.exp(-1j * part[:, None] * release)).real
    return np.maximum(values.T, 0.0)


def collapsed_kernel(model: UnivariateFamily, release, n: int, scale, low, high) -> Kernel:
    """Gibbs sampler of the same posterior that integrates the sum out of the update of θ.

    θ | σ², y has density ∝ p(θ) N(y; m(θ), V(θ) + σ²), drawn on each trial's own cells; s | θ, σ², y and σ² | y − s
    follow as in algorithm 2.

    Args: as of `redacted_posterior`.
    """
    theta, width, _ = redacted_posterior(model, release, n, scale, low, high)
    low, high = (np.broadcast_to(np.asarray(value, float), release.shape)[:, None] for value in (low, high))
    mean, variance = random_sum(n, model.segment_moments(theta, low, high))
    squared = np.square(release[:, None] - mean)
    log_prior = model.log_density(theta, model.prior) + np.log(width)
    row = np.arange(len(release))

    def init(rng):
        chosen = theta[row, rng.integers(theta.shape[1], size=len(row))]
        return State(chosen, np.zeros_like(chosen), noise_prior(release.shape, scale, rng))

    def step(state, rng):
        total = variance + state.variance[:, None]
        log_weights = log_prior - 0.5 * (np.log(total) + squared / total)
        log_weights -= log_weights.max(axis=1, keepdims=True)
        cumulative = np.cumsum(np.exp(log_weights), axis=1)
        target = rng.random(len(row)) * cumulative[:, -1]
        chosen = row, (cumulative <= target[:, None]).sum(axis=1)
        gain = variance[chosen] / total[chosen]
        spread = np.sqrt(gain * state.variance)
        statistic = mean[chosen] + gain * (release - mean[chosen]) + spread * rng.standard_normal(len(row))
        drawn = theta[chosen] + width[chosen] * (rng.random(len(row)) - 0.5)
        return State(drawn, statistic, noise_variance(release - statistic, scale, rng)), 0

    return Kernel(init, step)
