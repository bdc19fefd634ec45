"""Posterior of a Bayesian network given noisy counts, by a Markov chain on the table of all records.

The latent state is the contingency table h of the n records over the 2^|I| cells. Let s be the counts of the latent
records, z the noisy counts and f the density of the noise. With the probabilities θ integrated out, the posterior is

    p(h | z) ∝ n!/Π_x h_x! · Π_ij B(α + s_ij1, β + s_ij0) · Π_k f(z_k − s_k).

The chain converges to this posterior. A *move* carries records from one cell to another. A *shift* changes one θ_ij and
flips bits that θ_ij governs: a bit is 1 if its fixed uniform u is below θ_ij, so bits with u between the old and the
new θ_ij flip. Moves mix well if the release is informative, and shifts mix well if the release is uninformative.
"""

import itertools
from typing import NamedTuple

import numpy as np
from scipy.special import gammaln

from privpost.models.networks.bayesian_network import LARGEST_ALPHABET, BayesianNetwork


def cells(model: BayesianNetwork) -> tuple[np.ndarray, np.ndarray]:
    """Return all possible records (2^|I|, |I|) and the statistics of each record (2^|I|, 2m).

    Raises:
        ValueError: a network of more than 8 nodes.
    """
    if len(model.nodes) > LARGEST_ALPHABET:
        raise ValueError(f"the network has {len(model.nodes)} nodes; its table needs at most {LARGEST_ALPHABET}")
    records = np.array(list(itertools.product((0, 1), repeat=len(model.nodes))))
    return records, model.sufficient_statistics(records[:, None, :])


class State(NamedTuple):
    """The number of records in each cell, `table` (2^|I|, chains), and the resulting `counts` (2m, chains)."""

    table: np.ndarray
    counts: np.ndarray


class Tables:
    """Chains (`chain.Sampler`) on contingency tables, one chain for each release.

    A step tries every move and every shift once, and reports no cost.

    Args:
        release: noisy counts, truncated to [0, n] or not (see `naive_bayes.exact`), shape (chains, 2m).
        n: public number of records.
        scale: scale of the Laplace noise, shape (chains,) or a scalar.

    Raises:
        ValueError: a network of more than 8 nodes.
    """

    def __init__(self, model: BayesianNetwork, release, n: int, scale):
        # Imported only to run chains: loading the compiler takes longer than most commands.
        from privpost.samplers.noise_aware import table_kernels as kernels

        records, cell_counts = cells(model)
        self._model, self._n, self._sweep = model, n, kernels.sweep
        self._cell_counts = np.rint(cell_counts).astype(np.int64)
        self._release = np.ascontiguousarray(np.asarray(release, float).T)
        self._precision = 1 / np.broadcast_to(np.asarray(scale, float), self._release.shape[1:])
        size = np.arange(n + 1.0)
        both = np.concatenate([gammaln(prior + size) for prior in (model.alpha, model.beta)])
        self._logs = gammaln(size + 1), both, gammaln(model.alpha + model.beta + size)
        self._widths = 2 ** np.arange(max(1, int(np.log2(max(n // 4, 2)))))
        pairs = itertools.combinations(range(len(records)), 2)
        steps: list = [(-1, [a], [b]) for a, b in pairs if (a ^ b).bit_count() == 1]
        index = model.configurations(records)
        for parameter, node in enumerate(model.owner):
            governed = index[:, node] == parameter
            zeros, ones = (np.flatnonzero(governed & (records[:, node] == value)) for value in (0, 1))
            steps.append((parameter, zeros, ones))
        self._steps = kernels.Steps.of(steps, self._cell_counts, n)

    def init(self, rng: np.random.Generator) -> State:
        """Return tables of data drawn from the prior."""
        model, size, chains = self._model, len(self._cell_counts), self._release.shape[1]
        data = model.sample_data(model.sample(model.prior, rng, chains), self._n, rng)
        code = data @ (2 ** np.arange(len(model.nodes))[::-1])
        flat = (code + size * np.arange(chains)[:, None]).ravel()
        table = np.bincount(flat, minlength=size * chains).reshape(chains, -1).T.copy()
        return State(table, self._cell_counts.T @ table)

    def step(self, state: State, rng: np.random.Generator) -> tuple[State, None]:
        """Try all moves between cells that differ in one node, and all shifts, once in random order."""
        self._take(rng.permutation(len(self._steps.theta)), state, rng)
        return state, None

    def _take(self, order, state: State, rng: np.random.Generator) -> None:
        prior = float(self._model.alpha), float(self._model.beta)
        arguments = self._release, self._precision, self._steps, self._logs, prior, self._widths
        self._sweep(order, state.table, state.counts, *arguments, rng)
