"""Matching of the arbitrary labels of hidden states: within chains, between fits, and with the truth."""

from __future__ import annotations

import numpy as np


def best_permutation(agreement) -> np.ndarray:
    """Return the permutation p that maximises Σ_k agreement[k, p_k], from a matrix (K, K)."""
    from scipy.optimize import linear_sum_assignment

    return linear_sum_assignment(agreement, maximize=True)[1]


def align(parameters, reference, sizes) -> np.ndarray:
    """Return the permutation p that matches state i of `parameters` with state p[i] of `reference`, both (K, levels).

    The permutation minimises the squared Hellinger distance of the emissions, summed over fields (Hungarian method).
    """
    ends = np.cumsum(sizes)
    cost = np.zeros((len(parameters), len(reference)))
    for end, size in zip(ends, sizes, strict=True):
        field = slice(end - size, end)
        cost += 1 - np.sqrt(parameters[:, field]) @ np.sqrt(reference[:, field]).T
    return best_permutation(-cost)


def matched(states, reference, n_states: int) -> np.ndarray:
    """Return the permutation p for which p[states] equals the reference in the most cells. Both are (cells,)."""
    return best_permutation(
        np.bincount(states * n_states + reference, minlength=n_states**2).reshape(n_states, n_states)
    )


def misses(maps, truth, n_states: int) -> np.ndarray:
    """Return each map's share of cells with a wrong state after the best matching of labels, or nan for real data."""
    if truth is None:
        return np.full(len(maps), np.nan)
    return np.array([(matched(states, truth, n_states)[states] != truth).mean() for states in maps])


class Frequencies:
    """Counts how often each cell of each chain is in each state after burn-in.

    A chain may switch labels, so the labels of each iteration are permuted to agree best with the counts so far
    (Stephens 2000). A call takes the number of an iteration and the iteration's `hidden_markov.gibbs.State`.

    Attributes:
        seen: the counts (K, cells, chains).
        labels: permutations of the labels at the last iteration (chains, K).
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
        """Return the frequencies of states after burn-in (K, cells, chains), with the labels of the last iteration."""
        ordered = np.stack([self.seen[labels, :, chain] for chain, labels in enumerate(self.labels)], axis=-1)
        return ordered / (iterations - self._burn_in)
