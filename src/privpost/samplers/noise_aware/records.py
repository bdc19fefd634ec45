"""Posterior of a Bayesian network given noisy counts, by a Markov chain on the n records themselves.

Let s be the counts of the latent records x, z the noisy counts and f the density of the noise. With all probabilities θ
integrated out, the posterior is

    p(x | z) ∝ Π_ij B(α + s_ij1, β + s_ij0) · Π_k f(z_k − s_k).

The chain converges to this posterior. A *flip* changes one bit of one record. A *shift* changes one θ_ij and flips bits
that θ_ij governs: a bit is 1 if its fixed uniform u is below θ_ij, so bits with u between the old and the new θ_ij
flip. Then the probabilities of these bits' children change, and so on down the graph. Flips mix well if the release is
informative, and shifts mix well if the release is uninformative. A sweep costs O(n) per node and edge.
"""

import math
from typing import NamedTuple

import numpy as np

from privpost.models.networks import graphs
from privpost.models.networks.bayesian_network import BayesianNetwork
from privpost.samplers.compiled import inner, outer

# Noise scale below which shifts are tried less often, because most are rejected.
RARE = 8.0


class State(NamedTuple):
    """Bits (chains, n, |I|) of the latent records, and counts (chains, m, 2): for each θ, how many bits are 1 and 0."""

    records: np.ndarray
    counts: np.ndarray


class _Graph(NamedTuple):
    """A network as arrays.

    `offsets` (|I| + 1,) holds the index of each node's first θ. `weights` holds what the bit of each parent adds to the
    index of a node's configuration, and `child_weights` holds what a node's bit adds for each child. `after` lists the
    descendants of a node, parents before children. The part of node i in a list begins at `…_first[i]`.
    """

    offsets: np.ndarray
    parent_first: np.ndarray
    parents: np.ndarray
    weights: np.ndarray
    child_first: np.ndarray
    children: np.ndarray
    child_weights: np.ndarray
    after_first: np.ndarray
    after: np.ndarray

    @classmethod
    def of(cls, model: BayesianNetwork) -> "_Graph":
        above = [[(p, 2**k) for k, p in enumerate(reversed(family[:-1]))] for family in model.families]
        below = [[(c, w) for c, edges in enumerate(above) for p, w in edges if p == i] for i in range(len(above))]
        order = [model.nodes.index(node) for node in graphs.topological_order(model.parents)]
        after = []
        for i in range(len(order)):
            reached = {i}
            for node in order:
                reached |= {node} if reached & {p for p, _ in above[node]} else set()
            after.append([node for node in order if node in reached - {i}])
        firsts = [np.cumsum([0, *map(len, lists)]).astype(np.int64) for lists in (above, below, after)]
        flat = [
            np.array([pair for each in lists for pair in each], np.int64).reshape(-1, 2) for lists in (above, below)
        ]
        (parents, weights), (children, child_weights) = (each.T.copy() for each in flat)
        after = np.array([node for each in after for node in each], np.int64)
        offsets = model.offsets.astype(np.int64)
        return cls(offsets, firsts[0], parents, weights, firsts[1], children, child_weights, firsts[2], after)


class Records:
    """Chains (`chain.Sampler`) on the latent records, one chain for each release.

    A step tries every flip and every shift once, and reports no cost. A chain with a noise scale below `RARE` tries
    shifts only with probability scale/`RARE`.

    Args:
        release: noisy counts, truncated to [0, n] or not (see `naive_bayes.exact`), shape (chains, 2m).
        n: public number of records.
        scale: scale of the Laplace noise, shape (chains,) or a scalar.
    """

    def __init__(self, model: BayesianNetwork, release, n: int, scale):
        self._model, self._n, self._graph = model, n, _Graph.of(model)
        release = np.asarray(release, float)
        self._release = np.ascontiguousarray(release.reshape(len(release), -1, 2))
        self._scale = np.broadcast_to(np.asarray(scale, float), len(release)).copy()
        self._prior = np.array([model.alpha, model.beta], float)

    def init(self, rng: np.random.Generator) -> State:
        """Return records drawn from the prior."""
        model = self._model
        data = model.sample_data(model.sample(model.prior, rng, len(self._release)), self._n, rng)
        counts = np.rint(model.sufficient_statistics(data)).astype(np.int64)
        return State(data.astype(np.int8), counts.reshape(self._release.shape))

    def step(self, state: State, rng: np.random.Generator) -> tuple[State, None]:
        """Try every flip in all chains, then every shift in the chains that take part in `shifts`."""
        flips(*state, self._release, self._scale, self._prior, self._graph, rng)
        shifts(*state, self._release, self._scale, self._prior, self._graph, rng, RARE)
        return state, None


@inner
def _configurations(here, code, graph):
    """Write to `code` (n, |I|) the index of the θ that governs each node of each record."""
    for i in range(here.shape[1]):
        code[:, i] = graph.offsets[i]
        for k in range(graph.parent_first[i], graph.parent_first[i + 1]):
            parent, weight = graph.parents[k], graph.weights[k]
            for r in range(len(here)):
                code[r, i] += weight * here[r, parent]


@outer(seconds=2)
def flips(records, counts, release, scale, prior, graph, rng):
    """Take one Metropolis step for each bit of each record, in place."""
    total, (n, size) = prior[0] + prior[1], records.shape[1:]
    codes = np.empty((n, size), np.int64)
    for c in range(len(records)):
        count, noisy, precision = counts[c], release[c], 1 / scale[c]
        _configurations(records[c], codes, graph)
        for r in range(n):
            here, code = records[c, r], codes[r]
            for i in range(size):
                one, j = np.int64(here[i]), code[i]
                # Column 0 holds ones, column 1 zeros.
                old, new, sign = 1 - one, one, 1 - 2 * one
                ratio = (prior[new] + count[j, new]) / (prior[old] + count[j, old] - 1)
                cost = _moved(noisy, count, j, new, 1) + _moved(noisy, count, j, old, -1)
                first, last = graph.child_first[i], graph.child_first[i + 1]
                for k in range(first, last):
                    child = graph.children[k]
                    a, v = code[child], 1 - np.int64(here[child])
                    b = a + sign * graph.child_weights[k]
                    above = (prior[v] + count[b, v]) * (total + count[a, 0] + count[a, 1] - 1)
                    ratio *= above / ((prior[v] + count[a, v] - 1) * (total + count[b, 0] + count[b, 1]))
                    cost += _moved(noisy, count, b, v, 1) + _moved(noisy, count, a, v, -1)
                if rng.random() < ratio * math.exp(-cost * precision):
                    count[j, old] -= 1
                    count[j, new] += 1
                    for k in range(first, last):
                        child = graph.children[k]
                        v = 1 - np.int64(here[child])
                        count[code[child], v] -= 1
                        code[child] += sign * graph.child_weights[k]
                        count[code[child], v] += 1
                    here[i] = 1 - one


@inner
def _moved(noisy, count, j, v, by):
    """Return the growth of a count's distance from the noisy count if the count changes by `by` = ±1."""
    distance = noisy[j, v] - count[j, v]
    return abs(distance - by) - abs(distance)


@inner
def _proposed(theta, alpha, beta, rng):
    """Return a proposal of θ, from the prior or by a local step, and the log-ratio of prior to proposal."""
    if rng.random() < 0.5:
        return rng.beta(alpha, beta), 0.0
    width = 0.5 ** rng.integers(1, 6)
    new = abs(theta + width * (2 * rng.random() - 1))
    new = 2 - new if new > 1 else new
    log_ratio = (alpha - 1) * math.log(new / theta) if alpha != 1 else 0.0
    return new, log_ratio + ((beta - 1) * (math.log1p(-new) - math.log1p(-theta)) if beta != 1 else 0.0)


@outer(seconds=11)
def shifts(records, counts, release, scale, prior, graph, rng, rare):
    """Take one Metropolis step for each θ together with the bits that depend on θ, in place.

    A chain takes part with probability min(1, scale/rare).
    """
    n, size = records.shape[1:]
    theta = np.empty(counts.shape[1])
    # The configuration of each node of each record, and what a shift adds to this configuration.
    code, added = np.empty((n, size), np.int64), np.zeros(size, np.int64)
    order, first = np.empty(n, np.int64), np.empty(np.diff(graph.offsets).max() + 1, np.int64)
    moved, bits, codes = np.empty(n, np.int64), np.empty((n, size), records.dtype), np.empty((n, size), np.int64)
    new = np.empty_like(counts[0])
    for c in range(len(records)):
        if rng.random() * rare >= scale[c]:
            continue
        here, count, noisy = records[c], counts[c], release[c]
        for j in range(len(theta)):
            theta[j] = rng.beta(prior[0] + count[j, 0], prior[1] + count[j, 1])
        _configurations(here, code, graph)
        _copy(count, new)
        for i in range(size):
            # A shift of a node does not change that node's configurations.
            _sort(code, i, graph, order, first)
            for j in range(graph.offsets[i], graph.offsets[i + 1]):
                proposal, log_ratio = _proposed(theta[j], prior[0], prior[1], rng)
                old, theta[j] = theta[j], proposal
                # Only bits of one value may flip.
                bit, chance = _flipping(old, proposal)
                n_moved, cost = 0, 0.0
                for t in range(first[j - graph.offsets[i]], first[j - graph.offsets[i] + 1]):
                    r = order[t]
                    if here[r, i] == bit and rng.random() < chance:
                        moved[n_moved] = r
                        _copy_row(here, r, bits, n_moved)
                        _copy_row(code, r, codes, n_moved)
                        cost += _cascade(bits[n_moved], codes[n_moved], i, theta, noisy, new, added, graph, rng)
                        n_moved += 1
                if -rng.standard_exponential() < log_ratio - cost / scale[c]:
                    _copy(new, count)
                    for t in range(n_moved):
                        _copy_row(bits, t, here, moved[t])
                        _copy_row(codes, t, code, moved[t])
                else:
                    theta[j] = old
                    _copy(count, new)


@inner
def _copy_row(source, i, target, j):
    for k in range(source.shape[1]):
        target[j, k] = source[i, k]


@inner
def _copy(source, target):
    for i in range(len(source)):
        _copy_row(source, i, target, i)


@inner
def _sort(code, node, graph, order, first):
    """Write to `order` the records sorted by a node's configuration, and to `first` where each configuration begins."""
    size, least = graph.offsets[node + 1] - graph.offsets[node], graph.offsets[node]
    first[: size + 1] = 0
    for r in range(len(code)):
        first[code[r, node] - least + 1] += 1
    for k in range(size):
        first[k + 1] += first[k]
    place = first[:size].copy()
    for r in range(len(code)):
        k = code[r, node] - least
        order[place[k]] = r
        place[k] += 1


@inner
def _flipping(old, new):
    """Return the one value from which a bit 1[u < θ] can flip when θ changes, and the probability of the flip."""
    # Given the bit, u is uniform.
    return (1, (old - new) / old) if new < old else (0, (new - old) / (1 - old))


@inner
def _cascade(bits, code, node, theta, noisy, count, added, graph, rng):
    """Flip a record's bit, then descendants at random, and return how much distances from noisy counts grow."""
    # `added` is zero before and after.
    cost = _flip(bits, code[node], node, noisy, count, added, graph)
    for k in range(graph.after_first[node], graph.after_first[node + 1]):
        child = graph.after[k]
        if added[child]:
            a, v = code[child], 1 - np.int64(bits[child])
            code[child] = a + added[child]
            added[child] = 0
            # The record moves from the old configuration to the new one. Then the bit may flip in the new one.
            cost += _moved(noisy, count, a, v, -1)
            count[a, v] -= 1
            cost += _moved(noisy, count, code[child], v, 1)
            count[code[child], v] += 1
            bit, chance = _flipping(theta[a], theta[code[child]])
            if bit == 1 - v and rng.random() < chance:
                cost += _flip(bits, code[child], child, noisy, count, added, graph)
    return cost


@inner
def _flip(bits, j, node, noisy, count, added, graph):
    """Flip a bit that θ_j governs, and return how much distances from noisy counts grow.

    The changes of the children's configurations are added to `added`.
    """
    one = np.int64(bits[node])
    cost = _moved(noisy, count, j, 1 - one, -1) + _moved(noisy, count, j, one, 1)
    count[j, 1 - one] -= 1
    count[j, one] += 1
    bits[node] = 1 - one
    for k in range(graph.child_first[node], graph.child_first[node + 1]):
        added[graph.children[k]] += (1 - 2 * one) * graph.child_weights[k]
    return cost
