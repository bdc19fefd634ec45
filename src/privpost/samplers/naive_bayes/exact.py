"""Exact posterior of a naive Bayes model given all its counts with Laplace noise.

Given the number N of records of class 1, the counts of all attributes in both classes are independent. Let K be the
number of ones among the T records of a class, and f the density of the noise. Then

    p(N | z) ∝ BetaBinomial(N; n) f(z_1 − N) f(z_0 − (n − N)) Π_i L_i1(N) L_i0(n − N),
    L_ic(T) = Σ_{K=0..T} BetaBinomial(K; T) f(z_ic1 − K) f(z_ic0 − (T − K)),

with noisy class counts z_1 and z_0, and noisy numbers z_ic1 of ones and z_ic0 of zeros of attribute i in class c. The
counts may be truncated to [0, n] (Zhang et al. 2016, algorithm 1). The probability of a truncated count is proportional
to the density f at the bound, so truncation leaves the posterior unchanged.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.special import betaln, gammaln

from privpost.models.networks import graphs
from privpost.models.networks.bayesian_network import BayesianNetwork

# Tells the report that these are sums, not a Markov chain.
EXACT = True
# Rows of one convolution, which fit into a processor's cache.
_ROWS = 256


class Leaf(NamedTuple):
    """Likelihood factors of one attribute in one class, for K ones among T = 0..n records.

    Attributes:
        ones, zeros: factors of p(K, z | T). `ones` depends on K, `zeros` on T − K; shape (..., n + 1) each.
        sums: convolution Σ_K ones(K) zeros(T − K), shape (..., n + 1).
        mean: posterior mean E[θ | T, z] of the probability θ of a one, shape (..., n + 1).
    """

    ones: np.ndarray
    zeros: np.ndarray
    sums: np.ndarray
    mean: np.ndarray


class Posterior(NamedTuple):
    """The posterior of the number N of records of class 1, and posterior means of all probabilities given N.

    Attributes:
        weights: p(N = k | z), k = 0..n, shape (..., n + 1).
        class_mean: E[θ_y | N = k] of the probability θ_y of class 1, shape (n + 1,).
        means: E[θ_ic | N = k, z] of the probability θ_ic that attribute i is 1 in class c, shape (..., d, 2, n + 1).
        leaves: the arrays of a `Leaf` for all attributes, shape (..., d, 2, n + 1).
        log_root: ln p(N = k | the noisy class counts) up to a constant, shape (..., n + 1).
        log_evidence: ln p(the noisy counts of an attribute | N = k) up to a constant, shape (..., d, n + 1).
    """

    weights: np.ndarray
    class_mean: np.ndarray
    means: np.ndarray
    leaves: Leaf
    log_root: np.ndarray
    log_evidence: np.ndarray


def posterior(model: BayesianNetwork, release, n: int, scale) -> Posterior:
    """Return the posterior given noisy counts.

    Args:
        model: the network `graphs.naive_bayes(d)`.
        release: noisy counts in the order of the model's statistics, truncated to [0, n] or not, shape (..., 2 + 4d).
        n: public number of records.
        scale: scale of the Laplace noise, shape (...) or a scalar.

    Raises:
        ValueError: another network, or a release of another length.
    """
    attributes = len(model.nodes) - 1
    if any(parents != model.nodes[:1] for _, parents in model.parents[1:]) or model.parents[0][1]:
        raise ValueError(f"model is {graphs.formula(model.parents)}; it must be a class and its children")
    pairs = model.pairs(release)
    if pairs.shape[-2] != 1 + 2 * attributes:
        raise ValueError(f"release has {2 * pairs.shape[-2]} counts; the network has {2 + 4 * attributes}")
    scale = np.broadcast_to(np.asarray(scale, float), pairs.shape[:-2])
    counts = np.arange(n + 1.0)
    root, children = pairs[..., 0, :], pairs[..., 1:, :].reshape(*scale.shape, attributes, 2, 2)
    leaves = _leaves(model, children, n, scale[..., None, None])
    # BetaBinomial(K; T) is a product h(T) g(K) g'(T − K), so L is h(T) times a convolution. A sum underflows where a
    # class of this size is all but impossible.
    with np.errstate(divide="ignore"):
        log_class = np.log(leaves.sums) + gammaln(counts + 1) - gammaln(model.alpha + model.beta + counts)
    log_evidence = log_class[..., 1, :] + log_class[..., 0, ::-1]
    distance = np.abs(root[..., :1] - counts) + np.abs(root[..., 1:] - (n - counts))
    log_root = _log_beta_binomial(model, counts, n) - distance / scale[..., None]
    means = leaves.mean.copy()
    means[..., 0, :] = leaves.mean[..., 0, ::-1]
    class_mean = (model.alpha + counts) / (model.alpha + model.beta + n)
    weights = _normalised(log_root + log_evidence.sum(axis=-2))
    return Posterior(weights, class_mean, means, leaves, log_root, log_evidence)


def by_family(law: Posterior) -> tuple[np.ndarray, np.ndarray]:
    """Return laws of N: given the class counts alone, and given these and the counts of one attribute.

    The first law has the shape (..., n + 1). The other laws, one for each attribute, have the shape (..., d, n + 1).
    """
    return _normalised(law.log_root), _normalised(law.log_root[..., None, :] + law.log_evidence)


def _normalised(log_weights):
    weights = np.exp(log_weights - log_weights.max(axis=-1, keepdims=True))
    return weights / weights.sum(axis=-1, keepdims=True)


def _leaves(model, pairs, n, scale) -> Leaf:
    counts = np.arange(n + 1.0)
    factors = []
    for prior, noisy in ((model.alpha, pairs[..., 0]), (model.beta, pairs[..., 1])):
        log_factor = (
            gammaln(prior + counts) - gammaln(counts + 1) - np.abs(noisy[..., None] - counts) / scale[..., None]
        )
        factors.append(np.exp(log_factor - log_factor.max(axis=-1, keepdims=True)))
    ones, zeros = factors
    sums, moments = _convolutions(ones, zeros, model.alpha + counts)
    prior = model.alpha + model.beta
    # Where a sum underflows the weight is 0, so the mean does not matter.
    mean = np.full(sums.shape, model.alpha / prior)
    np.divide(moments, sums * (prior + counts), out=mean, where=sums > 0)
    return Leaf(ones, zeros, sums, mean)


def _convolutions(ones, zeros, weights) -> tuple[np.ndarray, np.ndarray]:
    """Return, row by row, the convolutions of `ones` and of `weights` · `ones`, both with `zeros`."""
    shape = ones.shape
    sums, moments = np.empty((2, ones.size // shape[-1], shape[-1]))
    # Direct sums keep tails precise.
    ones, zeros = ones.reshape(sums.shape), zeros.reshape(sums.shape)
    for start in range(0, len(sums), _ROWS):
        rows = slice(start, start + _ROWS)
        plain, reverse = ones[rows], np.ascontiguousarray(zeros[rows, ::-1])
        weighted = plain * weights
        for total in range(shape[-1]):
            rest = reverse[:, shape[-1] - 1 - total :]
            sums[rows, total] = np.einsum("ij,ij->i", plain[:, : total + 1], rest)
            moments[rows, total] = np.einsum("ij,ij->i", weighted[:, : total + 1], rest)
    return sums.reshape(shape), moments.reshape(shape)


def _log_beta_binomial(model, counts, n):
    prior = betaln(model.alpha + counts, model.beta + n - counts)
    return prior - betaln(counts + 1, n - counts + 1)


def log_predictive(law: Posterior, records) -> np.ndarray:
    """Return ln p(x, y | z), shape (..., trials, tests, 2), for the attributes x of new records and each class y.

    Args:
        law: the posterior, leading axes (..., trials).
        records: attributes, shape (trials, tests, d).
    """
    records = np.asarray(records, float)
    with np.errstate(divide="ignore"):
        log_weights = np.log(law.weights)
    log_one, log_zero = np.log(law.means), np.log1p(-law.means)
    slopes = log_one - log_zero
    classes = np.stack([np.log1p(-law.class_mean), np.log(law.class_mean)])
    # Given N all probabilities are independent, and a record uses each probability at most once. So p(x, y | z) is a
    # mixture over N of products of means.
    offsets = log_weights[..., None, :] + classes + log_zero.sum(axis=-3)
    result = np.empty((*law.weights.shape[:-1], records.shape[1], 2))
    # One release at a time stays in a processor's cache.
    for place in np.ndindex(law.weights.shape[:-1]):
        for value in (0, 1):
            terms = records[place[-1]] @ slopes[place][:, value]
            terms += offsets[place][value]
            top = terms.max(axis=-1)
            terms -= top[:, None]
            result[place][:, value] = top + np.log(np.exp(terms, out=terms).sum(axis=-1))
    return result


def expectations(
    law: Posterior, parameter: tuple[int, int] | None, shared: Callable, by_trial: Callable
) -> tuple[np.ndarray, np.ndarray]:
    """Return posterior expectations of functions g(K, T − K) of two counts that belong to one probability of the model.

    T is the number of records that the probability governs, and K is the number of ones among these records. The
    results are the expectations of `shared`, shape (..., trials, features), and of `by_trial`, shape (..., trials).

    Args:
        law: the posterior, leading axes (..., trials).
        parameter: (attribute from 0, class), or None for the probability θ_y of class 1, for which K is N and T is n.
        shared: called with T; returns g at K = 0..T for all trials, shape (T + 1, features).
        by_trial: called with T; returns g at K = 0..T for each trial, shape (trials, T + 1).
    """
    n = law.weights.shape[-1] - 1
    if parameter is None:
        return law.weights @ shared(n), np.einsum("...k,...k->...", law.weights, by_trial(n))
    attribute, value = parameter
    ones, zeros, sums = (part[..., attribute, value, :] for part in law.leaves[:3])
    sizes = law.weights if value else law.weights[..., ::-1]
    share = np.divide(sizes, sums, out=np.zeros(sizes.shape), where=sums > 0)
    reverse = np.ascontiguousarray(zeros[..., ::-1])
    features, scalars = 0.0, 0.0
    for total in range(n + 1):
        joint = ones[..., : total + 1] * reverse[..., n - total :]
        joint *= share[..., total, None]
        features = features + joint @ shared(total)
        scalars = scalars + np.einsum("...k,...k->...", joint, by_trial(total))
    return features, scalars
