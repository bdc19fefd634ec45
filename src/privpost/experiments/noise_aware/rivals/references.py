"""Exact posteriors given a release, by sums and integrals: no chain, and no normal approximation."""

import itertools
from functools import cache

import numpy as np
from scipy.special import gammaln

from privpost.samplers.noise_aware_quadrature import Posterior, parameter_edges, redacted_likelihood

# Cells of θ, even in its coordinate over the prior's mass.
CELLS = 600
# Largest n of a network whose counts are summed over.
LARGEST = {"naive_bayes": 200, "collider": 20}
# Elements of one work array.
_ELEMENTS = 4_000_000


def redacted(mechanism, releases) -> Posterior:
    """Return the posteriors of θ given redacted sums (k,) with Laplace noise, in cells of θ.

    The law of the sum of n records is exact: of records on a lattice by the n-th power of their law's discrete Fourier
    transform, of others by Fourier inversion.
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
    """Return p(y | θ), shape (k, θ): the law of the sum of whole numbers, and Laplace noise on it."""
    values = np.arange(np.ceil(interval[0]), np.floor(interval[1]) + 1)
    largest = int(n * values[-1]) + 1
    size = 2 ** int(np.ceil(np.log2(largest + 1)))
    noise = np.exp(-np.abs(np.asarray(releases)[:, None] - np.arange(largest)) / scale)
    found = np.empty((len(noise), len(theta)))
    step = max(1, _ELEMENTS // size)
    for start in range(0, len(theta), step):
        at = theta[start : start + step, None]
        law = np.zeros((len(at), size))
        law[:, values.astype(int)] = family.cdf(values, at) - family.cdf(values - 1, at)
        # Redacted records add 0.
        law[:, 0] += 1 - law.sum(axis=1)
        sums = np.maximum(np.fft.irfft(np.fft.rfft(law) ** n, size)[:, :largest], 0.0)
        found[:, start : start + step] = noise @ sums.T
    return found


def naive_bayes(model, n: int, scale: float, release, draws: int, rng) -> np.ndarray:
    """Return draws (draws, 2m) of the counts of naive Bayes given noisy ones: the classes' sizes, then each attribute.

    Given the size N of a class the ones of its attributes are independent, each with a beta-binomial law that is tilted
    by the noise; the weight of N is the product of their sums.
    """
    ones = np.arange(n + 1.0)
    log_prior = _log_beta_binomial(model, ones[:, None], ones)  # ones, total
    log_weight = _log_beta_binomial(model, ones, n) - (abs(release[0] - ones) + abs(release[1] - (n - ones))) / scale
    families = []
    for place in range(2, len(release), 2):
        zeros = ones - ones[:, None]
        with np.errstate(invalid="ignore"):
            log_joint = log_prior - (abs(release[place] - ones[:, None]) + abs(release[place + 1] - zeros)) / scale
        log_joint[zeros < 0] = -np.inf
        top = log_joint.max(axis=0)
        total = np.log(np.exp(log_joint - top).sum(axis=0)) + top
        # Parent configurations in order: of class 0, then of class 1.
        given_one = (place // 2) % 2 == 0
        log_weight = log_weight + (total if given_one else total[::-1])
        families.append((given_one, log_joint - total))
    size = _choice(np.exp(log_weight - log_weight.max()), draws, rng)
    columns = [size, n - size]
    for given_one, log_law in families:
        cumulative = np.cumsum(np.exp(log_law), axis=0)
        own = size if given_one else n - size
        drawn = (cumulative[:, own] < rng.random(draws) * cumulative[-1, own]).sum(axis=0)
        columns += [drawn, own - drawn]
    return np.stack(columns, axis=1).astype(float)


def _log_beta_binomial(model, ones, total) -> np.ndarray:
    """Return ln of the beta-binomial law, −inf where there would be fewer than no zeros."""
    alpha, beta, zeros = model.alpha, model.beta, total - ones
    inside = np.where(zeros >= 0, zeros, 0.0)
    value = gammaln(alpha + ones) - gammaln(ones + 1) + gammaln(beta + inside) - gammaln(inside + 1)
    value = value + gammaln(np.add(total, 1.0)) - gammaln(alpha + beta + total)
    return np.where(zeros >= 0, value, -np.inf)


def enumerated(model, n: int, scale: float, release, draws: int, rng) -> np.ndarray:
    """Return draws (draws, 2m) of a small network's counts given noisy ones, over all data sets of n records."""
    log_prior, counts = _data_sets(model, n)
    weight = log_prior - np.abs(counts - release).sum(axis=1) / scale
    return counts[_choice(np.exp(weight - weight.max()), draws, rng)].astype(float)


@cache
def _data_sets(model, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Return ln p of every table of n records over all cells, up to a constant, and its counts (tables, 2m)."""
    records = model.records
    cells = len(records)
    bars = np.array(list(itertools.combinations(range(n + cells - 1), cells - 1)), np.int32).reshape(-1, cells - 1)
    ends = np.concatenate([np.full((len(bars), 1), -1), bars, np.full((len(bars), 1), n + cells - 1)], axis=1)
    tables = np.diff(ends, axis=1) - 1
    counts = tables @ np.rint(model.sufficient_statistics(records[:, None])).astype(np.int64)
    prior = np.tile([model.alpha, model.beta], counts.shape[1] // 2)
    log_prior = gammaln(prior + counts).sum(axis=1) - gammaln(tables + 1).sum(axis=1)
    log_prior -= gammaln(model.alpha + model.beta + counts[:, ::2] + counts[:, 1::2]).sum(axis=1)
    return log_prior, counts


def _choice(weights, draws: int, rng) -> np.ndarray:
    cumulative = np.cumsum(weights)
    return np.searchsorted(cumulative, rng.random(draws) * cumulative[-1], side="right")
