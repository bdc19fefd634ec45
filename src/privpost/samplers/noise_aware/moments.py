"""Posterior of second moments S given noisy second moments, by ensembles of walkers.

The model is as in `noise_aware.regression`, with all parameters integrated out. The Gibbs sampler there is slow if the
noise is much larger than the label's residuals. A walker's coordinates are the entries of B and ln D, where S = B D Bᵀ
with a unit triangular B and a diagonal D. A walker steps along the difference of two other walkers (differential
evolution, ter Braak 2006), so steps have the scales and correlations of the posterior.
"""

from typing import NamedTuple

import numpy as np

from privpost.models.regression.normal import NormalRegression
from privpost.samplers.noise_aware.regression import Noise, positive, symmetric

ENSEMBLES = 4
# Number of walkers per dimension in an ensemble, and the smallest number of walkers.
WALKERS, FEWEST = 3, 24
# Share of steps along a whole difference, which jump between modes. Size of the random step that is added to any step.
JUMPS, JITTER = 0.1, 1e-4


class State(NamedTuple):
    """The positions of all walkers.

    Attributes:
        points: entries of B and ln D, shape (ensembles, walkers, dimensions).
        logs: log-densities at the points, shape (ensembles, walkers).
    """

    points: np.ndarray
    logs: np.ndarray


class Moments:
    """Independent ensembles of walkers (`chain.Sampler`), with the number of refused proposals as cost of a step.

    Args:
        moments: noisy second moments in the data's units, an upper triangle (q,).
        n: public number of records, ≥ d + 1.
        constant: whether the first feature is the constant 1, with the exact second moment n. Normal records then have
            an unknown mean.

    Raises:
        ValueError: n below d + 1.
    """

    def __init__(self, model: NormalRegression, moments, n: int, noise: Noise, constant: bool = False):
        self._model, self._n, self._noise, self._fixed = model, n, noise, int(constant)
        self._moments = np.asarray(moments, float)
        self._size = p = model.dimension + 1
        if n < p:
            raise ValueError(f"n is {n}; second moments of {p} variables need at least as many records")
        self._below = np.tril_indices(p, -1)
        self._free = np.arange(self._fixed, p)
        self._upper = np.triu_indices(p)
        self.walkers = max(FEWEST, 2 * -(-WALKERS * (len(self._below[0]) + len(self._free)) // 2))

    def init(self, rng) -> State:
        """Start every walker at the noisy moments minus an independent draw of the noise."""
        total = ENSEMBLES * self.walkers
        start = positive(symmetric(self._moments - self._noise.draw(total, rng)), 1e-3 * self._n)
        points = self._point(start).reshape(ENSEMBLES, self.walkers, -1)
        return State(points, self._log_density(points))

    def step(self, state: State, rng) -> tuple[State, int]:
        """Move both halves of every ensemble, one after the other."""
        points, logs, half, refused = state.points.copy(), state.logs.copy(), self.walkers // 2, 0
        for moving, resting in ((slice(None, half), slice(half, None)), (slice(half, None), slice(None, half))):
            here = points[:, moving]
            # Two different walkers of the other half.
            first = rng.integers(half, size=here.shape[:2])
            second = (first + rng.integers(1, half, size=first.shape)) % half
            others, place = points[:, resting], np.arange(ENSEMBLES)[:, None]
            length = 2.38 / np.sqrt(2 * here.shape[2]) * rng.uniform(0.3, 1.2, first.shape)
            length = np.where(rng.random(first.shape) < JUMPS, 1.0, length)
            step = length[..., None] * (others[place, first] - others[place, second])
            proposed = here + step + JITTER * rng.standard_normal(here.shape)
            there = self._log_density(proposed)
            moved = np.log(rng.random(first.shape)) < there - logs[:, moving]
            points[:, moving] = np.where(moved[..., None], proposed, here)
            logs[:, moving] = np.where(moved, there, logs[:, moving])
            refused += int((~moved).sum())
        return State(points, logs), refused

    def gram(self, points) -> np.ndarray:
        """Return the second moments (..., p, p) of walkers at points (..., dimensions)."""
        size, pairs = self._size, len(self._below[0])
        factor = np.zeros((*points.shape[:-1], size, size))
        factor[..., np.arange(size), np.arange(size)] = 1.0
        factor[..., self._below[0], self._below[1]] = points[..., :pairs]
        return (factor * self._diagonal(points)[..., None, :]) @ np.swapaxes(factor, -1, -2)

    def theta(self, state: State, walker: int, rng) -> np.ndarray:
        """Draw weights and variance (ensembles, d + 1), given the second moments of one walker per ensemble."""
        return self._model.sample(self._model.given(self.gram(state.points[:, walker]), self._n), rng)

    def _diagonal(self, points):
        logs = points[..., len(self._below[0]) :]
        exact = np.full((*points.shape[:-1], self._fixed), float(self._n))
        # Beyond these limits densities are 0 in floats.
        return np.concatenate([exact, np.exp(np.clip(logs, -600.0, 600.0))], axis=-1)

    def _point(self, gram) -> np.ndarray:
        if self._fixed:
            # The constant's second moment is n; all other second moments keep their values.
            gram = gram.copy()
            gram[..., 0, 0] = self._n
            gram = positive(gram, 1e-6 * self._n)
        root = np.linalg.cholesky(gram)
        diagonal = np.diagonal(root, axis1=-2, axis2=-1)
        factor = root / diagonal[..., None, :]
        return np.concatenate([factor[..., *self._below], 2 * np.log(diagonal[..., self._free])], axis=-1)

    def _log_density(self, points) -> np.ndarray:
        """Return the log-density, in the walkers' coordinates, of S given the release, up to a constant."""
        gram, diagonal = self.gram(points), self._diagonal(points)
        powers = self._size - 1 - np.arange(self._size) + (np.arange(self._size) >= self._fixed)
        flat = gram.reshape(-1, self._size, self._size)
        with np.errstate(all="ignore"):
            value = self._model.log_marginal(flat, self._n)
            residual = self._moments[:, None] - flat[:, *self._upper].T
            value = (value + self._noise.log_density(residual)).reshape(points.shape[:-1])
            value += (powers * np.log(diagonal)).sum(axis=-1)
        return np.where(np.isfinite(value), value, -np.inf)
