"""Univariate slice sampling with stepping out and shrinking, as in Geumlek et al. (2017)."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from privpost.models.regression.logistic import LogisticPosterior
from privpost.samplers import chain

# The bracket shrinks by a quarter on average. After this many times, it holds no other floating-point value.
_MAX_SHRINKS = 200
_MAX_STEPS = 1000


class Coordinates:
    """Chains of a logistic posterior with weights (n_chains, d), which move one coordinate at a time."""

    def __init__(self, posterior: LogisticPosterior, weights: np.ndarray):
        self.weights = np.array(weights, dtype=float)
        self._posterior = posterior
        self._columns = np.ascontiguousarray(posterior.features.T)
        self._predictors = self.weights @ self._columns
        self._squared_norm = np.einsum("cd,cd->c", self.weights, self.weights)

    def log_density(self, coordinate: int, values: np.ndarray, chains: np.ndarray) -> np.ndarray:
        """Return the unnormalised log-density (m,) if a coordinate of some chains (m,) has new values (m,)."""
        posterior, former = self._posterior, self.weights[chains, coordinate]
        squared_norm = self._squared_norm[chains] + values**2 - former**2
        predictors = self._predictors[chains] + (values - former)[:, None] * self._columns[coordinate]
        result = posterior.power * posterior.log_likelihood_of_predictors(predictors)
        result -= 0.5 * posterior.prior_precision * squared_norm
        return result if posterior.radius is None else np.where(squared_norm <= posterior.radius**2, result, -np.inf)

    def move(self, coordinate: int, values: np.ndarray) -> None:
        """Set a coordinate of all chains to new values (n_chains,)."""
        former = self.weights[:, coordinate].copy()
        self.weights[:, coordinate] = values
        self._squared_norm += values**2 - former**2
        self._predictors += (values - former)[:, None] * self._columns[coordinate]


class SliceInfo(NamedTuple):
    """How often a run evaluated the log-density, shape (n_burn_in + n_draws, n_chains)."""

    density_calls: np.ndarray


class State(NamedTuple):
    """Several chains, and the log-density (n_chains,) at each chain's place."""

    chains: Coordinates
    log_density: np.ndarray


class Slice(NamedTuple):
    """Slice sampling of each coordinate in turn. Attributes and errors are as in `sample`.

    The cost of a step (n_chains,) is how often each chain evaluates the log-density.
    """

    target: Callable[[np.ndarray], Coordinates]
    start: np.ndarray
    width: float

    def init(self, rng) -> State:
        """Return the state at the start of all chains."""
        chains = self.target(self.start)
        log_density = chains.log_density(0, self.start[:, 0], np.arange(len(self.start)))
        if not np.isfinite(log_density).all():
            raise ValueError("start must have a positive and finite density in every chain")
        return State(chains, log_density)

    def step(self, state: State, rng: np.random.Generator) -> tuple[State, np.ndarray]:
        """Move every coordinate once, and return the new state and the cost of the step."""
        chains, log_density = state
        n_chains, dimension = self.start.shape
        calls = np.zeros(n_chains, dtype=np.int64)
        for coordinate in range(dimension):
            current = chains.weights[:, coordinate].copy()
            level = log_density - rng.standard_exponential(n_chains)
            lower = current - self.width * rng.random(n_chains)
            upper = lower + self.width
            for end, step in ((lower, -self.width), (upper, self.width)):
                _step_out(chains, coordinate, level, end, step, calls)
            values, log_density = _shrink(chains, coordinate, level, current, lower, upper, rng, calls)
            chains.move(coordinate, values)
        return State(chains, log_density), calls


def sample(
    target: Callable[[np.ndarray], Coordinates],
    *,
    start: np.ndarray,
    width: float,
    n_burn_in: int,
    n_draws: int,
    rng: np.random.Generator,
) -> tuple[np.ndarray, SliceInfo]:
    """Return draws (n_draws, n_chains, d) by slice sampling of each coordinate in turn, and the cost.

    For each coordinate, the level is the log-density less a standard exponential variate. An interval is placed at
    random about the current value. It is stepped out until both ends lie below the level, and shrunk until a uniform
    point in it lies above the level (Neal 2003, figures 3 and 5).

    Args:
        target: function that returns chains with weights (n_chains, d), such as `partial(Coordinates, posterior)`.
        start: weights (n_chains, d) at which the density is positive.
        width: first width of the interval.

    Raises:
        ValueError: a count or the width is out of range, or the density is zero at the start.
        RuntimeError: an interval does not end after 1000 steps, or shrinks to nothing.
    """
    if start.ndim != 2 or 0 in start.shape:
        raise ValueError(f"start must be a non-empty (n_chains, d) array, got shape {start.shape}")
    if not 0 < width < np.inf:
        raise ValueError(f"width must be positive and finite, got {width}")
    for name, value, least in (("n_draws", n_draws, 1), ("n_burn_in", n_burn_in, 0)):
        if value < least:
            raise ValueError(f"{name} must be at least {least}, got {value}")
    draws, calls = [], []
    for state, costs in chain.run(Slice(target, start, width), rng, draws=n_draws, burn_in=n_burn_in):
        draws.append(state.chains.weights.copy())
        calls += costs
    return np.stack(draws), SliceInfo(np.stack(calls))


def _step_out(state: Coordinates, coordinate: int, level, end, step: float, calls) -> None:
    """Move one end of each chain's interval outwards until the density at this end is below the level."""
    active = np.arange(len(level))
    for _ in range(_MAX_STEPS):
        above = state.log_density(coordinate, end[active], active) > level[active]
        calls[active] += 1
        active = active[above]
        if len(active) == 0:
            return
        end[active] += step
    raise RuntimeError(
        f"slice sampling of coordinate {coordinate}: the interval of {len(active)} chains did not end after "
        f"{_MAX_STEPS} steps of width {abs(step)}; take a larger width"
    )


def _shrink(state: Coordinates, coordinate: int, level, current, lower, upper, rng, calls):
    """Return a uniform point of the slice for each chain, and the log-density at this point."""
    values, log_density = current.copy(), np.empty_like(current)
    active = np.arange(len(level))
    for _ in range(_MAX_SHRINKS):
        point = rng.uniform(lower[active], upper[active])
        found = state.log_density(coordinate, point, active)
        calls[active] += 1
        accepted = found > level[active]
        values[active[accepted]] = point[accepted]
        log_density[active[accepted]] = found[accepted]
        point, active = point[~accepted], active[~accepted]
        if len(active) == 0:
            return values, log_density
        below = point < current[active]
        lower[active[below]] = point[below]
        upper[active[~below]] = point[~below]
    raise RuntimeError(
        f"slice sampling of coordinate {coordinate}: the interval of {len(active)} chains shrank {_MAX_SHRINKS} times "
        "without finding a point of the slice; is the log-density finite at the current weights?"
    )
