"""Collapsed Gibbs sampling with replica exchange of the hidden Markov model of `hidden_markov_gibbs`.

Emissions and transitions are integrated out, so that a chain is one of states alone. Beside it run replicas of higher
temperatures τ, each from random states of its own, whose target is the collapsed joint to the power 1/τ; neighbours on
this ladder exchange their states. What a chain yields after every round are the states of τ = 1, with emissions drawn
given them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from privpost.samplers import hidden_markov_gibbs as gibbs


@dataclass(frozen=True)
class Ladder:
    """Temperatures of the replicas, 1 = τ_0 < … < τ_{R−1} = hottest in geometric steps.

    A group that is tempered by T already has fewer of the same steps, up to τ = hottest/T or 3, whichever is more.

    Raises:
        ValueError: no replica, or a hottest temperature below 1.
    """

    replicas: int = 16
    hottest: float = 100.0

    def __post_init__(self):
        if self.replicas < 1:
            raise ValueError(f"replicas is {self.replicas!r}; it must be >= 1")
        if not self.hottest >= 1:
            raise ValueError(f"hottest is {self.hottest!r}; it must be >= 1")

    def powers(self, temperature: float = 1.0) -> np.ndarray:
        """1/τ of a group's replicas, shape (replicas,)."""
        hottest = min(self.hottest, max(3.0, self.hottest / temperature))
        steps = (self.replicas - 1) * math.log(hottest) / max(math.log(self.hottest), 1e-300)
        return np.geomspace(1.0, 1 / hottest, 1 + math.ceil(steps - 1e-9))


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
        indptr = np.concatenate([[0], np.cumsum((table > 0).sum(axis=1))])
        return cls(indptr, np.ascontiguousarray(np.nonzero(table)[1]), table[table > 0])


def _cells(group: gibbs.Group, fields) -> list[Cells]:
    tables = group.counts if group.counts.ndim == 3 else [group.counts] * len(group.observed)
    return [Cells.of(*one, group.temperature, fields) for one in zip(tables, group.observed, strict=True)]


class State(NamedTuple):
    """All chains after a round.

    `states`, for each group (chains, replicas, cells); `energies`, for each group (chains, replicas, 2): the collapsed
    log-likelihood and log-prior at the group's temperatures; `cold` is the `hidden_markov_gibbs.State` of τ = 1;
    `memory`, for each group and chain, spares computing again what has not changed.
    """

    states: Sequence[np.ndarray]
    energies: Sequence[np.ndarray]
    cold: gibbs.State
    memory: Sequence[Sequence[tuple]]
    rounds: int = 0

    def part(self, group: int, chains: slice) -> gibbs.State:
        """The chains of one group at τ = 1, as views."""
        return self.cold.part(group, chains)


class Entries(NamedTuple):
    """What the entries of `Cells` weigh: Σ_k Σ_i sign_i [ln Γ(N_ki + offset_i) − ln Γ(offset_i)] is the log-likelihood.

    `offset`, `sign` (levels + fields,); `bounds` (fields + 1,): where each field's levels begin; `lows` (fields,).
    """

    offset: np.ndarray
    sign: np.ndarray
    bounds: np.ndarray
    lows: np.ndarray

    @classmethod
    def of(cls, prior: gibbs.Prior, prior_temperature: float = 1.0, lows=None) -> Entries:
        """The entries of a group's chains."""
        b, sizes = 1 + (prior.emission - 1) / prior_temperature, np.array(prior.sizes)
        offset = np.concatenate([np.full(sizes.sum(), b), b * sizes])
        sign = np.concatenate([np.ones(sizes.sum()), -np.ones(len(sizes))])
        lows = np.zeros(len(sizes)) if lows is None else np.array(lows, float)
        if lows.any() and b != 1:
            raise ValueError(f"emission is {prior.emission!r}; with truncated emissions it must be 1")
        return cls(offset, sign, np.concatenate([[0], np.cumsum(sizes)]), lows)


def _memory(n_replicas: int, n_cells: int, n_states: int, n_fields: int) -> tuple:
    """What `exchange_round` keeps of one chain's replicas from round to round, empty."""
    weights, masses = (n_replicas, n_cells, n_states), (n_replicas, n_states, n_fields)
    return (
        np.full(weights[:2], -1), np.zeros(weights), np.zeros(masses[:2], np.int64), np.zeros(weights, np.int64),
        np.zeros(masses), np.zeros(masses), np.arange(n_replicas),
    )  # fmt: skip


def log_joint(states, counts, observed, layout: gibbs.Layout, prior: gibbs.Prior) -> np.ndarray:
    """Collapsed log-likelihood and ln p(z) of states (cells, chains), shape (2, chains); counts as in `Group`."""
    from scipy.special import gammaln

    totals = gibbs.state_totals(counts, states, observed, prior.n_states)
    totals = np.concatenate([totals, *(totals[..., f].sum(axis=-1, keepdims=True) for f in prior.fields)], axis=-1)
    offset, sign = Entries.of(prior)[:2]
    likelihood = ((gammaln(totals + offset) - gammaln(offset)) * sign).sum(axis=(1, 2))
    a, n_states = prior.transition, prior.n_states
    moves = gibbs.transition_counts(states, layout, n_states)
    rows = (gammaln(moves + a) - math.lgamma(a)).sum(axis=1)
    rows += math.lgamma(n_states * a) - gammaln(moves.sum(axis=1) + n_states * a)
    return np.stack([likelihood, rows.sum(axis=0) - layout.first.sum() * math.log(n_states)])


class Chains:
    """All chains of all groups (`chain.Sampler`), as `hidden_markov_gibbs.Chains`; `rng` is one generator per group.

    A step is a round: a pass in every replica, and exchanges of neighbours, even and odd pairs by turns. After the
    burn-in an iteration of the explicit sampler follows at τ = 1, which draws the emissions given the states, and then
    the states: where emissions are truncated that step is exact, and the passes only as good as `log_mass`.

    Args:
        ladder: replicas of every chain.
        burn_in: rounds without emissions.
    """

    def __init__(self, groups, layout: gibbs.Layout, prior: gibbs.Prior, ladder: Ladder, burn_in: int = 0):
        from privpost.samplers.hidden_markov_exchange import exchange_round

        self._round, self._explicit = exchange_round, gibbs.Chains(groups, layout, prior)
        self.groups, self.prior, self.slices, self.burn_in = groups, prior, self._explicit.slices, burn_in
        self._layout = layout
        self._powers = [ladder.powers(group.temperature) for group in groups]
        self._cells = [_cells(group, prior.fields) for group in groups]
        self._entries = [Entries.of(prior, group.prior_temperature, group.lows) for group in groups]

    def init(self, rng: Sequence[np.random.Generator]) -> State:
        """Return states of all replicas that are drawn uniformly, each by itself."""
        states = tuple(
            own.integers(self.prior.n_states, size=(len(group.observed), len(powers), len(self._layout.first)))
            for own, group, powers in zip(rng, self.groups, self._powers, strict=True)
        )
        sizes = self.prior.n_states, len(self.prior.sizes)
        memory = [[_memory(*chain.shape, *sizes) for chain in own] for own in states]
        return State(states, tuple(np.zeros((*own.shape[:2], 2)) for own in states), self._cold(states), memory)

    def _cold(self, states) -> gibbs.State:
        return self._explicit.start(np.concatenate([own[:, 0] for own in states]).T)

    def step(self, state: State, rng: Sequence[np.random.Generator]) -> tuple[State, np.ndarray]:
        """One round of every chain; the cost is the variates that the emissions took, shape (groups,)."""
        for place, (group, states, own) in enumerate(zip(self.groups, state.states, rng, strict=True)):
            settings = 1 / group.prior_temperature, self.prior.transition, self._powers[place]
            draws = 1 + states.shape[2] * (1 if group.lows is None else 2)
            for chain, cells in enumerate(self._cells[place]):
                self._round(
                    states[chain], self.prior.n_states, tuple(cells), tuple(self._entries[place]), tuple(self._layout),
                    *settings, own.random((states.shape[1], draws)), state.rounds % 2, state.energies[place][chain],
                    state.memory[place][chain],
                )  # fmt: skip
        cold, variates = self._cold(state.states), np.zeros(len(self.groups), np.int64)
        if state.rounds >= self.burn_in:
            cold, variates = self._explicit.step(cold, rng)
            for states, chains in zip(state.states, self.slices, strict=True):
                states[:, 0] = cold.states[:, chains].T
        return State(state.states, state.energies, cold, state.memory, state.rounds + 1), variates
