"""Univariate slice sampling with stepping out and shrinking, one coordinate at a time."""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np

# The bracket shrinks by a quarter on average, so that after this many times no floating-point value is left.
_MAX_SHRINKS = 200
_MAX_STEPS = 1000


class Coordinates(Protocol):
    """Weights of several chains (n_chains, d) that move along one coordinate at a time."""

    weights: np.ndarray

    def log_density(self, coordinate: int, values: np.ndarray, chains: np.ndarray) -> np.ndarray:
        """Log-density up to a constant of some chains, with new values (m,) of one coordinate → (m,)."""

    def move(self, coordinate: int, values: np.ndarray) -> None:
        """Set one coordinate of all chains to values (n_chains,)."""


class CoordinateTarget(Protocol):
    """Density that can start several chains."""

    def coordinates(self, weights: np.ndarray) -> Coordinates:
        """Chains at the given weights (n_chains, d)."""


class SliceInfo(NamedTuple):
    """Cost of a run: evaluations of the log-density, shape (n_burn_in + n_draws, n_chains)."""

    density_calls: np.ndarray


def sample(
    target: CoordinateTarget,
    *,
    start: np.ndarray,
    width: float,
    n_burn_in: int,
    n_draws: int,
    rng: np.random.Generator,
) -> tuple[np.ndarray, SliceInfo]:
    """Draw by slice sampling each coordinate in turn, all chains as one batch.

    Per coordinate: a level below the log-density by a standard exponential variate, an interval of the given width
    placed at random about the current value, stepped out until both its ends lie below the level, then shrunk
    towards the current value until a uniform point of it lies above (Neal 2003, figures 3 and 5). This is the sampler
    that Geumlek, Song and Chaudhuri (2017) used, with a burn-in of 1000 sweeps.

    Args:
        target: density whose chains can be moved along a coordinate.
        start: shape (n_chains, d), where the density is positive.
        width: first width of the interval.
        n_burn_in: sweeps over all coordinates discarded.
        n_draws: sweeps kept.
        rng: source of randomness.

    Returns:
        Draws of shape (n_draws, n_chains, d) and the cost.

    Raises:
        ValueError: a count or the width out of range, or a start of density zero.
        RuntimeError: an interval does not end after 1000 steps, or shrinks to nothing.
    """
    if start.ndim != 2 or 0 in start.shape:
        raise ValueError(f"start must be a non-empty (n_chains, d) array, got shape {start.shape}")
    if not 0 < width < np.inf:
        raise ValueError(f"width must be positive and finite, got {width}")
    for name, value, least in (("n_draws", n_draws, 1), ("n_burn_in", n_burn_in, 0)):
        if value < least:
            raise ValueError(f"{name} must be at least {least}, got {value}")
    n_chains, dimension = start.shape
    state = target.coordinates(start)
    everyone = np.arange(n_chains)
    log_density = state.log_density(0, start[:, 0], everyone)
    if not np.isfinite(log_density).all():
        raise ValueError("start must have a positive and finite density in every chain")
    draws = np.empty((n_draws, n_chains, dimension))
    calls = np.zeros((n_burn_in + n_draws, n_chains), dtype=np.int64)
    for sweep in range(n_burn_in + n_draws):
        for coordinate in range(dimension):
            current = state.weights[:, coordinate].copy()
            level = log_density - rng.standard_exponential(n_chains)
            lower = current - width * rng.random(n_chains)
            upper = lower + width
            for end, step in ((lower, -width), (upper, width)):
                _step_out(state, coordinate, level, end, step, calls[sweep])
            values, log_density = _shrink(state, coordinate, level, current, lower, upper, rng, calls[sweep])
            state.move(coordinate, values)
        if sweep >= n_burn_in:
            draws[sweep - n_burn_in] = state.weights
    return draws, SliceInfo(calls)


def _step_out(state: Coordinates, coordinate: int, level, end, step: float, calls) -> None:
    """Move the ends of the chains' intervals outwards, in place, until their density lies below the level."""
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
    """Uniform points of the slices within the intervals, and their log-density."""
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
