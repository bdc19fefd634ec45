"""Exact posterior of a naive Bayes model given all its counts with Laplace noise: no Markov chain, no approximation.

Given N, the number of records of class 1, the attributes are independent, and so are their counts K in the two classes:

    p(N | z) ∝ BetaBinomial(N; n) f(z_1 − N) f(z_0 − (n − N)) Π_i L_i1(N) L_i0(n − N),
    L_ic(T) = Σ_{K=0..T} BetaBinomial(K; T) f(z_ic1 − K) f(z_ic0 − (T − K)),

with f the density of the noise. A beta-binomial probability has the form h(T) g(K) g'(T − K), so L is a convolution,
and each release of a batch costs O(n² d). A count truncated to [0, n] (Zhang et al. 2016, algorithm 1) is a censored
observation, P(z ≤ 0 | K) = e^(−K/b)/2 and P(z ≥ n | K) = e^(−(n−K)/b)/2. Up to a constant these are the densities at 0
and n, so truncation loses no information about the counts and does not change the posterior.
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
    """The counts of one attribute in one class, for every size T of the class; leading axes are releases.

    Attributes:
        ones, zeros: factors of p(K, z | T) that depend on K and on T − K, shape (..., n + 1) each.
        sums: convolution of `ones` and `zeros`, Σ_K ones(K) zeros(T − K), shape (..., n + 1).
        mean: E[θ | T, z], shape (..., n + 1).
    """

    ones: np.ndarray
    zeros: np.ndarray
    sums: np.ndarray
    mean: np.ndarray


class Posterior(NamedTuple):
    """p(N | z), and the means of all probabilities given N.

    Attributes:
        weights: p(N = k | z), k = 0..n, shape (..., n + 1).
        class_mean: E[θ_y | N = k], shape (n + 1,).
        means: E[θ_ic | N = k, z], shape (..., d, 2, n + 1); class 0 before class 1.
        leaves: the counts of all attributes, arrays of shape (..., d, 2, n + 1).
        log_root: ln p(N = k | the class's own counts) up to a constant, shape (..., n + 1).
        log_evidence: ln p(an attribute's counts | N = k) up to a constant, shape (..., d, n + 1).
    """

    weights: np.ndarray
    class_mean: np.ndarray
    means: np.ndarray
    leaves: Leaf
    log_root: np.ndarray
    log_evidence: np.ndarray


def posterior(model: BayesianNetwork, release, n: int, scale) -> Posterior:
    """Return the posterior given releases of all counts, truncated to [0, n] or not.

    Args:
        model: the network `graphs.naive_bayes(d)`.
        release: noisy counts in the order of the model's statistics, shape (..., 2 + 4d).
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
    # h(T); a sum may underflow where a class of that size is all but impossible.
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
    """Return two laws of N, each exact given only a part of the noisy counts.

    The first law is given the class's counts alone, shape (..., n + 1). The second law is given the class's counts and
    the counts of one attribute, shape (..., d, n + 1).
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
    """Return Σ_K a_K b_{T−K} and Σ_K w_K a_K b_{T−K}, T = 0..n, for rows a, b, w. Direct sums keep tails precise."""
    shape = ones.shape
    sums, moments = np.empty((2, ones.size // shape[-1], shape[-1]))
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
    """Return ln p(x, y | z) for new records' attributes x and each class y.

    Given N, all probabilities are independent and a record uses each at most once, so the predictive probability is a
    mixture over N of products of means.

    Args:
        law: the posterior, leading axes (..., trials).
        records: attributes, shape (trials, tests, d).

    Returns:
        Shape (..., trials, tests, 2), class 0 first.
    """
    records = np.asarray(records, float)
    with np.errstate(divide="ignore"):
        log_weights = np.log(law.weights)
    log_one, log_zero = np.log(law.means), np.log1p(-law.means)
    slopes = log_one - log_zero
    classes = np.stack([np.log1p(-law.class_mean), np.log(law.class_mean)])
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
    """Return E[g(K, T − K) | z], where K counts the ones among the T records that a probability governs.

    Args:
        law: the posterior, leading axes (..., trials).
        parameter: (attribute from 0, class), or None for θ_y, for which K is N and T is n.
        shared: called with T; returns g at K = 0..T for all trials, shape (T + 1, features).
        by_trial: called with T; returns g at K = 0..T for each trial, shape (trials, T + 1).

    Returns:
        The expectations of `shared`, shape (..., trials, features), and of `by_trial`, shape (..., trials).
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
