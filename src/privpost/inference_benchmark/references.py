"""Exact posteriors given a release, computed by sums and integrals."""

import itertools
import math
from functools import partial
from typing import NamedTuple

import numpy as np
from scipy.special import betaln, gammaln

from privpost.samplers.noise_aware import regression_quadrature as moments_of
from privpost.samplers.noise_aware.quadrature import Posterior, parameter_edges, power, redacted_likelihood

# Number of cells of θ, which are evenly spaced in the parameter's coordinate over the prior's mass.
CELLS = 600
# Largest n of each network at which the sum over counts is feasible.
LARGEST = {"naive_bayes": 200, "collider": 100, "three_parents": 8}
# A sum of n whole numbers has the characteristic function φⁿ. Number of coarse frequencies at which |φ|ⁿ is bounded.
_COARSE = 513
# Value of |φ|ⁿ that is neglected.
_NOTHING = 1e-20
# Number of frequencies in a block.
_BLOCK = 256
# Number of grid nodes in each dimension of second moments, and number of draws from the prior that locate the grid.
_NODES, _STARTS = 20, 2000


def redacted(mechanism, releases) -> Posterior:
    """Return the posteriors of θ, as masses of cells, given redacted sums (k,) with Laplace noise.

    The law of the sum of n records comes from the n-th power of the Fourier transform of a record's law.
    """
    family, n, scale = mechanism.model.family, mechanism.n, float(mechanism.scale)
    interval = float(mechanism.model.low), float(mechanism.model.high)
    edges = parameter_edges(family, CELLS)
    theta, width = (edges[1:] + edges[:-1]) / 2, np.diff(edges)
    likelihood = _lattice if family.lattice else redacted_likelihood
    mass = likelihood(family, releases, n, scale, interval, theta) * np.exp(family.log_density(theta, family.prior))
    mass *= width
    shape = mass.shape
    return Posterior(
        np.broadcast_to(theta, shape), np.broadcast_to(width, shape), mass / mass.sum(axis=1, keepdims=True)
    )


def _lattice(family, releases, n: int, scale: float, interval, theta) -> np.ndarray:
    """Return p(y | θ) for sums y of whole numbers with Laplace noise, with a row per y and a column per θ."""
    # The sum over the lattice becomes a sum over frequencies (Parseval). Frequencies of negligible weight are left out.
    values = np.arange(np.ceil(interval[0]), np.floor(interval[1]) + 1)
    largest = int(n * values[-1]) + 1
    size = 2 ** int(np.ceil(np.log2(largest + 1)))
    noise = np.exp(-np.abs(np.asarray(releases)[:, None] - np.arange(largest)) / scale)
    waves = np.fft.rfft(noise, size).conj()
    # Every frequency except the first and the last also stands for its conjugate.
    waves[:, 1:-1] *= 2
    law = family.cdf(values, theta[:, None]) - family.cdf(values - 1, theta[:, None])
    # Redacted records add 0.
    out = 1 - law.sum(axis=1, keepdims=True)

    def wave(omega):
        return out + law @ np.exp(-1j * values[:, None] * omega)

    # |φ| changes by at most the standard deviation times the distance in frequency.
    coarse, sd = np.linspace(0, np.pi, _COARSE), np.sqrt(law @ values**2 - (law @ values) ** 2)
    bound = (np.abs(wave(coarse)) + sd[:, None] * coarse[1] / 2).max(axis=0)
    highest = int((coarse[bound > _NOTHING ** (1 / n)].max() + coarse[1] / 2) / (2 * np.pi) * size) + 1
    total = np.zeros((len(noise), len(theta)))
    for start in range(0, min(highest + 1, waves.shape[1]), _BLOCK):
        block = waves[:, start : start + _BLOCK]
        omega = 2 * np.pi / size * np.arange(start, start + block.shape[1])
        total += (block @ power(wave(omega), n).T).real
    return np.maximum(total / size, 0.0)


def second_moments(model, moments, n: int, noise):
    """Return a function that draws second moments (draws, 2, 2) of a feature and a label given noisy moments (3,)."""
    # Rejection sampling with proposals that are uniform in each cell of a grid gives independent, exact draws.
    given = model, moments, n, noise
    low, high = moments_of._box(*given, _STARTS, np.random.default_rng(0))
    for _ in range(3):
        nodes, weights = moments_of._grid(*given, low, high, _NODES)
        step, inside = (high - low) / (_NODES - 1), nodes[:, weights > 1e-12 * weights.max()]
        low, high = inside.min(axis=1) - step, inside.max(axis=1) + step
    nodes, weights = moments_of._grid(*given, low, high, _NODES)
    step, cumulative = (high - low) / (_NODES - 1), np.cumsum(weights)
    logs = np.log(np.maximum(weights, np.finfo(float).tiny))
    top = moments_of._log_density(*given, nodes).max()

    def proposed(size, rng):
        at = np.searchsorted(cumulative, rng.random(size) * cumulative[-1], side="right")
        points = nodes[:, at] + step[:, None] * rng.uniform(-0.5, 0.5, (3, size))
        return points, moments_of._log_density(*given, points) - top - logs[at]

    # Largest ratio of the two densities, found with about as many proposals as a thousand draws need.
    most = proposed(20_000, np.random.default_rng(1))[1].max()

    def drawn(draws: int, rng) -> np.ndarray:
        kept, found = [], 0
        while found < draws:
            points, ratio = proposed(2 * draws, rng)
            kept.append(points[:, np.log(rng.random(2 * draws)) < ratio - most])
            found += kept[-1].shape[1]
        return moments_of._gram(np.concatenate(kept, axis=1)[:, :draws])

    return drawn


def counts(model, n: int, scale: float, releases) -> list:
    """Return functions that draw a network's counts (draws, 2m), one for each of the releases (k, 2m).

    A count of a node with children can be nan, which means that it is not released. The posterior is a sum over
    contingency tables of the nodes with children. Given a table, the counts of leaves, which are the other nodes, are
    independent with a beta-binomial law times the noise's density. A table's weight is the product of its prior, its
    noise density and the normalising sums of the leaves' laws.
    """
    inner = _inner(model, n)
    return [partial(_drawn_counts, *_tilted(n, scale, release, inner), inner.counts) for release in releases]


class _Inner(NamedTuple):
    """All contingency tables that cross the nodes with children, for n records. The other nodes are leaves."""

    # Log-probability (tables,) of each table under the prior, up to a constant.
    log_prior: np.ndarray
    # Counts (tables, 2m) of each table, which are 0 for leaves.
    counts: np.ndarray
    # Indices of the parameters of leaves.
    leaves: np.ndarray
    # Numbers (tables, leaves) of records that concern the parameters of leaves.
    sizes: np.ndarray
    # Log-probability (n + 1, n + 1) of a number of ones under a leaf's prior, among each number of records.
    log_ones: np.ndarray


def _inner(model, n: int) -> _Inner:
    nodes = sorted({parent for family in model.families for parent in family[:-1]})
    cells = np.zeros((2 ** len(nodes), len(model.nodes)), np.int64)
    cells[:, nodes] = list(itertools.product((1, 0), repeat=len(nodes)))
    # Stars and bars: the places of bars among n records in a row determine a table.
    positions = n + len(cells) - 1
    bars = np.array(list(itertools.combinations(range(positions), len(cells) - 1)), np.int64)
    tables = np.diff(bars, axis=1, prepend=-1, append=positions) - 1
    counts = tables @ np.rint(model.sufficient_statistics(cells[:, None])).astype(np.int64)
    leaf = ~np.isin(model.owner, nodes)
    pairs = counts.reshape(len(counts), -1, 2)
    ones, sizes = pairs[:, ~leaf, 0], pairs.sum(axis=-1)
    log_prior = -gammaln(tables + 1).sum(axis=1)
    log_prior += betaln(model.alpha + ones, model.beta + sizes[:, ~leaf] - ones).sum(axis=1)
    pairs[:, leaf] = 0
    every = np.arange(n + 1.0)
    return _Inner(
        log_prior, counts, np.flatnonzero(leaf), sizes[:, leaf], _log_beta_binomial(model, every[:, None], every)
    )


def _tilted(n: int, scale: float, release, inner: _Inner) -> tuple[np.ndarray, list]:
    """Return the weights (tables,) and, for each parameter of a leaf, a tuple that describes its number of ones.

    The tuple has the index of the ones in the release, the number of records (tables,) that the parameter governs, and
    the distribution functions of the ones for all such numbers.
    """
    # One increasing array has the distribution functions of all totals, with n + 1 values each. Each function is raised
    # by 1 over the previous function, so that one search serves all totals.
    ones = np.arange(n + 1.0)
    given = np.delete(np.arange(len(release)), np.append(2 * inner.leaves, 2 * inner.leaves + 1))
    given = given[np.isfinite(release[given])]
    log_weight = inner.log_prior - np.abs(inner.counts[:, given] - release[given]).sum(axis=1) / scale
    leaves = []
    for leaf, sizes in zip(inner.leaves, inner.sizes.T, strict=True):
        distance = abs(release[2 * leaf] - ones[:, None]) + abs(release[2 * leaf + 1] - (ones - ones[:, None]))
        log_joint = inner.log_ones - distance / scale  # ones, total
        top = log_joint.max(axis=0)
        cumulative = np.cumsum(np.exp(log_joint - top), axis=0)
        log_weight = log_weight + (top + np.log(cumulative[-1]))[sizes]
        leaves.append((2 * leaf, sizes, ((cumulative / cumulative[-1]).T + ones[:, None]).ravel()))
    return np.exp(log_weight - log_weight.max()), leaves


def _drawn_counts(weight, leaves, counts, draws: int, rng) -> np.ndarray:
    tables = _choice(weight, draws, rng)
    drawn = counts[tables].astype(float)
    for place, sizes, steps in leaves:
        size = sizes[tables]
        at = np.searchsorted(steps, size + rng.random(draws), side="right") - size * math.isqrt(len(steps))
        # Rounding of the sum may lead to the next distribution.
        ones = np.minimum(at, size)
        drawn[:, place], drawn[:, place + 1] = ones, size - ones
    return drawn


def _log_beta_binomial(model, ones, total) -> np.ndarray:
    """Return the log-probability of a number of ones among `total` records under the beta-binomial law."""
    alpha, beta, zeros = model.alpha, model.beta, total - ones
    inside = np.where(zeros >= 0, zeros, 0.0)
    value = gammaln(alpha + ones) - gammaln(ones + 1) + gammaln(beta + inside) - gammaln(inside + 1)
    value = value + gammaln(np.add(total, 1.0)) - gammaln(alpha + beta + total)
    return np.where(zeros >= 0, value, -np.inf)


def _choice(weights, draws: int, rng) -> np.ndarray:
    cumulative = np.cumsum(weights)
    return np.searchsorted(cumulative, rng.random(draws) * cumulative[-1], side="right")
