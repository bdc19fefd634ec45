"""Maps of hidden states: matched labels, how many states are used, and months of regions' last change of state."""

from __future__ import annotations

import numpy as np

KINDS = ("mode", "final")
# Columns that count the states with at least this share of the cells.
USED = {"states_over_5_percent": 0.05, "states_used_at_all": 1e-12, "states_over_1_percent": 0.01}


def best_permutation(agreement) -> np.ndarray:
    """Return the permutation p that maximises Σ_k agreement[k, p_k] for a matrix `agreement` (K, K)."""
    from scipy.optimize import linear_sum_assignment

    return linear_sum_assignment(agreement, maximize=True)[1]


def align(parameters, reference, sizes) -> np.ndarray:
    """Return the permutation p that matches states i of `parameters` and p[i] of `reference`, both (K, levels)."""
    # The cost is the squared Hellinger distance of the emissions, summed over fields.
    ends = np.cumsum(sizes)
    cost = np.zeros((len(parameters), len(reference)))
    for end, size in zip(ends, sizes, strict=True):
        field = slice(end - size, end)
        cost += 1 - np.sqrt(parameters[:, field]) @ np.sqrt(reference[:, field]).T
    return best_permutation(-cost)


def matched(states, reference, n_states: int) -> np.ndarray:
    """Return the permutation p for which p[states] and `reference`, both (cells,), agree in the most cells."""
    return best_permutation(
        np.bincount(states * n_states + reference, minlength=n_states**2).reshape(n_states, n_states)
    )


def misses(maps, truth, n_states: int) -> np.ndarray:
    """Return each map's share of cells with a wrong state after the best matching of labels, or nan without a truth."""
    if truth is None:
        return np.full(len(maps), np.nan)
    return np.array([(matched(states, truth, n_states)[states] != truth).mean() for states in maps])


class Frequencies:
    """Counts how often each cell of each chain is in each state after burn-in.

    A chain may switch labels. The labels of each iteration are therefore permuted to agree best with the counts so far
    (Stephens 2000).

    Attributes:
        seen: the counts (K, cells, chains).
        labels: permutations (chains, K) of the labels at the last iteration.
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
        """Return shares (K, cells, chains) of iterations in each state, with the labels of the last iteration."""
        ordered = np.stack([self.seen[labels, :, chain] for chain, labels in enumerate(self.labels)], axis=-1)
        return ordered / (iterations - self._burn_in)


def turning_months(logs, states) -> np.ndarray:
    """Return the index of the month from which each region keeps its last state, or nan if the state never changes."""
    turns = np.full(len(logs.regions), np.nan)
    for region in range(len(logs.regions)):
        cells = np.flatnonzero(logs.region == region)
        elsewhere = np.flatnonzero(states[cells] != states[cells[-1]]) if len(cells) else []
        if len(elsewhere):
            turns[region] = logs.month[cells[elsewhere[-1] + 1]]
    return turns


def turns(logs, months) -> list[dict]:
    """Return one dict per region: its name, and the name of its month in `turning_months` (None if nan)."""
    named = (None if np.isnan(month) else logs.months[int(month)] for month in months)
    return [{"region": region, "month": month} for region, month in zip(logs.regions, named, strict=True)]


def maps_of(fits: list, all_rows: list, logs) -> dict[str, np.ndarray]:
    """Return maps, emissions and turns of each row's first repeat, and scores for the maps of all repeats.

    States are matched with a reference fit and sorted by their mean month there. The reference is the non-private fit
    from seeded starts, or else from random starts.
    """
    reference = [fit for fit, row in zip(fits, all_rows, strict=True) if row.method == "non_private"][-1]
    n_states = reference.parameters.shape[1]
    # A state without cells comes last.
    months = [np.mean([*logs.month[reference.mode[0] == k]] or [np.inf]) for k in range(n_states)]
    target = reference.parameters[0][np.argsort(months)]
    target_map = align(reference.parameters[0], target, logs.sizes)[reference.mode[0]]
    neighbours, arrays = logs.region[1:] == logs.region[:-1], {}
    for fit in fits:
        places = np.array([align(parameters, target, logs.sizes) for parameters in fit.parameters])
        first = {"parameters": fit.parameters[0][np.argsort(places[0])], "frequency": fit.frequency[0]}
        first["turns"] = turning_months(logs, fit.mode[0])
        for kind in KINDS:
            maps = np.take_along_axis(places, getattr(fit, kind), axis=1)
            first |= {kind: maps[0], f"switches_{kind}": (maps[:, 1:] != maps[:, :-1])[:, neighbours].mean(axis=1)}
            first[f"disagreement_{kind}"] = (maps != target_map).mean(axis=1)
            first[f"misses_{kind}"] = misses(maps, logs.truth, n_states)
        for name, value in first.items():
            arrays.setdefault(name, []).append(value)
    return {name: np.array(values) for name, values in arrays.items()}


def used(maps, n_states: int) -> np.ndarray:
    """Return, for each share in `USED`, how many states hold at least this share of a map's cells (shares, repeats)."""
    shares = np.stack([(maps == k).mean(axis=1) for k in range(n_states)])
    return np.array([(shares >= share).sum(axis=0) for share in USED.values()])
