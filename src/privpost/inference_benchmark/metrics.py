"""Scores that compare draws with the exact posterior or with the true parameters."""

import math
from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

import numpy as np

from privpost.evaluation.diagnostics import bulk_sizes
from privpost.evaluation.spread import z_squares

# `z2` compares draws with the true parameters. All other scores but `ess` compare draws with the exact posterior.
SCORES = ("distance", "mean_error", "sd_error", "c2st", "mmd2", "z2", "ess")
# Number of random directions of slices, in addition to the axes.
DIRECTIONS = 20
# Probabilities of the compared quantiles.
LEVELS = (np.arange(400) + 0.5) / 400
# Number of folds of the classifier's cross-validation, and positions of hinge features in standard deviations.
FOLDS = 5
KINKS = (-2, -1, 0, 1, 2)
# Number of draws of each law that MMD² uses. The time grows with the square of this number.
KERNEL_DRAWS = 400
# Number of releases with an MMD². For a single parameter, the sliced distance suffices.
FEW = 5


class Reference(NamedTuple):
    """Draws (draws, p) from an exact posterior with their mean (p,), sd (p,) and quantiles (levels, directions)."""

    draws: np.ndarray
    mean: np.ndarray
    sd: np.ndarray
    slices: np.ndarray

    @classmethod
    def of(cls, draws) -> "Reference":
        """Return the reference with the given draws (draws, p)."""
        empty = cls(draws, draws.mean(axis=0), draws.std(axis=0), np.empty(0))
        return empty._replace(slices=empty.quantiles(draws))

    def standard(self, draws) -> np.ndarray:
        """Draws (draws, p) after standardisation by the reference's mean and sd."""
        return (draws - self.mean) / self.sd

    def quantiles(self, draws) -> np.ndarray:
        """Quantiles (levels, directions) of draws (draws, p), after standardisation by the reference."""
        along = np.sort(self.standard(draws) @ _directions(len(self.mean)), axis=0)
        place = LEVELS * (len(along) - 1)
        low = place.astype(int)
        return along[low] + (place - low)[:, None] * (along[low + 1] - along[low])


def score(inferred, references: Sequence[Reference], theta, rng) -> np.ndarray:
    """Return scores (releases, scores) of inferred draws, given references and true parameters θ (releases, p)."""
    scores = np.full((len(references), len(SCORES)), np.nan)
    finite, sizes = _finite(inferred.draws), effective(inferred)
    for k, (chains, exact) in enumerate(zip(inferred.draws, references, strict=True)):
        if not finite[k]:
            continue
        pooled = chains.reshape(-1, chains.shape[-1])
        two = exact.standard(pooled), exact.standard(exact.draws)
        scores[k] = (
            np.abs(exact.quantiles(pooled) - exact.slices).mean(),
            np.square((pooled.mean(axis=0) - exact.mean) / exact.sd).mean(),
            (pooled.std(axis=0) / exact.sd - 1).mean(),
            c2st(*two, rng),
            mmd2(*two, rng) if pooled.shape[1] > 1 and k < FEW else np.nan,
            z_squares(ranks(pooled, sizes[k], theta[k], rng)).mean(),
            sizes[k],
        )
    return scores


def ranks(draws, effective: float, theta, rng) -> np.ndarray:
    """Return ranks (p,) in [0, 1] of the true parameters (p,) among draws (draws, p).

    If draws have the posterior's law, ranks are uniform. Draws are thinned to their effective sample size, since
    dependent draws spread ranks too far (Talts et al. 2018). A parameter's rank is drawn uniformly between the ranks of
    its two neighbouring draws.
    """
    thinned = draws[:: math.ceil(len(draws) / np.clip(effective, 1, len(draws)))]
    below, equal = (thinned < theta).sum(axis=0), (thinned == theta).sum(axis=0)
    return (below + rng.random(below.shape) * (equal + 1)) / (len(thinned) + 1)


def c2st(first, second, rng) -> float:
    """Return the accuracy of a classifier that tells draws (draws, p) of two laws apart.

    The draws must be standardised by one of the laws. The classifier is a cross-validated least-squares fit on
    coordinates, products of coordinates, and hinges (Lopez-Paz and Oquab 2017). A hundred draws are too few for it.
    """
    size = min(len(first), len(second))
    pooled = np.concatenate([draws[rng.permutation(len(draws))[:size]] for draws in (first, second)])
    i, j = np.triu_indices(pooled.shape[1])
    hinges = [np.maximum(pooled - kink, 0) for kink in KINKS]
    features = np.concatenate([np.ones((2 * size, 1)), pooled, pooled[:, i] * pooled[:, j], *hinges], axis=1)
    label, fold = np.repeat([-1.0, 1.0], size), rng.permutation(2 * size) % FOLDS
    parts = [(features[fold == k], label[fold == k]) for k in range(FOLDS)]
    grams, crosses = [x.T @ x for x, _ in parts], [x.T @ y for x, y in parts]
    gram, cross = sum(grams), sum(crosses)
    # The ridge gives hinges that no draw reaches a weight of zero.
    ridge = np.diag(1e-3 * np.diag(gram) + 1e-9 * size)
    right = 0
    for (x, y), own, ours in zip(parts, grams, crosses, strict=True):
        right += int(((x @ np.linalg.solve(gram - own + ridge, cross - ours) > 0) == (y > 0)).sum())
    return right / (2 * size)


def mmd2(first, second, rng) -> float:
    """Return an unbiased estimate of the squared maximum mean discrepancy of two laws, given draws (draws, p).

    The kernel is exp(−d²/m), where m is the median of the squared distances d² (Gretton et al. 2012).
    """
    size = min(len(first), len(second), KERNEL_DRAWS)
    pooled = np.concatenate([draws[rng.permutation(len(draws))[:size]] for draws in (first, second)])
    squares = np.square(pooled).sum(axis=1)
    distances = np.maximum(squares[:, None] + squares - 2 * pooled @ pooled.T, 0.0)
    kernel = np.exp(-distances / np.median(distances))
    within = [(kernel[part, part].sum() - size) / (size * (size - 1)) for part in (slice(size), slice(size, None))]
    return float(sum(within) - 2 * kernel[:size, size:].mean())


def all_ranks(inferred, theta, rng) -> np.ndarray:
    """Return `ranks` (releases, p) of the true parameters (releases, p), or nan for draws that are not finite."""
    found, sizes = np.full(theta.shape, np.nan), effective(inferred)
    for k in np.flatnonzero(_finite(inferred.draws)):
        found[k] = ranks(inferred.draws[k].reshape(-1, theta.shape[1]), sizes[k], theta[k], rng)
    return found


def _finite(draws) -> np.ndarray:
    return np.isfinite(draws).all(axis=(1, 2, 3))


def effective(inferred) -> np.ndarray:
    """Return effective sample sizes (releases,), known to the method or estimated from several chains."""
    # Draws of a single chain count as independent.
    draws, finite = inferred.draws, _finite(inferred.draws)
    if inferred.effective is not None:
        return inferred.effective
    sizes = np.full(len(draws), float(draws.shape[1] * draws.shape[2]))
    if draws.shape[1] > 1 and finite.any():
        # `fmin` skips the nan of a parameter whose draws are all equal.
        least = np.fmin.reduce(bulk_sizes(draws[finite].transpose(2, 1, 0, 3)), axis=1)
        sizes[finite] = np.fmin(least, sizes[finite])
    return sizes


@cache
def _directions(size: int) -> np.ndarray:
    """Return unit vectors (size, directions): the axes and, for several parameters, fixed random directions."""
    if size == 1:
        return np.ones((1, 1))
    others = np.random.default_rng(0).standard_normal((size, DIRECTIONS))
    return np.concatenate([np.eye(size), others / np.linalg.norm(others, axis=0)], axis=1)
