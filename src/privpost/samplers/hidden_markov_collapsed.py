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

    @property
    def powers(self) -> np.ndarray:
        """1/τ, shape (replicas,)."""
        return np.geomspace(1.0, 1 / self.hottest, self.replicas)


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
        return cls(indptr, np.nonzero(table)[1], table[table > 0])


def _cells(group: gibbs.Group, fields) -> list[Cells]:
    tables = group.counts if group.counts.ndim == 3 else [group.counts] * len(group.observed)
    return [Cells.of(*one, group.temperature, fields) for one in zip(tables, group.observed, strict=True)]


class State(NamedTuple):
    """All chains after a round: `states` of all replicas (chains, replicas, cells), `energies` (chains, replicas, 2).

    `energies` are the collapsed log-likelihood and log-prior of each replica, both at the group's temperatures;
    `cold` is the `hidden_markov_gibbs.State` of τ = 1.
    """

    states: np.ndarray
    energies: np.ndarray
    cold: gibbs.State
    rounds: int = 0


def entries(prior: gibbs.Prior, prior_temperature: float = 1.0) -> tuple[np.ndarray, np.ndarray]:
    """Offset of each level and field in ln Γ(total + offset), and the sign of that term; shape (levels + fields,) each.

    The collapsed log-likelihood is Σ_k Σ_i sign_i [ln Γ(N_ki + offset_i) − ln Γ(offset_i)].
    """
    b = 1 + (prior.emission - 1) / prior_temperature
    offset = np.concatenate([np.full(sum(prior.sizes), b), b * np.array(prior.sizes, float)])
    return offset, np.concatenate([np.ones(sum(prior.sizes)), -np.ones(len(prior.sizes))])


def log_joint(states, counts, observed, layout: gibbs.Layout, prior: gibbs.Prior) -> np.ndarray:
    """Collapsed log-likelihood and ln p(z) of states (cells, chains), shape (2, chains); counts as in `Group`."""
    from scipy.special import gammaln

    totals = gibbs.state_totals(counts, states, observed, prior.n_states)
    totals = np.concatenate([totals, *(totals[..., f].sum(axis=-1, keepdims=True) for f in prior.fields)], axis=-1)
    offset, sign = entries(prior)
    likelihood = ((gammaln(totals + offset) - gammaln(offset)) * sign).sum(axis=(1, 2))
    a, n_states = prior.transition, prior.n_states
    moves = gibbs.transition_counts(states, layout, n_states)
    rows = (gammaln(moves + a) - math.lgamma(a)).sum(axis=1)
    rows += math.lgamma(n_states * a) - gammaln(moves.sum(axis=1) + n_states * a)
    return np.stack([likelihood, rows.sum(axis=0) - layout.first.sum() * math.log(n_states)])


class Chains:
    """All chains of all groups (`chain.Sampler`), as `hidden_markov_gibbs.Chains`; `rng` is one generator per group.

    A step is a round: a pass in every replica, and exchanges of neighbours, even and odd pairs by turns.

    Args:
        ladder: replicas of every chain.
        burn_in: rounds after which no emissions are drawn, since nothing is kept of them.
    """

    def __init__(self, groups, layout: gibbs.Layout, prior: gibbs.Prior, ladder: Ladder, burn_in: int = 0):
        # Imported by those who run chains: loading the compiler takes longer than most commands.
        from privpost.samplers import hidden_markov_kernels as kernels

        self.groups, self.prior, self.burn_in = groups, prior, burn_in
        self._kernels, self._powers = kernels, ladder.powers
        ends = np.cumsum([len(group.observed) for group in groups])
        self.slices = [slice(int(end - len(group.observed)), int(end)) for end, group in zip(ends, groups, strict=True)]
        self._layout = layout
        self._cells = [_cells(group, prior.fields) for group in groups]
        self._entries = [entries(prior, group.prior_temperature) for group in groups]

    def init(self, rng: Sequence[np.random.Generator]) -> State:
        """Return states of all replicas that are drawn uniformly, each by itself."""
        shape = len(self._powers), len(self._layout.first)
        states = [
            own.integers(self.prior.n_states, size=(len(group.observed), *shape))
            for own, group in zip(rng, self.groups, strict=True)
        ]
        states = np.concatenate(states)
        return State(states, np.empty((*states.shape[:2], 2)), self._cold(states))

    def _cold(self, states) -> gibbs.State:
        return gibbs.State(states[:, 0].T, tuple(group.counts for group in self.groups))

    def step(self, state: State, rng: Sequence[np.random.Generator]) -> tuple[State, np.ndarray]:
        """One round of every chain; the cost is the variates that the emissions took, shape (groups,)."""
        states, energies = state.states, state.energies
        n_replicas, n_cells = states.shape[1:]
        n_states = self.prior.n_states
        for group, chains, cells, offsets, own in zip(
            self.groups, self.slices, self._cells, self._entries, rng, strict=True
        ):
            uniforms = own.random((len(group.observed), n_replicas, n_cells + 1))
            settings = 1 / group.prior_temperature, self.prior.transition, self._powers
            for place, chain in enumerate(range(chains.start, chains.stop)):
                self._kernels.exchange_round(
                    states[chain], n_states, tuple(cells[place]), offsets, tuple(self._layout), *settings,
                    uniforms[place], state.rounds % 2, energies[chain],
                )  # fmt: skip
        cold, variates = self._cold(states), np.zeros(len(self.groups), np.int64)
        if state.rounds >= self.burn_in:
            cold, variates = self._emissions(cold, rng)
        return State(states, energies, cold, state.rounds + 1), variates

    def _emissions(self, cold: gibbs.State, rng) -> tuple[gibbs.State, np.ndarray]:
        draws, variates = [], []
        for group, chains, own in zip(self.groups, self.slices, rng, strict=True):
            totals = gibbs.state_totals(group.counts, cold.states[:, chains], group.observed, self.prior.n_states)
            drawn, taken = gibbs.draw_emissions(group, totals, self.prior, own)
            draws.append(drawn)
            variates.append(taken)
        probabilities = np.concatenate(draws)
        moves = gibbs.transition_counts(cold.states, self._layout, self.prior.n_states)
        cold = cold._replace(probabilities=probabilities, log_probabilities=np.log(probabilities), transitions=moves)
        return cold, np.array(variates)
