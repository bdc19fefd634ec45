"""Elliptical slice sampling of logistic posteriors around the Laplace approximation."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import NamedTuple

import numpy as np
from scipy.linalg import cho_solve, solve_triangular
from scipy.optimize import brentq
from scipy.special import expit

from privpost.models.regression.logistic import GaussianApproximation, LogisticPosterior
from privpost.samplers import chain

# The bracket shrinks by a quarter on average. After this many times, it holds no other floating-point angle.
_MAX_SHRINKS = 200
# Proposals do not depend on the state, so many sweeps share one matrix product. The product has at most this many
# elements, since the allocator reuses the memory of arrays up to 32 MiB.
_PRODUCT_ELEMENTS = 1 << 22


class EllipticalSliceInfo(NamedTuple):
    """Numbers of evaluated log-densities (sweeps, n_chains), and how many weight vectors multiplied the design."""

    burn_in_likelihood_calls: np.ndarray
    likelihood_calls: np.ndarray
    matrix_columns: int


class _Points(NamedTuple):
    """Whitened weights (c, d), original weights (c, d) and linear predictors (c, n) of several chains."""

    whitened: np.ndarray
    weights: np.ndarray
    predictors: np.ndarray

    def take(self, index) -> _Points:
        return _Points(*(form[index] for form in self))

    def put(self, index, points: _Points) -> None:
        for form, values in zip(self, points, strict=True):
            form[index] = values


class State(NamedTuple):
    """Chains, their residual log-densities (c,), proposals for later sweeps, and the number of proposals so far."""

    points: _Points
    log_residual: np.ndarray
    proposals: _Points
    made: int


@dataclass(frozen=True)
class EllipticalSlice:
    """Elliptical slice sampling around a Gaussian, with one generator each for normals, levels and angles.

    The cost of a step (n_chains,) is how many log-densities each chain evaluates.

    Attributes:
        log_density: function of weights (c, d) and predictors (c, n) that returns the log-density (c,) of the target.
        design: the matrix (n, d) with predictors = weights @ design.T.
        n_sweeps: number of sweeps to come. No more proposals than this are made in advance.
        confine: function that moves weights (c, d) to where the density is positive; None if this is everywhere.
    """

    log_density: Callable[[np.ndarray, np.ndarray], np.ndarray]
    design: np.ndarray
    gaussian: GaussianApproximation
    n_chains: int
    n_sweeps: int
    confine: Callable[[np.ndarray], np.ndarray] | None = None

    def init(self, rng) -> State:
        """Return chains that start at draws from the Gaussian, moved to where the density is positive."""
        points, rest, made = self._proposal(None, 0, rng[0])
        if self.confine is not None:
            weights = self.confine(points.weights)
            whitened = (weights - self.gaussian.mean) @ self.gaussian.factor
            points = _Points(whitened, weights, weights @ self.design.T)
        return State(points, self.residual(points), rest, made)

    def step(self, state: State, rng) -> tuple[State, np.ndarray]:
        """Make one sweep, and return the new state and the cost of the step."""
        normals, levels, angles = rng
        proposal, rest, made = self._proposal(state.proposals, state.made, normals)
        level = state.log_residual - levels.standard_exponential(self.n_chains)
        proposed = self.residual(proposal)
        calls = np.ones(self.n_chains, dtype=np.int64)
        rejected = np.flatnonzero(~(proposed >= level))
        if len(rejected):
            pair = state.points.take(rejected), proposal.take(rejected)
            turned, values, counts = _turn(self.residual, self._centre, *pair, level[rejected], angles)
            proposal.put(rejected, turned)
            proposed[rejected] = values
            calls[rejected] += counts
        return State(proposal, proposed, rest, made), calls

    def residual(self, points: _Points) -> np.ndarray:
        """Return the residual (c,): the log-density less the Gaussian's log-density."""
        squares = np.einsum("cd,cd->c", points.whitened, points.whitened)
        return self.log_density(points.weights, points.predictors) + 0.5 * squares

    @cached_property
    def _centre(self) -> _Points:
        mean = self.gaussian.mean
        return _Points(np.zeros(len(mean)), mean, self.design @ mean)

    def _proposal(self, ready: _Points | None, made: int, rng) -> tuple[_Points, _Points, int]:
        """Return the next proposal, other ready proposals, and the number of proposals so far."""
        if ready is None or not len(ready.weights):
            n_block = max(1, _PRODUCT_ELEMENTS // (self.n_chains * len(self.design)))
            # The first proposal is the start of the chains.
            n_block = min(n_block, max(1, self.n_sweeps + 1 - made))
            whitened = rng.standard_normal((n_block * self.n_chains, self.design.shape[1]))
            steps = solve_triangular(self.gaussian.factor, whitened.T, lower=True, trans="T", check_finite=False)
            weights = self.gaussian.mean + steps.T
            ready, made = _Points(whitened, weights, weights @ self.design.T), made + n_block
        return ready.take(slice(self.n_chains)), ready.take(slice(self.n_chains, None)), made


def sample(
    posterior: LogisticPosterior,
    *,
    n_chains: int,
    n_draws: int,
    rng: np.random.Generator,
    n_burn_in: int = 5,
    approximation: GaussianApproximation | None = None,
    gaussian: GaussianApproximation | None = None,
) -> tuple[np.ndarray, EllipticalSliceInfo]:
    """Return draws (n_draws, n_chains, d) from a logistic posterior by independent chains, and the cost.

    The posterior is a Gaussian times a residual L(w), which includes the ball. A sweep draws v from the Gaussian and a
    level u L(w) (Murray, Adams and MacKay 2010). If L(v) lies above the level, w and v are swapped, which yields an
    independent draw. Otherwise, the pair is turned, by angles that shrink, until its first member alone lies above the
    level. Swaps preserve the Gaussian law of pairs where both members lie above the level, and turns preserve it where
    only the first does, so the posterior is stationary.

    Args:
        n_burn_in: number of discarded sweeps. Many are needed if the ball cuts into the Gaussian.
        approximation: the result of `laplace`, which is called by default.
        gaussian: the Gaussian, by default the result of `recentred`.

    Raises:
        ValueError: a count is out of range.
        RuntimeError: a bracket shrinks to nothing, since the density is not finite.
    """
    for name, value, least in (("n_chains", n_chains, 1), ("n_draws", n_draws, 1), ("n_burn_in", n_burn_in, 0)):
        if value < least:
            raise ValueError(f"{name} must be at least {least}, got {value}")
    # The three streams are separate, so that the size of a block of proposals changes no number.
    streams = rng.spawn(3)
    if gaussian is None:
        gaussian = recentred(posterior, laplace(posterior) if approximation is None else approximation, streams[0])
    n_sweeps = n_burn_in + n_draws
    sampler = _around(posterior, gaussian, n_chains, n_sweeps)
    draws, calls = [], []
    for state, costs in chain.run(sampler, streams, draws=n_draws, burn_in=n_burn_in):
        draws.append(state.points.weights)
        calls += costs
    counts = np.stack(calls)
    return np.stack(draws), EllipticalSliceInfo(counts[:n_burn_in], counts[n_burn_in:], (n_sweeps + 1) * n_chains)


def _around(posterior: LogisticPosterior, gaussian: GaussianApproximation, n_chains: int, n_sweeps: int):
    def log_density(weights: np.ndarray, predictors: np.ndarray) -> np.ndarray:
        likelihood = posterior.log_likelihood_of_predictors(predictors)
        return posterior.log_prior(weights) + posterior.power * likelihood

    confine = None if posterior.radius is None else partial(into_ball, posterior)
    return EllipticalSlice(log_density, posterior.features, gaussian, n_chains, n_sweeps, confine)


def recentred(
    posterior: LogisticPosterior, approximation: GaussianApproximation, rng: np.random.Generator
) -> GaussianApproximation:
    """Return the Laplace approximation, moved from the mode to about the posterior's mean."""
    # The residual of a Gaussian at the mode varies mostly because of skewness, which this move removes.
    return approximation._replace(mean=approximation.mean + mean_shift(posterior, approximation, rng))


def laplace(posterior: LogisticPosterior) -> GaussianApproximation:
    """Return the Laplace approximation: the Gaussian at the mode with the log-density's curvature there.

    If the mean squared norm of this Gaussian exceeds R² for a ball of radius R, the prior precision is raised until
    both are equal (Lagrange relaxation). Raises RuntimeError if the mode is not found.
    """
    approximation = posterior.at_mode()
    if posterior.radius is None or _mean_squared_norm(approximation) <= posterior.radius**2:
        return approximation
    square = posterior.radius**2

    def relaxed(log_precision: float) -> GaussianApproximation:
        return replace(posterior, prior_precision=np.exp(log_precision), radius=None).at_mode(approximation)

    def excess(log_precision: float) -> float:
        return np.log(_mean_squared_norm(relaxed(log_precision)) / square)

    lower = upper = np.log(posterior.prior_precision)
    while excess(upper) > 0:
        lower, upper = upper, upper + 2.0
    # Any precision keeps a sampler exact, so a coarse root is enough.
    return relaxed(brentq(excess, lower, upper, xtol=0.02))


def _mean_squared_norm(approximation: GaussianApproximation) -> float:
    inverse = solve_triangular(approximation.factor, np.eye(len(approximation.mean)), lower=True)
    return float(approximation.mean @ approximation.mean + np.sum(inverse**2))


def mean_shift(
    posterior: LogisticPosterior, approximation: GaussianApproximation, rng: np.random.Generator
) -> np.ndarray:
    """Estimate the shift (d,) from the posterior's mode to its mean, to first order in the skewness.

    The estimate is -1/2 P^-1 sum_i rho p_i (1 - p_i) (1 - 2 p_i) s_i^2 x_i, where P is the precision at the mode, p_i
    the probability of a label 1 and s_i^2 the variance of x_i·w.
    """
    # Rough variances are enough, so they are averages over 64 draws.
    normals = rng.standard_normal((posterior.dimension, 64))
    steps = solve_triangular(approximation.factor, normals, lower=True, trans="T", check_finite=False)
    variances = np.mean((steps.T @ posterior.features.T) ** 2, axis=0)
    probability = expit(posterior.features @ approximation.mean)
    third = posterior.power * probability * (1 - probability) * (1 - 2 * probability)
    return -0.5 * cho_solve(
        (approximation.factor, True), posterior.features.T @ (third * variances), check_finite=False
    )


def into_ball(posterior: LogisticPosterior, weights: np.ndarray) -> np.ndarray:
    """Return weights (chains, d), with those outside the posterior's ball scaled to just inside."""
    if posterior.radius is None:
        return weights
    norm = np.linalg.norm(weights, axis=1, keepdims=True)
    # Weights are not scaled onto the sphere, since rounding can put such a point outside.
    limit = (1 - 1e-6) * posterior.radius
    return np.where(norm > limit, weights * (limit / np.maximum(norm, limit)), weights)


def _turn(residual, centre: _Points, state: _Points, proposal: _Points, level: np.ndarray, rng):
    """Return the first members of turned pairs, their residual log-densities, and the numbers of evaluations."""
    # Each pair is turned by a shrinking angle until the first member alone lies above the level.
    n_chains = len(level)
    result = _Points(*(np.empty_like(form) for form in state))
    values = np.empty(n_chains)
    calls = np.zeros(n_chains, dtype=np.int64)
    angle = rng.uniform(0.0, 2 * np.pi, n_chains)
    lower, upper = angle - 2 * np.pi, angle.copy()
    active = np.arange(n_chains)
    for _ in range(_MAX_SHRINKS):
        cosine, sine = np.cos(angle[active]), np.sin(angle[active])
        pair = state.take(active), proposal.take(active)
        point = _combine(centre, pair, cosine, sine)
        value = residual(point)
        calls[active] += 1
        accepted = value >= level[active]
        if accepted.any():
            kept = np.flatnonzero(accepted)
            partner = _combine(centre, tuple(p.take(kept) for p in pair), -sine[kept], cosine[kept])
            calls[active[kept]] += 1
            accepted[kept] = ~(residual(partner) >= level[active[kept]])
            done = active[accepted]
            result.put(done, point.take(accepted))
            values[done] = value[accepted]
        active = active[~accepted]
        if len(active) == 0:
            return result, values, calls
        last = angle[active]
        upper[active] = np.where(last > 0, last, upper[active])
        lower[active] = np.where(last > 0, lower[active], last)
        angle[active] = rng.uniform(lower[active], upper[active])
    raise RuntimeError(
        f"elliptical slice sampling shrank the bracket of {len(active)} of {n_chains} chains {_MAX_SHRINKS} times "
        "without finding a point of the slice; is the log-density finite at the current weights?"
    )


def _combine(centre: _Points, pair: tuple[_Points, _Points], first: np.ndarray, second: np.ndarray) -> _Points:
    """Return the points centre + first (a - centre) + second (b - centre) of pairs (a, b)."""
    a, b = first[:, None], second[:, None]
    return _Points(*(a * x + b * y + (1 - a - b) * c for c, x, y in zip(centre, *pair, strict=True)))
