"""Collapsed Gibbs sampling of the hidden Markov model of `hidden_markov_gibbs`.

Emissions and transitions are integrated out, so that a chain is one of states alone. It starts from what a search of
its own has found (`hidden_markov_search`); what it yields after every round are its states, with emissions drawn given
them.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from privpost.samplers import hidden_markov_gibbs as gibbs
from privpost.samplers.hidden_markov_search import Annealing, search
from privpost.samplers.log_gamma_table import END_OCTAVE, FIRST_OCTAVE, gamma_table


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
    return [Cells.of(*one, group.temperature, fields) for one in zip(tables, group.observed, strict=True)]


class State(NamedTuple):
    """All chains after a round.

    `states`, for each group (chains, replicas, cells); `energies`, for each group (chains, replicas, 2): the collapsed
    log-likelihood and log-prior at the group's temperatures after the round's pass; `cold` is the
    `hidden_markov_gibbs.State`; `memory`, for each group, chain and replica, spares computing again what has not
    changed.
    """

    states: Sequence[np.ndarray]
    energies: Sequence[np.ndarray]
    cold: gibbs.State
    memory: Sequence[Sequence[list[tuple]]]
    rounds: int = 0

    def part(self, group: int, chains: slice) -> gibbs.State:
        """The chains of one group, as views."""
        return self.cold.part(group, chains)


class Entries(NamedTuple):
    """What the entries of `Cells` weigh: Σ_k Σ_i sign_i [ln Γ(N_ki + offset_i) − ln Γ(offset_i)] is the log-likelihood.

    `offset`, `sign` (levels + fields,); `bounds` (fields + 1,): where each field's levels begin; `lows` (fields,);
    `table`: of `gamma_table`.
    """

    offset: np.ndarray
    sign: np.ndarray
    bounds: np.ndarray
    lows: np.ndarray
    table: np.ndarray

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
        return cls(offset, sign, np.concatenate([[0], np.cumsum(sizes)]), lows, gamma_table())


def _memory(n_cells: int, n_states: int, sizes: Sequence[int]) -> tuple:
    """What `collapsed_sweep` keeps of one chain from round to round, empty."""
    weights, fields = (n_cells, n_states), (n_states, len(sizes))
    return (
        np.full(n_cells, -1), np.zeros(weights), np.zeros(n_states, np.int64), np.zeros(weights, np.int64),
        np.zeros(fields), np.zeros((*fields, 4)), np.zeros((n_states, 2, sum(sizes))),
    )  # fmt: skip


def log_joint(states, group: gibbs.Group, layout: gibbs.Layout, prior: gibbs.Prior) -> np.ndarray:
    """Collapsed log-likelihood and log-prior of states (cells, chains) in the law of a group, shape (2, chains).

    As `State.energies`, whichever sampler the states are of: ln p(z) is over the prior's temperature, and a truncated
    field's log-likelihood has its `log_mass`.
    """
    from scipy.special import gammaln

    totals = gibbs.state_totals(group.counts, states, group.observed, prior.n_states) / group.temperature
    totals = np.concatenate([totals, *(totals[..., f].sum(axis=-1, keepdims=True) for f in prior.fields)], axis=-1)
    entries = Entries.of(prior, group.prior_temperature, group.lows)
    totals += entries.offset
    gammas = gammaln(totals)
    likelihood = ((gammas - gammaln(entries.offset)) * entries.sign).sum(axis=(1, 2))
    if entries.lows.any():
        from privpost.samplers.hidden_markov_passes import truncation_masses

        likelihood += truncation_masses(np.stack([totals, gammas], axis=-1), tuple(entries))
    a, n_states = prior.transition, prior.n_states
    moves = gibbs.transition_counts(states, layout, n_states)
    rows = (gammaln(moves + a) - math.lgamma(a)).sum(axis=1)
    rows += math.lgamma(n_states * a) - gammaln(moves.sum(axis=1) + n_states * a)
    log_prior = rows.sum(axis=0) - layout.first.sum() * math.log(n_states)
    return np.stack([likelihood, log_prior / group.prior_temperature])


class Chains:
    """All chains of all groups (`chain.Sampler`), as `hidden_markov_gibbs.Chains`; `rng` is one generator per group.

    A step is a pass over all cells. After the burn-in an iteration of the explicit sampler follows, which draws the
    emissions given the states, and then the states: where emissions are truncated that step is exact, and the passes
    only as good as `log_mass`.

    Args:
        annealing: how chains search for their start, each by itself, before the first step.
        burn_in: steps without emissions.
    """

    def __init__(self, groups, layout: gibbs.Layout, prior: gibbs.Prior, annealing: Annealing, burn_in: int = 0):
        from privpost.samplers.hidden_markov_resplit import collapsed_rounds

        self._rounds, self._explicit = collapsed_rounds, gibbs.Chains(groups, layout, prior)
        self.groups, self.prior, self.slices, self.burn_in = groups, prior, self._explicit.slices, burn_in
        self._layout, self._annealing, self._ladder = layout, annealing, annealing.ladder
        self._cells = [_cells(group, prior.fields) for group in groups]
        self._entries = [Entries.of(prior, group.prior_temperature, group.lows) for group in groups]

    def init(self, rng: Sequence[np.random.Generator]) -> State:
        """Return states that each chain has found by a search of its own, from ones that are drawn uniformly."""
        cold, states = self._explicit.init(rng), []
        for place, own in enumerate(rng):
            first = cold.states[:, self.slices[place]].T
            found = [self._found(place, chain, start, own) for chain, start in enumerate(first)]
            states.append(np.stack([np.resize(one, (len(self._ladder), *one.shape[1:])) for one in found]))
        memory = [[[self._memory() for _ in self._ladder] for _ in own] for own in states]
        energies = [np.full((*own.shape[:2], 2), -np.inf) for own in states]
        return State(states, energies, self._cold(states), memory)

    def _found(self, place: int, chain: int, start, rng) -> np.ndarray:
        """The partitions (members, cells) of a chain's search, the best first."""
        memory, resplits = self._memory(), self._annealing.resplits * self.prior.n_states // 2

        def rounds(states, powers, turn):
            # A split does not know of truncation, and may cool to other modes: every second partition does without.
            number = resplits if self.groups[place].lows is None or turn % 2 else 0
            return sum(self._run(place, chain, states, powers, number, memory, rng))

        if not self._annealing.rounds:
            return start[None]
        return search(start, rounds, self._annealing, self.prior.n_states, self.groups[place].temperature, rng)[0]

    def _memory(self) -> tuple:
        return _memory(len(self._layout.first), self.prior.n_states, self.prior.sizes)

    def _cold(self, states) -> gibbs.State:
        return self._explicit.start(np.concatenate([own[:, 0] for own in states]).T)

    def _run(self, place: int, chain: int, states, powers, resplits: int, memory, rng) -> tuple[float, float]:
        """Rounds at some 1/τ of states (cells,), in place, with resplits after all but the last; its energies."""
        group, n_cells = self.groups[place], len(states)
        return self._rounds(
            states, self.prior.n_states, tuple(self._cells[place][chain]), tuple(self._entries[place]),
            tuple(self._layout), (1 / group.prior_temperature, self.prior.transition), powers,
            rng.random((len(powers), n_cells * (1 if group.lows is None else 2))),
            rng.random((len(powers) - 1, resplits, 4 + 4 * n_cells)), memory,
        )  # fmt: skip

    def step(self, state: State, rng: Sequence[np.random.Generator]) -> tuple[State, np.ndarray]:
        """One round of every chain; the cost is the variates that the emissions took, shape (groups,)."""
        for place, (states, energies, own) in enumerate(zip(state.states, state.energies, rng, strict=True)):
            for chain, replica in itertools.product(range(len(states)), range(len(self._ladder))):
                given = place, chain, states[chain, replica], self._ladder[[replica]], 0
                energies[chain, replica] = self._run(*given, state.memory[place][chain][replica], own)
            for chain in range(len(states)):
                self._exchange(states[chain], energies[chain], state.memory[place][chain], state.rounds % 2, own)
        cold, variates = self._cold(state.states), np.zeros(len(self.groups), np.int64)
        if state.rounds >= self.burn_in:
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
