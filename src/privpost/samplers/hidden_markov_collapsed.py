"""Collapsed Gibbs sampling from annealed starts of the hidden Markov model of `hidden_markov_gibbs`.

Emissions and transitions are integrated out, so a chain's state is the states of all cells. The burn-in searches for a
start: it cools several random partitions (the target is the collapsed joint to the power 1/τ, τ falling to 1), merges
states and splits them anew, and crosses partitions. After that the chain is a Gibbs sampler at τ = 1; every round
yields the states, and emissions drawn given them.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from privpost.samplers import hidden_markov_gibbs as gibbs
from privpost.samplers.log_gamma_table import END_OCTAVE, FIRST_OCTAVE, gamma_table
from privpost.samplers.truncated_mass_table import POINT, Tails, tails


@dataclass(frozen=True)
class Annealing:
    """How a chain searches for its start during its burn-in: by crossing the members of a population.

    In the first third of the burn-in `members` partitions, or as many as get 12 rounds each, are cooled one after
    another from random states: τ falls in geometric steps to 1 in two thirds of a member's rounds, from `hottest`, or,
    in a group at temperature T, from the larger of hottest/T and 3. After that pairs of members are crossed
    (`crossed`), and each child has `cycle` rounds at τ = 1; it replaces the worst member if it is better. The best
    member is the start.

    With replicas, the search takes only the first two thirds of the burn-in. From then on each chain has replicas whose
    targets are the joint to the powers 1/τ, τ from 1 to `top` in geometric steps; they start from the other partitions.
    After every round neighbours trade places by the Metropolis rule, so that the replica at τ = 1 keeps its law.

    Attributes:
        hottest: the highest temperature τ.
        resplits: number of merges and splits (`resplit`) in each round of the burn-in.
        members: largest size of the population.
        cycle: rounds of a child.
        replicas: number of replicas of a chain after the search, itself included.
        top: the highest temperature τ of a replica.

    Raises:
        ValueError: a hottest or top temperature below 1, a negative number of resplits, no member or replica, or a
            cycle without a round.
    """

    hottest: float = 100.0
    resplits: int = 1
    members: int = 36
    cycle: int = 4
    replicas: int = 1
    top: float = 2.0

    def __post_init__(self):
        for name in ("hottest", "top"):
            if not getattr(self, name) >= 1:
                raise ValueError(f"{name} is {getattr(self, name)!r}; it must be >= 1")
        if self.resplits < 0:
            raise ValueError(f"resplits is {self.resplits!r}; it must be >= 0")
        for name in ("members", "cycle", "replicas"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} is {getattr(self, name)!r}; it must be >= 1")

    @property
    def ladder(self) -> np.ndarray:
        """1/τ of the replicas, shape (replicas,)."""
        return np.geomspace(1, 1 / self.top, self.replicas)

    def search(self, burn_in: int) -> int:
        """Rounds of a burn-in before replicas run."""
        return burn_in if self.replicas == 1 else burn_in * 2 // 3

    def population(self, burn_in: int) -> int:
        """Number of partitions that a burn-in of `burn_in` rounds cools; a single one is not crossed."""
        return max(1, min(self.members, burn_in // 36))

    def powers(self, burn_in: int, temperature: float = 1.0) -> tuple[np.ndarray, np.ndarray]:
        """1/τ of each round of a group's burn-in, and whether it is the last of a member or child, (burn_in,) each."""
        start, number = min(self.hottest, max(3.0, self.hottest / temperature)), self.population(burn_in)
        powers, ends = np.ones(burn_in), np.zeros(burn_in, bool)
        cooled = burn_in if number == 1 else burn_in // 3
        for part in np.array_split(np.arange(cooled), number):
            cooling = part[: len(part) * 2 // 3]
            powers[cooling] = 1 / np.geomspace(start, 1, len(cooling))
            ends[part[-1:]] = True
        ends[cooled + self.cycle - 1 :: self.cycle] = True
        ends[-1:] = True
        return powers, ends


def crossed(first, second, n_states: int, rng) -> np.ndarray:
    """A child of two partitions (cells,): the parents in turn hand on the largest state of their remaining cells.

    As for colourings of graphs (Galinier and Hao 1999); leftover cells get random states.
    """
    child, parents = np.full(len(first), -1), (first, second)
    for k in range(n_states):
        free, parent = child < 0, parents[k % 2]
        child[free & (parent == np.bincount(parent[free], minlength=n_states).argmax())] = k
    free = child < 0
    child[free] = rng.integers(n_states, size=free.sum())
    return child


class Cells(NamedTuple):
    """The cells' contributions to their states' totals: a sparse matrix (cells, levels + fields) in compressed rows.

    An entry is the count of a level or of a field, divided by T; held-out cells are empty.
    """

    indptr: np.ndarray
    index: np.ndarray
    value: np.ndarray

    @classmethod
    def of(cls, counts, observed, temperature: float, fields: Sequence[slice]) -> Cells:
        """The cells of one chain: counts (cells, levels), observed (cells,)."""
        counts = np.where(observed[:, None], counts, 0.0) / temperature
        sums = [counts[:, field].sum(axis=1, keepdims=True) for field in fields]
        table = np.concatenate([counts, *sums], axis=1)
        if not table.sum() < 2.0 ** (END_OCTAVE - 1):
            raise ValueError(f"counts sum to {counts.sum():g} over the temperature; what is weighed must be below 1e8")
        indptr = np.concatenate([[0], np.cumsum((table > 0).sum(axis=1))])
        # Unsigned, so that compiled loops need not check for negative indices.
        return cls(indptr.astype(np.uint64), np.nonzero(table)[1].astype(np.uint32), table[table > 0])


def _cells(group: gibbs.Group, fields) -> list[Cells]:
    tables = group.counts if group.counts.ndim == 3 else [group.counts] * len(group.observed)
    return [Cells.of(*chain, group.temperature, fields) for chain in zip(tables, group.observed, strict=True)]


class State(NamedTuple):
    """All chains after a round.

    Lists have an entry for each group. `states` (chains, replicas, cells); `energies` (chains, replicas, 2), the
    collapsed log-likelihood and log-prior at the group's temperatures after the round's pass; `cold`, the
    `hidden_markov_gibbs.State` of the replicas at τ = 1; `memory`, by chain and replica, the values that have not
    changed since the last pass; `members`, the search's partitions (chains, members, cells) and their log joints
    (chains, members).
    """

    states: Sequence[np.ndarray]
    energies: Sequence[np.ndarray]
    cold: gibbs.State
    memory: Sequence[Sequence[list[Memory]]]
    members: Sequence[tuple[np.ndarray, np.ndarray]]
    rounds: int = 0

    def part(self, group: int, chains: slice) -> gibbs.State:
        """The chains of one group, as views."""
        return self.cold.part(group, chains)


class Entries(NamedTuple):
    """Terms of the log-likelihood by entry of `Cells`: Σ_k Σ_i sign_i [ln Γ(N_ki + offset_i) − ln Γ(offset_i)].

    `offset`, `sign` (levels + fields,); `bounds` (fields + 1,): where each field's levels begin; `lows` (fields,);
    `table`: from `gamma_table`; `tails`: tables for ln P of truncated emissions.
    """

    offset: np.ndarray
    sign: np.ndarray
    bounds: np.ndarray
    lows: np.ndarray
    table: np.ndarray
    tails: Tails

    @classmethod
    def of(cls, prior: gibbs.Prior, prior_temperature: float = 1.0, lows=None) -> Entries:
        """The entries of a group's chains."""
        b, sizes = 1 + (prior.emission - 1) / prior_temperature, np.array(prior.sizes)
        offset = np.concatenate([np.full(sizes.sum(), b), b * sizes])
        sign = np.concatenate([np.ones(sizes.sum()), -np.ones(len(sizes))])
        lows = np.zeros(len(sizes)) if lows is None else np.array(lows, float)
        if not b > 2.0**FIRST_OCTAVE:
            raise ValueError(f"emission is {prior.emission!r}; of collapsed chains it must be > {2.0**FIRST_OCTAVE}")
        # Together with the bound of `Cells` on counts this keeps all arguments within the table.
        if not offset.max() < 2.0 ** (END_OCTAVE - 1):
            most = f"below 5e8 / {sizes.max()}, the levels of a field"
            raise ValueError(f"emission is {prior.emission!r}; of collapsed chains it must be {most}")
        if lows.any() and b != 1:
            raise ValueError(f"emission is {prior.emission!r}; with truncated emissions it must be 1")
        return cls(
            offset, sign, np.concatenate([[0], np.cumsum(sizes)]), lows, gamma_table(), tails(tuple(lows.tolist()))
        )


class Memory(NamedTuple):
    """What `collapsed_sweep` keeps of one chain from round to round.

    Attributes:
        known: states after the last pass, −1 before the first; (cells,).
        weights: weights of cells in states, (cells, K).
        versions: how often each state's cells have changed, (K,).
        stamps: versions that the weights are of, (cells, K).
        masses, points: `log_masses` (K, fields), and its points (K, fields, numbers).
    """

    known: np.ndarray
    weights: np.ndarray
    versions: np.ndarray
    stamps: np.ndarray
    masses: np.ndarray
    points: np.ndarray

    @classmethod
    def empty(cls, n_cells: int, n_states: int, sizes: Sequence[int]) -> Memory:
        """The memory of a chain at its start."""
        weights, fields = (n_cells, n_states), (n_states, len(sizes))
        return cls(
            np.full(n_cells, -1), np.zeros(weights), np.zeros(n_states, np.int64), np.zeros(weights, np.int64),
            np.zeros(fields), np.zeros((*fields, POINT)),
        )  # fmt: skip


def log_joint(states, group: gibbs.Group, layout: gibbs.Layout, prior: gibbs.Prior) -> np.ndarray:
    """Collapsed log-likelihood and log-prior of states (cells, chains) in the law of a group, shape (2, chains).

    As `State.energies`, but for the states of any sampler: ln p(z) is divided by the prior's temperature, and a
    truncated field's log-likelihood includes ln P of `truncated_masses`.
    """
    from scipy.special import gammaln

    totals = gibbs.state_totals(group.counts, states, group.observed, prior.n_states) / group.temperature
    totals = np.concatenate([totals, *(totals[..., f].sum(axis=-1, keepdims=True) for f in prior.fields)], axis=-1)
    entries = Entries.of(prior, group.prior_temperature, group.lows)
    totals += entries.offset
    gammas = gammaln(totals)
    likelihood = ((gammas - gammaln(entries.offset)) * entries.sign).sum(axis=(1, 2))
    if entries.lows.any():
        from privpost.samplers.truncated_masses import truncation_masses

        likelihood += truncation_masses(np.stack([totals, gammas], axis=-1), entries)
    a, n_states = prior.transition, prior.n_states
    moves = gibbs.transition_counts(states, layout, n_states)
    rows = (gammaln(moves + a) - math.lgamma(a)).sum(axis=1)
    rows += math.lgamma(n_states * a) - gammaln(moves.sum(axis=1) + n_states * a)
    log_prior = rows.sum(axis=0) - layout.first.sum() * math.log(n_states)
    return np.stack([likelihood, log_prior / group.prior_temperature])


class Chains:
    """All chains of all groups (`chain.Sampler`), as `hidden_markov_gibbs.Chains`; `rng` is one generator per group.

    A step is a round: a pass over all cells, and during the burn-in resplits. After the burn-in an iteration of the
    explicit sampler follows, which draws the emissions given the states, and then the states. Both have the same
    invariant law, up to the error of `truncated_masses`.

    Args:
        annealing: how the burn-in searches.
        burn_in: rounds without emissions.
    """

    def __init__(self, groups, layout: gibbs.Layout, prior: gibbs.Prior, annealing: Annealing, burn_in: int = 0):
        from privpost.samplers.hidden_markov_resplit import collapsed_round

        self._round, self._explicit = collapsed_round, gibbs.Chains(groups, layout, prior)
        self.groups, self.prior, self.slices, self.burn_in = groups, prior, self._explicit.slices, burn_in
        self._layout, self._resplits = layout, annealing.resplits if prior.n_states > 1 else 0
        self._ladder, self._search = annealing.ladder, annealing.search(burn_in)
        self._population = annealing.population(self._search)
        self._powers = [annealing.powers(self._search, group.temperature) for group in groups]
        self._cells = [_cells(group, prior.fields) for group in groups]
        self._entries = [Entries.of(prior, group.prior_temperature, group.lows) for group in groups]

    def init(self, rng: Sequence[np.random.Generator]) -> State:
        """Return independent uniform states of all chains."""
        cold = self._explicit.init(rng)
        first, replicas = [cold.states[:, chains].T for chains in self.slices], len(self._ladder)
        # All with the same memory layout, as loops are compiled for each layout.
        states = tuple(np.ascontiguousarray(np.stack([group] * replicas, axis=1)) for group in first)
        sizes = len(self._layout.first), self.prior.n_states, self.prior.sizes
        memory = [[[Memory.empty(*sizes) for _ in range(replicas)] for _ in group] for group in states]
        energies = tuple(np.full((len(group), replicas, 2), -np.inf) for group in states)
        members = [
            (np.stack([group] * self._population, axis=1), np.full((len(group), self._population), -np.inf))
            for group in first
        ]
        return State(states, energies, cold, memory, members)

    def step(self, state: State, rng: Sequence[np.random.Generator]) -> tuple[State, np.ndarray]:
        """One round of every chain; the cost is the number of variates for the emissions, shape (groups,)."""
        searching, cooling = state.rounds < self._search, state.rounds < self.burn_in
        for place, (group, states, group_rng) in enumerate(zip(self.groups, state.states, rng, strict=True)):
            (powers, ends), n_cells = self._powers[place], states.shape[-1]
            ladder, end = (powers[[state.rounds]], ends[state.rounds]) if searching else (self._ladder, False)
            turn = int(ends[: state.rounds].sum())
            # A split ignores truncation and may lead to other modes, so every second partition has no splits.
            resplits = self._resplits if searching and not end and (group.lows is None or turn % 2) else 0
            for chain, replica in itertools.product(range(len(states)), range(len(ladder))):
                settings = 1 / group.prior_temperature, float(self.prior.transition), ladder[replica]
                state.energies[place][chain, replica] = self._round(
                    states[chain, replica], self.prior.n_states, self._cells[place][chain], self._entries[place],
                    self._layout, settings,
                    group_rng.random(n_cells * (1 if group.lows is None else 2)),
                    group_rng.random((resplits, 4 + 4 * n_cells)), state.memory[place][chain][replica],
                )  # fmt: skip
            if end:
                last = state.rounds + 1 == self._search
                for chain, joint in enumerate(state.energies[place][:, 0].sum(axis=1)):
                    partitions, joints = (part[chain] for part in state.members[place])
                    self._breed(states[chain], joint, partitions, joints, turn, last, group_rng)
            elif not searching:
                for chain, energies in enumerate(state.energies[place]):
                    self._exchange(states[chain], energies, state.memory[place][chain], state.rounds % 2, group_rng)
        cold = self._explicit.start(np.concatenate([states[:, 0] for states in state.states]).T)
        variates = np.zeros(len(self.groups), np.int64)
        if not cooling:
            cold, variates = self._explicit.step(cold, rng)
            for states, chains in zip(state.states, self.slices, strict=True):
                states[:, 0] = cold.states[:, chains].T
        return state._replace(cold=cold, rounds=state.rounds + 1), variates

    def _exchange(self, states, energies, memory, begin: int, rng) -> None:
        """Neighbouring replicas of a chain, from number `begin` (0 or 1) on, trade places by the Metropolis rule."""
        joints = energies.sum(axis=1)
        for r in range(begin, len(joints) - 1, 2):
            gain = (self._ladder[r] - self._ladder[r + 1]) * (joints[r + 1] - joints[r])
            if -rng.standard_exponential() < gain:
                for part in (states, energies):
                    part[[r, r + 1]] = part[[r + 1, r]]
                memory[r], memory[r + 1] = memory[r + 1], memory[r]

    def _breed(self, states, joint, partitions, joints, turn: int, last: bool, rng) -> None:
        """Store one chain's states at the end of a cycle, and replace them by the next cycle's start."""
        number, n_states = len(joints), self.prior.n_states
        place = turn if turn < number else int(joints.argmin())
        # A joint within a nat of a member's counts as the same partition.
        if turn < number or (joint > joints[place] and np.abs(joints - joint).min() > 1):
            partitions[place], joints[place] = states[0], joint
        if last:
            # The best partition for τ = 1, and the others for the replicas.
            states[:] = np.resize(partitions[np.argsort(-joints, kind="stable")], states.shape)
        elif turn + 1 < number:
            states[0] = rng.integers(n_states, size=states.shape[1])
        else:
            states[0] = crossed(*partitions[rng.choice(number, 2, replace=False)], n_states, rng)
