"""Collapsed Gibbs sampling of the hidden Markov model of `hidden_markov_gibbs`, weights remembered by sets of cells.

For chains at temperature 1 without truncation, in which most cells are certain of their states: the same few sets of
cells recur, and most cells can be skipped. A chain searches for its start among local optima, on independent islands,
until several of them have met the same best joint. From then on it is a collapsed Gibbs sampler with replicas. Chains
share no memory.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from privpost.samplers import hidden_markov_gibbs as gibbs
from privpost.samplers.hidden_markov_collapsed import Cells, Entries
from privpost.samplers.hidden_markov_lanes import LANES

# Counts are rounded to multiples of this, so that sums below 2²⁹ are exact in any order of summation.
GRAIN = 2.0**-20


@dataclass(frozen=True)
class Islands:
    """How a chain searches for its start, and its replicas after the search.

    An island breeds `children` from its own `members` local optima. The search ends when `agree` islands have met the
    best joint, to `NATS`, or after `most` islands. Every ninth island breeds the others' best, and does not count.

    Attributes:
        agree, most, members, children: see above, each at least 1, members at least 2.
        replicas: number for each chain, itself included; their targets are the joint to the powers 1/τ.
        top: the highest temperature τ of a replica, ≥ 1.
        rounds: passes of all replicas between two draws.

    Raises:
        ValueError: a setting out of range.
    """

    agree: int = 3
    most: int = 48
    members: int = 6
    children: int = 40
    replicas: int = 8
    top: float = 4.0
    rounds: int = 8

    def __post_init__(self):
        for name in ("agree", "most", "members", "children", "replicas", "top", "rounds"):
            least = 2 if name == "members" else 1
            if not getattr(self, name) >= least:
                raise ValueError(f"{name} is {getattr(self, name)!r}; it must be >= {least}")


NATS = 0.5


class Data(NamedTuple):
    """A chain's data: `Cells` and `Entries`, ln Γ of the offsets, a key for each cell, `Layout`, and a.

    `gammas` are ln Γ(n + a) − ln Γ(a) and the same with K a, for n moves, `logs` ln(n + a) and ln(n + K a), (2, cells +
    2).
    """

    cells: Cells
    entries: Entries
    empty: np.ndarray
    marks: np.ndarray
    layout: gibbs.Layout
    a: float
    gammas: np.ndarray
    logs: np.ndarray

    @classmethod
    def of(cls, counts, observed, layout: gibbs.Layout, prior: gibbs.Prior) -> Data:
        """The data of one chain: counts (cells, levels), observed (cells,). A cell without entries has the key 0."""
        from scipy.special import gammaln

        cells = Cells.of(np.rint(np.asarray(counts) / GRAIN) * GRAIN, observed, 1.0, prior.fields)
        entries = Entries.of(prior)
        entries = entries._replace(offset=np.rint(entries.offset / GRAIN) * GRAIN)
        marks = np.random.default_rng(0).integers(1, 2**63, len(counts), np.uint64)
        marks[np.diff(cells.indptr) == 0] = 0
        a, n = float(prior.transition), np.arange(len(counts) + 2.0)
        shapes = a, prior.n_states * a
        gammas = np.stack([gammaln(n + shape) - gammaln(shape) for shape in shapes])
        logs = np.array([[math.log(number) for number in n + shape] for shape in shapes])
        return cls(cells, entries, gammaln(entries.offset), marks, layout, a, gammas, logs)


class Store(NamedTuple):
    """The sets of cells that a chain has met, each in a slot.

    `keys` (slots,), the cells' keys combined; `places`, a hash table of slots, −1 where empty; `sums` (slots, entries,
    2), the totals and their ln Γ; `weights` (slots, cells), of a cell in a state with the set's other cells, nan where
    not computed; `likelihoods` (slots,); `gains` (slots,), of log-likelihood by the best known split, nan where not
    searched, and the split's second part `parts` (slots, cells); `used`, the number of used slots.
    """

    keys: np.ndarray
    places: np.ndarray
    sums: np.ndarray
    weights: np.ndarray
    likelihoods: np.ndarray
    gains: np.ndarray
    parts: np.ndarray
    used: np.ndarray

    @classmethod
    def of(cls, n_cells: int, n_entries: int) -> Store:
        """An empty store, with room for the largest step of the search."""
        slots = max(24_000, 128 * n_cells)
        return cls(
            np.zeros(slots, np.uint64), np.full(2 ** int(np.log2(slots) + 2), -1), np.empty((slots, n_entries, 2)),
            np.empty((slots, n_cells)), np.empty(slots), np.empty(slots), np.empty((slots, n_cells), bool),
            np.zeros(1, np.int64),
        )  # fmt: skip


class Work(NamedTuple):
    """Space for a pass: counts of moves (K, K) and their row sums, slots and odds (K,), and arguments of `weigh`."""

    moves: np.ndarray
    leaving: np.ndarray
    slots: np.ndarray
    odds: np.ndarray
    stale: np.ndarray
    gains: np.ndarray

    @classmethod
    def of(cls, n_states: int) -> Work:
        """Space for K states."""
        lanes = -(-max(n_states, 2) // LANES) * LANES
        ints, floats = np.empty((2, lanes), np.int64), np.empty((3, lanes))
        first = floats[0, :n_states], ints[0, :n_states], floats[1, :n_states]
        return cls(np.empty((n_states, n_states)), *first, ints[1], floats[2])


class State(NamedTuple):
    """All chains after a round: all draws of states, for each group (chains, draws, cells), and the present state."""

    draws: Sequence[np.ndarray]
    cold: gibbs.State
    rounds: int = 0

    def part(self, group: int, chains: slice) -> gibbs.State:
        """The chains of one group, as views."""
        return self.cold.part(group, chains)


class Chains:
    """All chains of all groups (`chain.Sampler`), as `hidden_markov_gibbs.Chains`; `rng` is one generator per group.

    `init` runs the chains to their end, one after another, as each needs much memory. A step gives each chain's next
    draw, with emissions after the burn-in.

    Args:
        islands: settings of the search and of the replicas.
        draws: number of steps.
        burn_in: steps without emissions.
    """

    def __init__(
        self, groups, layout: gibbs.Layout, prior: gibbs.Prior, islands: Islands, draws: int, burn_in: int = 0
    ):
        self._explicit = gibbs.Chains(groups, layout, prior)
        self.groups, self.slices, self.prior, self.burn_in = groups, self._explicit.slices, prior, burn_in
        self._islands, self._draws, self._data = islands, draws, []
        for group in groups:
            if group.temperature != 1 or group.lows is not None:
                raise ValueError("sets of cells are remembered at temperature 1 and without truncation only")
            tables = group.counts if group.counts.ndim == 3 else [group.counts] * len(group.observed)
            pairs = zip(tables, group.observed, strict=True)
            self._data.append([Data.of(*pair, layout, prior) for pair in pairs])

    def init(self, rng: Sequence[np.random.Generator]) -> State:
        """Run all chains."""
        n_cells, n_entries = len(self._data[0][0].marks), len(self._data[0][0].empty)
        store, work, group_draws, searched = Store.of(n_cells, n_entries), Work.of(self.prior.n_states), [], []
        for chains, group_rng in zip(self._data, rng, strict=True):
            group_draws.append(np.empty((len(chains), self._draws, n_cells), np.int64))
            for chain_draws, data in zip(group_draws[-1], chains, strict=True):
                searched.append(self._run(chain_draws, data, store, work, group_rng))
        cold = self._explicit.start(np.concatenate([chain_draws[:, 0] for chain_draws in group_draws]).T)
        return State(group_draws, cold._replace(search=np.array(searched)))

    def _run(self, draws, data: Data, store: Store, work: Work, rng) -> tuple[int, bool]:
        """Run one chain to its end; return the number of islands, and whether enough of them agreed."""
        from privpost.samplers.hidden_markov_set_passes import exchange

        store.used[0], store.places[:] = 0, -1
        partitions, islands, met = search(self._islands, draws.shape[1], data, store, work, rng)
        replicas = np.resize(partitions, (self._islands.replicas, draws.shape[1]))
        powers = np.geomspace(1, 1 / self._islands.top, self._islands.replicas)
        exchange(replicas, powers, self._islands.rounds, draws, data, store, work, rng)
        return islands, met

    def step(self, state: State, rng: Sequence[np.random.Generator]) -> tuple[State, np.ndarray]:
        """The next draw of every chain; the cost is the number of variates for the emissions, shape (groups,)."""
        states = np.concatenate([draws[:, state.rounds] for draws in state.draws]).T
        cold, variates = self._explicit.start(states), np.zeros(len(rng), np.int64)
        if state.rounds >= self.burn_in:
            # An iteration of the explicit sampler leaves the law invariant.
            cold, variates = self._explicit.step(cold, rng)
        return State(state.draws, cold._replace(search=state.cold.search), state.rounds + 1), variates


def search(islands: Islands, n_cells: int, data: Data, store: Store, work: Work, rng) -> tuple[np.ndarray, int, bool]:
    """Partitions (islands, cells), the best first, the number of islands, and whether enough of them agreed.

    An island agrees if its best joint is less than `NATS` below the best of all.
    """
    from privpost.samplers.hidden_markov_set_search import breed

    partitions, joints, agreed = np.empty((0, n_cells), np.int64), np.empty(0), 0
    while len(partitions) < islands.most and agreed < islands.agree:
        together = len(partitions) % 9 == 8
        if together:
            order = np.argsort(-joints)[: 2 * islands.members]
            members, member_joints = partitions[order].copy(), joints[order].copy()
        else:
            members, member_joints = np.zeros((islands.members, n_cells), np.int64), np.zeros(islands.members)
        children = islands.children * (4 if together else 1)
        breed(members, member_joints, not together, children, len(work.slots), data, store, work, rng)
        best = member_joints.argmax()
        partitions, joints = np.concatenate([partitions, members[[best]]]), np.append(joints, member_joints[best])
        # An island bred from others is not independent and does not count.
        agreed = int((joints > joints.max() - NATS)[np.arange(len(joints)) % 9 < 8].sum())
    return partitions[np.argsort(-joints, kind="stable")], len(partitions), agreed >= islands.agree
