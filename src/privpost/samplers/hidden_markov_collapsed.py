"""Collapsed Gibbs sampling from annealed starts of the hidden Markov model of `hidden_markov_gibbs`.

Emissions and transitions are integrated out, so that a chain is one of states alone. Its burn-in is a search for a
start: from random states of its own some partitions are cooled (the target is the collapsed joint to the power 1/τ, τ
falling to 1), states are merged and split anew, and partitions are crossed. After that it is a Gibbs sampler at τ = 1;
what it yields after every round are its states, with emissions drawn given them.
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
    """How a chain searches for its start during its burn-in: a population of its own that is crossed.

    In the first third of the burn-in `members` partitions, or as many as get 12 rounds each, are cooled one after
    another from random states: τ falls in geometric steps to 1 in two thirds of a member's rounds, from `hottest`, or
    in a group that is tempered by T already from hottest/T or 3, whichever is more. After that two members at a time
    are crossed (`crossed`), and the child has `cycle` rounds at τ = 1; it replaces the worst member if it is better.
    The best one is the start.

    With replicas, that search has the first two thirds of the burn-in only. From then on each chain has replicas whose
    targets are the joint to the powers 1/τ, τ from 1 to `top` in geometric steps; they start from the other partitions.
    After every round neighbours trade places by the rule of Metropolis, so that the one at τ = 1 keeps its law.

    Attributes:
        hottest: the highest temperature τ.
        resplits: how often in each round of the burn-in states are merged and split anew (`resplit`).
        members: largest size of the population.
        cycle: rounds of a child.
        replicas: how many there are of a chain after the search, itself included.
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
        """How many partitions a burn-in of so many rounds cools; a single one is not crossed."""
        return max(1, min(self.members, burn_in // 36))

    def powers(self, burn_in: int, temperature: float = 1.0) -> tuple[np.ndarray, np.ndarray]:
        """1/τ of the rounds of a group's burn-in, and which of them end a member or a child, shape (burn_in,) each."""
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
    """A child of two partitions (cells,): in turn the largest state of each is handed on, less what is taken already.

    As for colourings of graphs (Galinier and Hao 1999); cells that are left get random states.
    """
    child, parents = np.full(len(first), -1), (first, second)
    for k in range(n_states):
        free, parent = child < 0, parents[k % 2]
        child[free & (parent == np.bincount(parent[free], minlength=n_states).argmax())] = k
    free = child < 0
    child[free] = rng.integers(n_states, size=free.sum())
    return child


class Cells(NamedTuple):
    """What a cell adds to a state's totals, as a sparse matrix over (cells, levels + fields), rows one after another.

    Entries of a level are its count over T, those of a field the field's count over T; held-out cells are empty.
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
        # Unsigned, so that compiled loops need not ask whether a place is counted from the end.
        return cls(indptr.astype(np.uint64), np.nonzero(table)[1].astype(np.uint32), table[table > 0])


def _cells(group: gibbs.Group, fields) -> list[Cells]:
    tables = group.counts if group.counts.ndim == 3 else [group.counts] * len(group.observed)
    return [Cells.of(*chain, group.temperature, fields) for chain in zip(tables, group.observed, strict=True)]


class State(NamedTuple):
    """All chains after a round.

    `states`, for each group (chains, replicas, cells); `energies`, for each group (chains, replicas, 2): the collapsed
    log-likelihood and log-prior at the group's temperatures after the round's pass; `cold` is the
    `hidden_markov_gibbs.State`; `memory`, for each group, chain and replica, spares computing again what has not
    changed; `members`, of each group the search's
    partitions (chains, members, cells) and their log joints (chains, members).
    """

    states: Sequence[np.ndarray]
    energies: Sequence[np.ndarray]
    cold: gibbs.State
    memory: Sequence[Sequence[list[tuple]]]
    members: Sequence[tuple[np.ndarray, np.ndarray]]
    rounds: int = 0

    def part(self, group: int, chains: slice) -> gibbs.State:
        """The chains of one group, as views."""
        return self.cold.part(group, chains)


class Entries(NamedTuple):
    """What the entries of `Cells` weigh: Σ_k Σ_i sign_i [ln Γ(N_ki + offset_i) − ln Γ(offset_i)] is the log-likelihood.

    `offset`, `sign` (levels + fields,); `bounds` (fields + 1,): where each field's levels begin; `lows` (fields,);
    `table`: of `gamma_table`; `tails`: what ln P of truncated emissions needs.
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
        # So that with counts, which `Cells` bounds likewise, no argument lies beyond the table.
        if not offset.max() < 2.0 ** (END_OCTAVE - 1):
            most = f"below 5e8 / {sizes.max()}, the levels of a field"
            raise ValueError(f"emission is {prior.emission!r}; of collapsed chains it must be {most}")
        if lows.any() and b != 1:
            raise ValueError(f"emission is {prior.emission!r}; with truncated emissions it must be 1")
        return cls(
            offset, sign, np.concatenate([[0], np.cumsum(sizes)]), lows, gamma_table(), tails(tuple(lows.tolist()))
        )


def _memory(n_cells: int, n_states: int, sizes: Sequence[int]) -> tuple:
    """What `collapsed_sweep` keeps of one chain from round to round, empty."""
    weights, fields = (n_cells, n_states), (n_states, len(sizes))
    return (
        np.full(n_cells, -1), np.zeros(weights), np.zeros(n_states, np.int64), np.zeros(weights, np.int64),
        np.zeros(fields), np.zeros((*fields, POINT)),
    )  # fmt: skip


def log_joint(states, group: gibbs.Group, layout: gibbs.Layout, prior: gibbs.Prior) -> np.ndarray:
    """Collapsed log-likelihood and log-prior of states (cells, chains) in the law of a group, shape (2, chains).

    As `State.energies`, whichever sampler the states are of: ln p(z) is over the prior's temperature, and a truncated
    field's log-likelihood has its ln P of `truncated_masses`.
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

        likelihood += truncation_masses(np.stack([totals, gammas], axis=-1), tuple(entries))
    a, n_states = prior.transition, prior.n_states
    moves = gibbs.transition_counts(states, layout, n_states)
    rows = (gammaln(moves + a) - math.lgamma(a)).sum(axis=1)
    rows += math.lgamma(n_states * a) - gammaln(moves.sum(axis=1) + n_states * a)
    log_prior = rows.sum(axis=0) - layout.first.sum() * math.log(n_states)
    return np.stack([likelihood, log_prior / group.prior_temperature])


class Chains:
    """All chains of all groups (`chain.Sampler`), as `hidden_markov_gibbs.Chains`; `rng` is one generator per group.

    A step is a round: a pass over all cells, and during the burn-in resplits. After it an iteration of the explicit
    sampler follows, which draws the emissions given the states, and then the states. Both have one law, the passes up
    to what `truncated_masses` errs by.

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
        """Return states of all chains that are drawn uniformly, each by itself."""
        cold = self._explicit.init(rng)
        first, replicas = [cold.states[:, chains].T for chains in self.slices], len(self._ladder)
        # Of one layout, as compiled loops are made for each.
        states = tuple(np.ascontiguousarray(np.stack([group] * replicas, axis=1)) for group in first)
        sizes = len(self._layout.first), self.prior.n_states, self.prior.sizes
        memory = [[[_memory(*sizes) for _ in range(replicas)] for _ in group] for group in states]
        energies = tuple(np.full((len(group), replicas, 2), -np.inf) for group in states)
        members = [
            (np.stack([group] * self._population, axis=1), np.full((len(group), self._population), -np.inf))
            for group in first
        ]
        return State(states, energies, cold, memory, members)

    def step(self, state: State, rng: Sequence[np.random.Generator]) -> tuple[State, np.ndarray]:
        """One round of every chain; the cost is the variates that the emissions took, shape (groups,)."""
        searching, cooling = state.rounds < self._search, state.rounds < self.burn_in
        for place, (group, states, group_rng) in enumerate(zip(self.groups, state.states, rng, strict=True)):
            (powers, ends), n_cells = self._powers[place], states.shape[-1]
            ladder, end = (powers[[state.rounds]], ends[state.rounds]) if searching else (self._ladder, False)
            turn = int(ends[: state.rounds].sum())
            # A split does not know of truncation, and may cool to other modes: every second partition does without.
            resplits = self._resplits if searching and not end and (group.lows is None or turn % 2) else 0
            for chain, replica in itertools.product(range(len(states)), range(len(ladder))):
                settings = 1 / group.prior_temperature, float(self.prior.transition), ladder[replica]
                state.energies[place][chain, replica] = self._round(
                    states[chain, replica], self.prior.n_states, tuple(self._cells[place][chain]),
                    tuple(self._entries[place]), tuple(self._layout), settings,
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
        """Neighbouring replicas of a chain, from one of the first two on, trade places by the rule of Metropolis."""
        joints = energies.sum(axis=1)
        for r in range(begin, len(joints) - 1, 2):
            gain = (self._ladder[r] - self._ladder[r + 1]) * (joints[r + 1] - joints[r])
            if -rng.standard_exponential() < gain:
                for part in (states, energies):
                    part[[r, r + 1]] = part[[r + 1, r]]
                memory[r], memory[r + 1] = memory[r + 1], memory[r]

    def _breed(self, states, joint, partitions, joints, turn: int, last: bool, rng) -> None:
        """Keep one chain's states at the end of a cycle, and replace them by those that the next one starts from."""
        number, n_states = len(joints), self.prior.n_states
        place = turn if turn < number else int(joints.argmin())
        # Of partitions that differ by less than a nat one is enough.
        if turn < number or (joint > joints[place] and np.abs(joints - joint).min() > 1):
            partitions[place], joints[place] = states[0], joint
        if last:
            # The best one for τ = 1, and the others for its replicas.
            states[:] = np.resize(partitions[np.argsort(-joints, kind="stable")], states.shape)
        elif turn + 1 < number:
            states[0] = rng.integers(n_states, size=states.shape[1])
        else:
            states[0] = crossed(*partitions[rng.choice(number, 2, replace=False)], n_states, rng)
