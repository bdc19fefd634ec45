"""Posterior of a Bayesian network given noisy counts, by a Markov chain on the table of all records.

The latent state is the contingency table h of the n records over the 2^|I| cells; all probabilities θ are integrated
out. With A the counts of one record of each cell, s = Ah, and f the density of the noise,

    p(h | z) ∝ n!/Π_x h_x! · Π_ij B(α + s_ij1, β + s_ij0) · Π_k f(z_k − s_k).

Families overlap in their latent counts as they do in the data: nothing is approximated, and the chain's law is the
exact posterior in the limit. Two kinds of Metropolis steps take turns. A *move* carries t records from a cell to
another one. A *shift* draws one θ_ij from its conditional and changes it together with the records that it governs:
with x = 1[u < θ] and the u of all records fixed, those with u between the old and the new θ flip. Moves mix where the
release says much, shifts where it says little. The table serves small networks. Given the counts the probabilities are
independent beta variables, so that averages over tables need no draws of θ.
"""

import itertools
from typing import NamedTuple

import numpy as np
from scipy.special import gammaln, xlog1py, xlogy

from privpost.models.bayesian_network import LARGEST_ALPHABET, BayesianNetwork


def cells(model: BayesianNetwork) -> tuple[np.ndarray, np.ndarray]:
    """All records (2^|I|, |I|) and their counts (2^|I|, 2m).

    Raises:
        ValueError: a network of more than 8 nodes.
    """
    if len(model.nodes) > LARGEST_ALPHABET:
        raise ValueError(f"the network has {len(model.nodes)} nodes; its table needs at most {LARGEST_ALPHABET}")
    records = np.array(list(itertools.product((0, 1), repeat=len(model.nodes))))
    return records, model.sufficient_statistics(records[:, None, :])


class _Change(NamedTuple):
    """What a step changes: counts, by how much per record that moves between (columns of) cells, and totals.

    `kept` are the places in `index` of the counts, and `configurations` the totals, that the prior of θ weighs.
    """

    index: np.ndarray
    counts: np.ndarray
    kept: np.ndarray
    configurations: np.ndarray
    totals: np.ndarray

    @classmethod
    def of(cls, change, own: int | None = None) -> "_Change":
        """Of the changes (2m, pairs) of all counts; θ number `own` is not integrated out in the step."""
        totals = change.reshape(-1, 2, change.shape[1]).sum(axis=1)
        index, configurations = np.flatnonzero(change.any(axis=1)), np.flatnonzero(totals.any(axis=1))
        configurations = configurations[configurations != own]
        kept = np.flatnonzero(index // 2 != own)
        return cls(index, change[index], kept, configurations, totals[configurations])


class State(NamedTuple):
    """Records per cell `table` (2^|I|, chains), and the counts `counts` (2m, chains) of them."""

    table: np.ndarray
    counts: np.ndarray


class Tables:
    """Chains (`chain.Sampler`) on the contingency table, one per release; all of them take the same steps at once.

    A step of the sampler takes every move and shift once, in place; nothing is known of its cost.

    Args:
        model: the network.
        release: noisy counts, truncated to [0, n] or not (see `naive_bayes_exact`), shape (chains, 2m).
        n: public number of records.
        scale: scale of the Laplace noise, shape (chains,) or a scalar.

    Raises:
        ValueError: a network of more than 8 nodes.
    """

    def __init__(self, model: BayesianNetwork, release, n: int, scale):
        records, cell_counts = cells(model)
        self._cell_counts = cell_counts = np.rint(cell_counts).astype(np.int64)
        self._release = np.ascontiguousarray(np.asarray(release, float).T)
        self._scale = np.broadcast_to(np.asarray(scale, float), self._release.shape[1:])
        self._model, self._n = model, n
        size = np.arange(n + 1.0)
        self._log_factorial = gammaln(size + 1)
        # Of ones and of zeros, one after the other: a flat look-up is faster.
        self._log_gamma = np.concatenate([gammaln(prior + size) for prior in (model.alpha, model.beta)])
        self._place = np.tile([0, n + 1], len(self._release) // 2)[:, None]
        self._log_gamma_total = gammaln(model.alpha + model.beta + size)
        self._widths = 2 ** np.arange(max(1, int(np.log2(max(n // 4, 2)))))
        self._steps = [
            (self._move, (a, b, _Change.of((cell_counts[b] - cell_counts[a])[:, None])))
            for a, b in itertools.combinations(range(len(records)), 2)
            if (a ^ b).bit_count() == 1
        ]
        index = model.configurations(records)
        for parameter, node in enumerate(model.owner):
            governed = index[:, node] == parameter
            ones, zeros = (np.flatnonzero(governed & (records[:, node] == value)) for value in (1, 0))
            change = _Change.of((cell_counts[ones] - cell_counts[zeros]).T, own=parameter)
            self._steps.append((self._shift, (parameter, ones, zeros, change)))

    def init(self, rng: np.random.Generator) -> State:
        """Return data from the prior."""
        model, size, chains = self._model, len(self._cell_counts), self._release.shape[1]
        data = model.sample_data(model.sample(model.prior, rng, chains), self._n, rng)
        code = data @ (2 ** np.arange(len(model.nodes))[::-1])
        flat = (code + size * np.arange(chains)[:, None]).ravel()
        table = np.bincount(flat, minlength=size * chains).reshape(chains, -1).T.copy()
        return State(table, self._cell_counts.T @ table)

    def step(self, state: State, rng: np.random.Generator) -> tuple[State, None]:
        """Take every step once, in random order: moves between cells that differ in one node, and shifts."""
        for place in rng.permutation(len(self._steps)):
            step, arguments = self._steps[place]
            step(state, rng, *arguments)
        return state, None

    def _log_noise_ratio(self, index, old, new):
        noisy = self._release[index]
        return (np.abs(noisy - old) - np.abs(noisy - new)).sum(axis=0) / self._scale

    def _log_prior_ratio(self, state, change, old, new, moved):
        kept, place = change.kept, self._place[change.index[change.kept]]
        ratio = (self._log_gamma.take(new[kept] + place) - self._log_gamma.take(old[kept] + place)).sum(axis=0)
        if len(change.configurations):
            size = state.counts[2 * change.configurations] + state.counts[2 * change.configurations + 1]
            later = size + change.totals @ moved
            ratio -= (self._log_gamma_total.take(later) - self._log_gamma_total.take(size)).sum(axis=0)
        return ratio

    def _move(self, state, rng, a, b, change) -> None:
        width = int(rng.choice(self._widths))
        chains = state.table.shape[1]
        moved = rng.integers(-width, width, chains)
        moved += moved >= 0
        old_a, old_b = state.table[a], state.table[b]
        # More records than a cell has cannot leave it; 0 keeps the look-ups in range.
        valid = (moved <= old_a) & (-moved <= old_b)
        moved = np.where(valid, moved, 0)
        new_a, new_b = old_a - moved, old_b + moved
        old = state.counts[change.index]
        new = old + change.counts * moved
        log_ratio = self._log_factorial.take(old_a) + self._log_factorial.take(old_b)
        log_ratio -= self._log_factorial.take(new_a) + self._log_factorial.take(new_b)
        log_ratio += self._log_noise_ratio(change.index, old, new)
        log_ratio += self._log_prior_ratio(state, change, old, new, moved[None])
        accept = valid & (log_ratio > -rng.standard_exponential(chains))
        state.table[a] = np.where(accept, new_a, old_a)
        state.table[b] = np.where(accept, new_b, old_b)
        state.counts[change.index] = np.where(accept, new, old)

    def _shift(self, state, rng, parameter, ones, zeros, change) -> None:
        alpha, beta = self._model.alpha, self._model.beta
        theta = rng.beta(alpha + state.counts[2 * parameter], beta + state.counts[2 * parameter + 1])
        proposal = rng.beta(alpha, beta, theta.shape)
        log_ratio = 0.0
        if rng.random() < 0.5:
            # A local step, reflected at 0 and 1, in place of one from the prior.
            width = 0.5 ** rng.integers(1, 5)
            proposal = np.abs(theta + width * rng.uniform(-1, 1, theta.shape))
            proposal = np.where(proposal > 1, 2 - proposal, proposal)
            log_ratio = xlogy(alpha - 1, proposal / theta) + xlog1py(beta - 1, -proposal) - xlog1py(beta - 1, -theta)
        up = proposal > theta
        share = np.abs(proposal - theta) / np.where(up, 1 - theta, theta)
        flipped = rng.binomial(np.where(up, state.table[zeros], state.table[ones]), share)
        flipped = np.where(up, flipped, -flipped)
        old = state.counts[change.index]
        new = old + change.counts @ flipped
        log_ratio = log_ratio + self._log_noise_ratio(change.index, old, new)
        log_ratio += self._log_prior_ratio(state, change, old, new, flipped)
        accept = log_ratio > -rng.standard_exponential(len(theta))
        flipped = np.where(accept, flipped, 0)
        state.table[ones] += flipped
        state.table[zeros] -= flipped
        state.counts[change.index] = np.where(accept, new, old)
