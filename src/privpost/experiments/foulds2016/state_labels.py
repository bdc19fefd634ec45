"""Labels of hidden states, which mean nothing by themselves: matched within chains, between fits and with the truth."""

from __future__ import annotations

import numpy as np


def best_permutation(agreement) -> np.ndarray:
    """The permutation p that maximises Σ_k agreement[k, p_k], (K, K)."""
    from scipy.optimize import linear_sum_assignment

    return linear_sum_assignment(agreement, maximize=True)[1]


def align(parameters, reference, sizes) -> np.ndarray:
    """Return the permutation p that matches state i of `parameters` with state p[i] of `reference`, both (K, levels).

    Hungarian assignment on the sum over fields of the squared Hellinger distance of the emissions.
    """
    ends = np.cumsum(sizes)
    cost = np.zeros((len(parameters), len(reference)))
    for end, size in zip(ends, sizes, strict=True):
        field = slice(end - size, end)
        cost += 1 - np.sqrt(parameters[:, field]) @ np.sqrt(reference[:, field]).T
    return best_permutation(-cost)


def matched(states, reference, n_states: int) -> np.ndarray:
    """The permutation p such that p[states] agrees with the reference in most cells, both (cells,)."""
    return best_permutation(
        np.bincount(states * n_states + reference, minlength=n_states**2).reshape(n_states, n_states)
    )


class Frequencies:
    """Counts how often each cell of each chain is in each state after burn-in: `seen` (K, cells, chains).

    Replicas that trade places bring labels of their own: each iteration's labels are permuted to agree with the counts
    so far as well as they can (Stephens 2000). It watches `hidden_markov_gibbs.State`; `labels` (chains, K) has the
    last iteration's permutations.
    """

    def __init__(self, shape: tuple[int, int, int], burn_in: int):
        self.seen, self._burn_in = np.zeros(shape, np.int32), burn_in
        self.labels = np.tile(np.arange(shape[0]), (shape[2], 1))

    def __call__(self, iteration: int, state) -> None:
        if iteration < self._burn_in:
            return
        n_states, n_cells, n_chains = self.seen.shape
        cells = np.arange(n_cells)
        for chain in range(n_chains):
            states, seen = state.states[:, chain], self.seen[:, :, chain]
            self.labels[chain] = best_permutation((states == np.arange(n_states)[:, None]) @ seen.T)
            seen[self.labels[chain][states], cells] += 1

    def shares(self, iterations: int) -> np.ndarray:
        """Frequencies of the states (K, cells, chains), under the labels of the last iteration."""
        ordered = np.stack([self.seen[own, :, chain] for chain, own in enumerate(self.labels)], axis=-1)
        return ordered / (iterations - self._burn_in)
