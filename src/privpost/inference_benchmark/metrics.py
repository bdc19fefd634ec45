"""What draws are scored by: against the exact posterior, and against the true parameters."""

from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

import numpy as np

from privpost.evaluation.diagnostics import bulk_sizes
from privpost.evaluation.spread import z_squares

SCORES = ("distance", "mean_error", "sd_error", "z2", "ess")
# Directions of the slices besides the parameters' own.
DIRECTIONS = 20
# Probabilities of the compared quantiles.
LEVELS = (np.arange(400) + 0.5) / 400


class Reference(NamedTuple):
    """A release's exact posterior by its draws: mean, sd (p,), and quantiles along directions."""

    mean: np.ndarray
    sd: np.ndarray
    slices: np.ndarray

    @classmethod
    def of(cls, draws) -> "Reference":
        """Return the reference that draws (draws, p) give."""
        empty = cls(draws.mean(axis=0), draws.std(axis=0), np.empty(0))
        return empty._replace(slices=empty.quantiles(draws))

    def quantiles(self, draws) -> np.ndarray:
        """Quantiles (levels, directions) of draws (draws, p) in units of the reference."""
        along = np.sort((draws - self.mean) / self.sd @ _directions(len(self.mean)), axis=0)
        place = LEVELS * (len(along) - 1)
        low = place.astype(int)
        return along[low] + (place - low)[:, None] * (along[low + 1] - along[low])


def score(inferred, references: Sequence[Reference], theta, rng) -> np.ndarray:
    """Return the scores (releases, scores) of draws against references and the true parameters (releases, p)."""
    scores = np.full((len(references), len(SCORES)), np.nan)
    finite = np.isfinite(inferred.draws).all(axis=(1, 2, 3))
    sizes = _effective(inferred.draws, finite) if inferred.effective is None else inferred.effective
    for k, (chains, exact) in enumerate(zip(inferred.draws, references, strict=True)):
        if not finite[k]:
            continue
        pooled = chains.reshape(-1, chains.shape[-1])
        below, equal = (pooled < theta[k]).sum(axis=0), (pooled == theta[k]).sum(axis=0)
        rank = (below + rng.random(below.shape) * (equal + 1)) / (len(pooled) + 1)
        scores[k] = (
            np.abs(exact.quantiles(pooled) - exact.slices).mean(),
            np.square((pooled.mean(axis=0) - exact.mean) / exact.sd).mean(),
            (pooled.std(axis=0) / exact.sd - 1).mean(),
            z_squares(rank).mean(),
            sizes[k],
        )
    return scores


def _effective(draws, finite) -> np.ndarray:
    """Return how many independent draws the chains of each release are worth (releases,), where they are numbers."""
    sizes = np.full(len(draws), float(draws.shape[1] * draws.shape[2]))
    if draws.shape[1] > 1 and finite.any():
        # Draws that are all equal have no effective number.
        least = np.fmin.reduce(bulk_sizes(draws[finite].transpose(2, 1, 0, 3)), axis=1)
        sizes[finite] = np.fmin(least, sizes[finite])
    return sizes


@cache
def _directions(size: int) -> np.ndarray:
    """Return unit vectors (size, directions): the axes, and for several parameters fixed random ones."""
    if size == 1:
        return np.ones((1, 1))
    others = np.random.default_rng(0).standard_normal((size, DIRECTIONS))
    return np.concatenate([np.eye(size), others / np.linalg.norm(others, axis=0)], axis=1)
