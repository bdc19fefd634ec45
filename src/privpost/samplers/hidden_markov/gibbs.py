"""Gibbs sampler of a hidden Markov model of event counts (Foulds et al. 2016, section 5).

Each region is a Markov chain over months with a uniform first state. All regions share the transition rows
θ_k ~ Dir(a, …, a), which are integrated out. A cell is one month of one region. For each field d, a cell in state k has
the counts C_d ~ Multinomial(φ_kd), with emissions φ_kd ~ Dir(b, …, b). An iteration draws φ given all states, then each
state given φ and all other states. Chains at temperature T sample from the joint law of φ and states, with this law
raised to the power 1/T.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from privpost.models.base import check_range
from privpost.samplers import chain
from privpost.samplers.truncated_dirichlet import exact as truncated_dirichlet


class Layout(NamedTuple):
    """Two bool arrays (cells,) that mark the first and the last cell of each region.

    Cells of a region follow each other in time. A month without events has no cell, so the cells before and after this
    month are neighbours.
    """

    first: np.ndarray
    last: np.ndarray

    @classmethod
    def of(cls, region) -> Layout:
        """Return the layout, given the region (cells,) of each cell. Cells are sorted by region, then by month."""
        region = np.asarray(region)
        change = region[1:] != region[:-1]
        return cls(np.concatenate([[True], change]), np.concatenate([change, [True]]))


@dataclass(frozen=True)
class Law:
    """The event counts, temperatures and bounds that define the law from which chains sample.

    Attributes:
        counts: real-valued event counts, (cells, levels) shared by all chains, or (chains, cells, levels). Likelihoods
            use negative noisy counts unchanged, and the total counts of a state are clipped at 0.
        observed: bool (chains, cells), whether a chain is given the counts of a cell. Other counts are held out.
        temperature: temperature T ≥ 1 of the likelihood.
        prior_temperature: temperature T ≥ 1 of the priors of states and emissions; None for `temperature`.
        lows: lower bounds (fields,), one for all probabilities of a field; None for no bounds.
    """

    counts: np.ndarray
    observed: np.ndarray
    temperature: float = 1.0
    prior_temperature: float | None = None
    lows: Sequence[float] | None = None

    def __post_init__(self):
        if self.prior_temperature is None:
            object.__setattr__(self, "prior_temperature", self.temperature)
        check_range("[1, inf)", temperature=self.temperature, prior_temperature=self.prior_temperature)
        if not np.all(np.isfinite(self.counts)):
            raise ValueError("counts must be finite")


class State(NamedTuple):
    """The current state of all chains.

    `states` (cells, chains) holds the hidden states. `probabilities` (chains, K, levels) holds the emissions, with the
    fields one after the other. `transitions` (K, K, chains) counts the moves from state to state. Noise-aware chains
    also have `rates` (chains, cells). Before the first iteration, all arrays except `states` may be None.
    """

    states: np.ndarray
    probabilities: np.ndarray | None = None
    log_probabilities: np.ndarray | None = None
    transitions: np.ndarray | None = None
    rates: np.ndarray | None = None


@dataclass(frozen=True)
class Prior:
    """The number K of states, the numbers of levels of the fields, and the concentrations a and b of the priors."""

    n_states: int
    sizes: tuple[int, ...]
    transition: float = 1.0
    emission: float = 1.0

    def __post_init__(self):
        check_range("[1, inf)", n_states=self.n_states)
        check_range("(0, inf]", transition=self.transition, emission=self.emission)

    @property
    def fields(self) -> list[slice]:
        """The slice of levels that belongs to each field."""
        ends = np.cumsum(self.sizes)
        return [slice(int(end - size), int(end)) for end, size in zip(ends, self.sizes, strict=True)]


def transition_counts(states, layout: Layout, n_states: int) -> np.ndarray:
    """Return the numbers (K, K, chains) of moves from state to state within regions."""
    inner, n_chains = np.flatnonzero(~layout.last), states.shape[1]
    index = (states[inner] * n_states + states[inner + 1]) * n_chains + np.arange(n_chains)
    return np.bincount(index.ravel(), minlength=n_states**2 * n_chains).reshape(n_states, n_states, n_chains)


def site_prior(states, transitions, sites, layout: Layout, a: float) -> np.ndarray:
    """Return, for each cell t in `sites`, the law p(z_t | all other states) of the hidden state z_t.

    The result has the shape (sites, K, chains). `sites` (sites, chains) lists cells of each chain. `states` and
    `transitions` are as in `State`, and a is the concentration of transitions. `kernels.site_weights` has the formula.
    """
    from privpost.samplers.hidden_markov.kernels import site_probabilities

    given = (np.ascontiguousarray(values, np.int64) for values in (states, transitions, sites))
    return site_probabilities(*given, tuple(layout), float(a))


class Chains:
    """Gibbs chains (`chain.Sampler`) that share a law.

    The cost of an iteration is the number of random variates drawn for the emissions of all chains, including rejected
    variates. Variates for the first states are not counted.

    Args:
        seeding: source of the first states; None for uniform states, as in the paper.
    """

    def __init__(self, law: Law, layout: Layout, prior: Prior, seeding=None):
        # Imported only to run chains: loading the compiler takes longer than most commands.
        from privpost.samplers.hidden_markov.kernels import explicit_sweep

        self.law, self.layout, self.prior, self.seeding, self._sweep = law, layout, prior, seeding, explicit_sweep

    def init(self, rng: np.random.Generator) -> State:
        """Return the first states, from the seeding or drawn uniformly."""
        if self.seeding is not None:
            return State(self.seeding.states(self.law, self.layout, self.prior, rng))
        return State(rng.integers(self.prior.n_states, size=self.law.observed.shape[::-1]))

    def step(self, state: State, rng: np.random.Generator) -> tuple[State, int]:
        """Draw the emissions given the states, then every state given the emissions and all other states."""
        law, prior, states = self.law, self.prior, state.states
        moves = transition_counts(states, self.layout, prior.n_states)
        totals = np.maximum(state_totals(law.counts, states, law.observed, prior.n_states), 0.0)
        probabilities, variates = draw_emissions(law, totals, prior, rng)
        logs = np.log(probabilities)
        scores = logs @ np.swapaxes(law.counts, -1, -2)
        scores *= law.observed[:, None] / law.temperature
        scores -= scores.max(axis=1, keepdims=True)
        np.exp(scores, out=scores)
        settings = tuple(self.layout), 1 / law.prior_temperature, prior.transition, moves
        self._sweep(states, scores, rng.random(states.shape), *settings)
        return State(states, probabilities, logs, moves), variates


class End(NamedTuple):
    """The last state of the chains, and the number of random variates drawn for the emissions."""

    state: State
    variates: int


def follow(sampler: Chains, rng: np.random.Generator, iterations: int, watch: Callable | None = None) -> End:
    """Run chains and call `watch(iteration, state)` after every iteration, with iterations counted from 0."""
    variates = 0
    for iteration, (state, (cost,)) in enumerate(chain.run(sampler, rng, draws=iterations)):
        variates += cost
        if watch is not None:
            watch(iteration, state)
    return End(state, variates)


def state_totals(counts, states, observed, n_states: int) -> np.ndarray:
    """Return totals (chains, K, levels): for each state, the summed counts of its observed cells."""
    member = (states.T[:, None] == np.arange(n_states)[:, None]) & observed[:, None]
    return member.astype(float) @ counts


def draw_emissions(law: Law, totals, prior: Prior, rng) -> tuple[np.ndarray, int]:
    """Return emissions drawn given the total counts of each state, and the number of random variates used."""
    concentration = 1 + (prior.emission - 1) / law.prior_temperature + totals / law.temperature
    draws, variates = np.empty_like(concentration), 0
    lows = [0.0] * len(prior.sizes) if law.lows is None else law.lows
    for field, low in zip(prior.fields, lows, strict=True):
        if low > 0:
            draws[..., field], number = truncated_dirichlet.sample_counted(concentration[..., field], low, rng)
            variates += number
        else:
            variates += concentration[..., field].size
            gammas = rng.standard_gamma(concentration[..., field])
            draws[..., field] = gammas / gammas.sum(axis=-1, keepdims=True)
    # A gamma variate of shape 1 is 0 with probability about 1e-300; a probability of 0 has no logarithm.
    return np.maximum(draws, np.finfo(float).tiny), variates
