"""The laws that releases must have, derived from likelihood, prior and settings, not from a mechanism's own density.

A law gives its exact divergence from another law of the same family. Its `quantiles` are values of distribution
functions at draws. They are uniform if the draws are from the law.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
from scipy.fft import irfft, next_fast_len, rfft
from scipy.special import betainc, gammainc, kolmogorov, ndtr

from privpost.privacy.divergences.renyi import dirichlet_divergence

# Largest number of marginals that are tested.
COORDINATES = 8
# Points whose log-weight is this far below the largest log-weight are left out.
DEPTH = 50.0
# Because of rounding, draws may leave the support by this share of the support's size.
ROUNDING = 1e-9
LEGENDRE = np.polynomial.legendre.leggauss(160)
RIM = np.linspace(0, 2 * np.pi, 721)


def p_value(uniform) -> float:
    """Return the joint Kolmogorov-Smirnov p-value of columns (size, k) against the uniform law (Bonferroni)."""
    # A nan says that a draw lies outside the support.
    if np.isnan(uniform).any():
        return 0.0
    uniform = np.sort(np.asarray(uniform, float), axis=0)
    size, columns = uniform.shape
    steps = np.arange(size + 1)[:, None] / size
    distance = max((steps[1:] - uniform).max(), (uniform - steps[:-1]).max())
    # Stephens' finite-size correction of the limit law.
    return float(min(1.0, columns * kolmogorov((size**0.5 + 0.12 + 0.11 / size**0.5) * distance)))


def squared(w) -> np.ndarray:
    """Return the squared norms of weights (..., d)."""
    # This is much faster than a sum over a short last axis.
    return np.einsum("...i,...i->...", w, w)


def _places(width: int) -> np.ndarray:
    return np.unique(np.linspace(0, width - 1, min(width, COORDINATES)).astype(int))


@dataclass(frozen=True)
class Noise:
    """Law of a fixed centre (q,) plus independent Laplace or normal noise, with one scale for all coordinates."""

    kind: str
    scale: float
    centre: np.ndarray

    def divergence(self, other: Noise, order: float | None) -> float:
        """Return the largest log-ratio to `other` for Laplace noise, or the Rényi divergence for normal noise."""
        change = np.abs(self.centre - other.centre) / self.scale
        return float(change.sum() if order is None else order * (change**2).sum() / 2)

    def quantiles(self, draws, rng) -> np.ndarray:
        """Return the distribution functions of coordinates, and of differences of coordinates, at the draws."""
        places = _places(self.centre.size)
        noise = (np.reshape(draws, (len(draws), -1)) - self.centre)[:, places] / self.scale
        # Differences reveal coordinates that share noise.
        both = np.diff(noise, axis=1)
        if self.kind == "normal":
            return ndtr(np.concatenate([noise, both / 2**0.5], axis=1))
        tail = np.exp(-np.abs(noise)) / 2
        # The difference of two Laplace variables has the density (1 + |x|) exp(−|x|)/4.
        wide = (2 + np.abs(both)) * np.exp(-np.abs(both)) / 4
        return np.concatenate([np.where(noise > 0, 1 - tail, tail), np.where(both > 0, 1 - wide, wide)], axis=1)


@dataclass(frozen=True)
class Dirichlet:
    """Dirichlet law with concentrations (k,). A draw is a vector, or only its first entry if k = 2."""

    alpha: np.ndarray

    def divergence(self, other: Dirichlet, order: float | None) -> float:
        """Return the Rényi divergence from another Dirichlet law, in closed form."""
        return float(dirichlet_divergence(self.alpha, other.alpha, order))

    def quantiles(self, draws, rng) -> np.ndarray:
        """Return the distribution functions of the vector's entries at the draws. Each entry has a beta law."""
        draws = np.reshape(draws, (len(draws), -1))
        alpha = self.alpha[: draws.shape[1]]
        return betainc(alpha, self.alpha.sum() - alpha, draws)


@dataclass(frozen=True)
class Gamma:
    """Gamma law with a shape and a rate."""

    shape: float
    rate: float

    def divergence(self, other: Gamma, order: float) -> float:
        """Return the Rényi divergence from a gamma law with the same shape."""
        mixed = order * self.rate + (1 - order) * other.rate
        if mixed <= 0:
            return np.inf
        logs = order * np.log(self.rate) + (1 - order) * np.log(other.rate) - np.log(mixed)
        return float(self.shape * logs / (order - 1))

    def quantiles(self, draws, rng) -> np.ndarray:
        """Return the gamma law's distribution function at the draws."""
        return gammainc(self.shape, self.rate * np.reshape(draws, (len(draws), 1)))


# Cached, as neighbours' laws share most coordinates.
@lru_cache(maxsize=256)
def _beta_grid(a: float, b: float, low: float):
    """Return a grid (k,) of log-odds, a beta law's scaled integral (k,) up to each point, and the log of the scale."""
    reach = np.log((1 - low) / low)
    ends = -reach, reach
    # Coarse grids find where the mass lies, and a fine grid integrates over it.
    for points in (401, 401, 401, 8001):
        z = np.linspace(*ends, points)
        log_weight = -a * np.logaddexp(0, -z) - b * np.logaddexp(0, z)
        top = log_weight.max()
        near = np.flatnonzero(log_weight >= top - DEPTH)
        ends = z[max(near[0] - 1, 0)], z[min(near[-1] + 1, len(z) - 1)]
    weight = np.exp(log_weight - top)
    mass = np.cumsum((weight[1:] + weight[:-1]) / 2) * (z[1] - z[0])
    return z, np.concatenate([[0.0], mass]), top


@dataclass(frozen=True)
class TruncatedBetas:
    """Law of independent θ_i with density ∝ θ^(a_i−1) (1−θ)^(b_i−1) on [low, 1 − low]. Both a and b have shape (m,)."""

    a: np.ndarray
    b: np.ndarray
    low: float

    def _grids(self):
        """Return the `_beta_grid` of every coordinate."""
        return [_beta_grid(float(a), float(b), self.low) for a, b in zip(self.a, self.b, strict=True)]

    @cached_property
    def log_total(self) -> float:
        """Logarithm of the integral of Π θ_i^(a_i−1) (1−θ_i)^(b_i−1) over [low, 1 − low]^m."""
        return float(sum(np.log(mass[-1]) + top for _, mass, top in self._grids()))

    def divergence(self, other: TruncatedBetas, order: None) -> float:
        """Return the largest log-ratio to another law, which is attained at the ends of the intervals."""
        ends = np.log([self.low, 1 - self.low])
        change = np.stack([self.a - other.a, self.b - other.b])
        largest = (change[0] * ends[:, None] + change[1] * ends[::-1, None]).max(axis=0).sum()
        return float(largest) - self.log_total + other.log_total

    def quantiles(self, draws, rng) -> np.ndarray:
        """Return the coordinates' distribution functions at the draws, or nan for draws outside [low, 1 − low]."""
        grids = self._grids()
        draws = np.reshape(draws, (len(draws), -1))
        inside = np.abs(draws - 0.5) <= (0.5 - self.low) * (1 + ROUNDING)
        draws = np.clip(draws, self.low, 1 - self.low)
        odds = np.where(inside, np.log(draws) - np.log1p(-draws), np.nan)
        return np.stack(
            [np.interp(odds[:, i], grids[i][0], grids[i][1] / grids[i][1][-1]) for i in _places(len(self.a))],
            axis=1,
        )


@dataclass(frozen=True)
class BetasOfStates:
    """Law of the first level's probability x_k in each state k, for a field of two levels.

    It is a mixture over the sequences of the cells' states. All sequences are equally likely a priori. Each of `parts`
    is the law given one sequence. Draws have shape (size, K, 2).
    """

    parts: tuple[TruncatedBetas, ...]

    @cached_property
    def _logs(self):
        return np.array([part.log_total for part in self.parts])

    @cached_property
    def _on_grid(self):
        """Log-density on a grid of all x_k that includes the ends of the support."""
        low, states = self.parts[0].low, len(self.parts[0].a)
        odds = np.linspace(-1, 1, 41) * np.log((1 - low) / low)
        axes = np.stack(np.meshgrid(*[odds] * states), axis=-1)
        ones, zeros = -np.logaddexp(0, -axes), -np.logaddexp(0, axes)
        return np.logaddexp.reduce([ones @ p.a + zeros @ p.b for p in self.parts]) - np.logaddexp.reduce(self._logs)

    def divergence(self, other: BetasOfStates, order: None) -> float:
        """Return the largest log-ratio to another law on the grid of all x_k."""
        return float((self._on_grid - other._on_grid).max())

    def quantiles(self, draws, rng) -> np.ndarray:
        """Return each x_k's distribution function at the draws."""
        shares = np.exp(self._logs - np.logaddexp.reduce(self._logs))
        first = np.asarray(draws)[..., 0]
        return sum(share * part.quantiles(first, rng) for share, part in zip(shares, self.parts, strict=True))


def _convolved(alpha, low: float, left_out: int | None = None, points: int = 4001):
    """Return a grid of x − low, a Dirichlet law's log-factors (K, points), their convolution, and its log-scale."""
    y = np.linspace(0, 1 - len(alpha) * low, points)
    # A common exponential tilt keeps the factors from underflow. The tilt cancels where the x sum to 1.
    logs = (alpha[:, None] - 1) * np.log(low + y) - (alpha.sum() - len(alpha)) * y
    total, shift = None, 0.0
    for row in (row for k, row in enumerate(logs) if k != left_out):
        factor = np.exp(row - row.max())
        shift += row.max()
        if total is None:
            total = factor
            continue
        ends, size = (total[0] * factor + total * factor[0]) / 2, next_fast_len(2 * points, real=True)
        convolved = irfft(rfft(total, size) * rfft(factor, size), size)[:points]
        total = np.maximum(convolved - ends, 0) * (y[1] - y[0])
        scale = total.max()
        total, shift = total / scale, shift + np.log(scale)
    return y, logs, total, shift


# Cached, as neighbours' laws share most concentrations.
@lru_cache(maxsize=4096)
def _log_normaliser(alpha: tuple[float, ...], low: float) -> float:
    """Return the log of the normalising constant of the Dirichlet law with x ≥ low."""
    concentrations = np.array(alpha)
    _, _, total, shift = _convolved(concentrations, low)
    return float(np.log(total[-1]) + shift + (concentrations.sum() - len(alpha)) * (1 - len(alpha) * low))


@dataclass(frozen=True)
class TruncatedDirichlets:
    """Law of independent fields with density ∝ Π x_k^(a_k − 1) on x_k ≥ low. A draw has the fields in order."""

    alphas: tuple[np.ndarray, ...]
    lows: tuple[float, ...]

    def divergence(self, other: TruncatedDirichlets, order: None) -> float:
        """Return the largest log-ratio to another law, which is attained at a vertex of every field's simplex."""
        total = 0.0
        for alpha, changed, low in zip(self.alphas, other.alphas, self.lows, strict=True):
            vertices = np.log(np.where(np.eye(len(alpha), dtype=bool), 1 - (len(alpha) - 1) * low, low))
            total += float((vertices @ (alpha - changed)).max())
            for sign, concentrations in ((-1, alpha), (1, changed)):
                total += sign * _log_normaliser(tuple(sorted(map(float, concentrations))), low)
        return total

    def quantiles(self, draws, rng) -> np.ndarray:
        """Return two distribution functions per field, at the draws: for its first and its last level's probability."""
        draws = np.reshape(draws, (len(draws), -1))
        columns, first = [], 0
        for alpha, low in zip(self.alphas, self.lows, strict=True):
            for level in {0, len(alpha) - 1}:
                y, logs, rest, _ = _convolved(alpha, low, left_out=level)
                density = np.exp(logs[level] - logs[level].max()) * rest[::-1]
                mass = np.concatenate([[0.0], np.cumsum((density[1:] + density[:-1]) / 2)])
                above = draws[:, first + level] - low
                columns.append(np.where(above < -ROUNDING, np.nan, np.interp(above, y, mass / mass[-1])))
            first += len(alpha)
        return np.stack(columns, axis=1)


@dataclass(frozen=True)
class OnGrid:
    """Law of m independent values on a grid (points,), with log-probabilities (m, points) up to constants."""

    grid: np.ndarray
    scores: np.ndarray

    @cached_property
    def _log(self):
        return self.scores - np.logaddexp.reduce(self.scores, axis=-1, keepdims=True)

    def divergence(self, other: OnGrid, order: None) -> float:
        """Return the largest log-ratio to another law, over all points of the grid."""
        return float((self._log - other._log).max(axis=-1).sum())

    def quantiles(self, draws, rng) -> np.ndarray:
        """Return the distribution functions at the draws, randomised within the step at each draw."""
        places = np.searchsorted((self.grid[1:] + self.grid[:-1]) / 2, np.reshape(draws, (len(draws), -1)))
        steps = np.exp(self._log)
        below = np.cumsum(steps, axis=-1) - steps
        return np.stack(
            [below[i, places[:, i]] + rng.random(len(draws)) * steps[i, places[:, i]] for i in _places(len(steps))],
            axis=1,
        )


@dataclass(frozen=True)
class Reports(OnGrid):
    """Joint law of d counts of reports. A grid point codes the counts as the digits of a number to the base `base`."""

    base: int

    def quantiles(self, draws, rng) -> np.ndarray:
        """Return the distribution function of the number that codes the counts, at the draws."""
        draws = np.reshape(draws, (len(draws), -1))
        return super().quantiles(draws @ float(self.base) ** np.arange(draws.shape[1]), rng)


@dataclass(frozen=True)
class Weights:
    """Law of one or two weights of a regression. Integrals over the weights are computed by quadrature.

    Attributes:
        log_weight: function that returns the log-density, up to a constant, at points (..., d).
        reach: the interval [−reach, reach] contains nearly all of each coordinate's mass.
        radius: radius of the ball that weights are restricted to, or None.
    """

    log_weight: Callable
    dimension: int
    reach: float
    radius: float | None

    def _box(self, *functions):
        """Return the lower and upper ends (d,) of a box. Outside it, none of the `functions` is near its maximum."""
        low, high = np.full((2, self.dimension), self.reach) * [[-1], [1]]
        for _ in range(8):
            axes = np.linspace(low, high, 41).T
            nodes = np.stack([axis.ravel() for axis in np.meshgrid(*axes)], axis=-1)
            inside = self._inside(nodes)
            values = [np.where(inside, f(nodes), -np.inf) for f in functions]
            near = nodes[np.any([v >= v.max() - DEPTH for v in values], axis=0)]
            width, margin = high - low, (high - low) / 20
            low, high = np.maximum(low, near.min(axis=0) - margin), np.minimum(high, near.max(axis=0) + margin)
            if np.all(high - low > 0.8 * width):
                break
        return low, high

    def _inside(self, nodes):
        return np.ones(len(nodes), bool) if self.radius is None else squared(nodes) <= self.radius**2

    def _lines(self, x, low: float, high: float):
        """Return Gauss-Legendre nodes and weights (len(x), k) of the other coordinate given x, within the ball."""
        if self.radius is not None:
            half = np.sqrt(np.maximum(self.radius**2 - x**2, 0.0))
            low, high = np.clip(low, -half, half), np.clip(high, -half, half)
        half, middle = np.broadcast_to((high - low) / 2, x.shape), np.broadcast_to((high + low) / 2, x.shape)
        return middle[:, None] + half[:, None] * LEGENDRE[0], half[:, None] * LEGENDRE[1]

    def _nodes(self, low, high):
        """Return points (k, d) and log-weights (k,) of a quadrature over the part of a box within the ball."""
        if self.radius is not None:
            low, high = np.maximum(low, -self.radius), np.minimum(high, self.radius)
        x = (low[0] + high[0]) / 2 + (high[0] - low[0]) / 2 * LEGENDRE[0]
        weight = (high[0] - low[0]) / 2 * LEGENDRE[1]
        if self.dimension == 1:
            return x[:, None], np.log(weight)
        y, inner = self._lines(x, low[1], high[1])
        nodes = np.stack([np.broadcast_to(x[:, None], y.shape), y], axis=-1).reshape(-1, 2)
        with np.errstate(divide="ignore"):
            return nodes, np.log(weight[:, None] * inner).ravel()

    def divergence(self, other: Weights, order: float | None) -> float:
        """Return the Rényi divergence of order `order`, or the largest log-ratio on the ball if `order` is None."""
        p, q = self.log_weight, other.log_weight
        functions = (p, q) if order is None else (p, q, lambda w: order * p(w) + (1 - order) * q(w))
        nodes, log_weights = self._nodes(*self._box(*functions))
        at = [f(nodes) for f in (p, q)]
        totals = [np.logaddexp.reduce(f + log_weights) for f in at]
        if order is None:
            rim = self.radius * (np.stack([np.cos(RIM), np.sin(RIM)], axis=-1)[:, : self.dimension])
            ratio = max((at[0] - at[1]).max(), (p(rim) - q(rim)).max())
            return float(ratio - totals[0] + totals[1])
        mixed = np.logaddexp.reduce(order * at[0] + (1 - order) * at[1] + log_weights)
        return float((mixed - order * totals[0] + (order - 1) * totals[1]) / (order - 1))

    def quantiles(self, draws, rng) -> np.ndarray:
        """Return the distribution functions of the coordinates at the draws, or nan for draws outside the ball."""
        draws = np.reshape(draws, (len(draws), -1))
        low, high = self._box(self.log_weight)
        if self.radius is not None:
            low, high = np.maximum(low, -self.radius), np.minimum(high, self.radius)
        columns = []
        for place in range(self.dimension):
            x = np.linspace(low[place], high[place], 1001)
            if self.dimension == 1:
                logs = self.log_weight(x[:, None])
            else:
                y, inner = self._lines(x, low[1 - place], high[1 - place])
                points = [np.broadcast_to(x[:, None], y.shape), y]
                with np.errstate(divide="ignore"):
                    logs = self.log_weight(np.stack(points[:: 1 - 2 * place], axis=-1)) + np.log(inner)
                logs = np.logaddexp.reduce(logs, axis=1)
            density = np.exp(logs - logs.max())
            mass = np.concatenate([[0.0], np.cumsum((density[1:] + density[:-1]) / 2)])
            columns.append(np.interp(draws[:, place], x, mass / mass[-1]))
        return np.where(self._inside(draws / (1 + ROUNDING))[:, None], np.stack(columns, axis=1), np.nan)
