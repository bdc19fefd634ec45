"""Gibbs sampler of a hidden Markov model with categorical emissions, transitions integrated out; many chains at once.

The model (Foulds et al. 2016, section 5): regions are independent Markov chains over months that start uniformly and
share transition rows θ_k ~ Dir(a, …, a), which are integrated out; a cell (region, month) in state k has counts
C_d ~ Multinomial(φ_kd) for each field d, φ_kd ~ Dir(b, …, b). One iteration draws φ given the states and then every
state given all others and φ, month by month. A chain at temperature T samples from the joint law of states and φ,
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
    """Marks of the first and of the last cell of each region, two bool arrays (cells,).

    Cells of a region follow each other in time. A month without events has no cell, so the cells before and after such
    a month are neighbours.
    """

    first: np.ndarray
    last: np.ndarray

    @classmethod
    def of(cls, region) -> Layout:
        """Return the layout of cells sorted by region and then by month; `region` (cells,) has the cells' regions."""
        region = np.asarray(region)
        change = region[1:] != region[:-1]
        return cls(np.concatenate([[True], change]), np.concatenate([change, [True]]))


@dataclass(frozen=True)
class Law:
    """The counts of events that chains are given, and the temperatures and bounds of the chains' law.

    Attributes:
        counts: real-valued, (cells, levels) shared by all chains, or (chains, cells, levels). Noisy counts may be
            negative: cells' likelihoods use negative counts unchanged, and the totals of a state are clipped at 0.
        observed: (chains, cells) bool, whether a chain is given the counts of a cell; other counts are held out.
        temperature: T ≥ 1 of the likelihood.
        prior_temperature: T ≥ 1 of the priors of states and emissions; `temperature` when None.
        lows: lower bound of the levels' probabilities in each field, shape (fields,), 0 for no bound; or None.
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
    """All chains after an iteration.

    Arrays are `states` (cells, chains), the levels' `probabilities` and `log_probabilities` (chains, K, levels) with
    the fields one after the other, and `transitions` (K, K, chains), the counts of moves from state to state. Only
    noise-aware chains have `rates` (chains, cells). All but `states` may be None before the first iteration.
    """

    states: np.ndarray
    probabilities: np.ndarray | None = None
    log_probabilities: np.ndarray | None = None
    transitions: np.ndarray | None = None
    rates: np.ndarray | None = None


@dataclass(frozen=True)
class Prior:
    """Sizes and prior of the model: K states, the fields' numbers of levels, and the concentrations a, b > 0."""

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
    """Count the moves from state to state within regions, shape (K, K, chains), given states (cells, chains)."""
    inner, n_chains = np.flatnonzero(~layout.last), states.shape[1]
    index = (states[inner] * n_states + states[inner + 1]) * n_chains + np.arange(n_chains)
    return np.bincount(index.ravel(), minlength=n_states**2 * n_chains).reshape(n_states, n_states, n_chains)


def site_prior(states, transitions, sites, layout: Layout, a: float) -> np.ndarray:
    """Return p(z_t | all other states) for the cells t in `sites`, shape (sites, K, chains).

    `states` and `transitions` are arrays of a `State`. `sites` (sites, chains) lists cells of each chain.
    `kernels.site_weights` has the formula.
    """
    from privpost.samplers.hidden_markov.kernels import site_probabilities

    given = (np.ascontiguousarray(values, np.int64) for values in (states, transitions, sites))
    return site_probabilities(*given, tuple(layout), float(a))


class Chains:
    """Chains that share a law (`chain.Sampler`).

    An iteration's cost is the number of gamma and exponential variates for the emissions of all chains, including
    rejected variates. Variates that a seeding uses are not counted.

    Args:
        seeding: the `seeds.Seeding` that gives the first states; None for states drawn uniformly, as in the paper.
    """

    def __init__(self, law: Law, layout: Layout, prior: Prior, seeding=None):
        # Imported only to run chains: loading the compiler takes longer than most commands.
        from privpost.samplers.hidden_markov.kernels import explicit_sweep

        self.law, self.layout, self.prior, self.seeding, self._sweep = law, layout, prior, seeding, explicit_sweep

    def init(self, rng: np.random.Generator) -> State:
        """Return the states before the first iteration, drawn uniformly or given by the seeding."""
        if self.seeding is not None:
            return State(self.seeding.states(self.law, self.layout, self.prior, rng))
        return State(rng.integers(self.prior.n_states, size=self.law.observed.shape[::-1]))

    def step(self, state: State, rng: np.random.Generator) -> tuple[State, int]:
        """Draw the emissions given the states, then every state given all other states; states change in place."""
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
    """Run chains for `iterations` ≥ 1 and call `watch(iteration, state)` after every iteration, counted from 0."""
    variates = 0
    for iteration, (state, (cost,)) in enumerate(chain.run(sampler, rng, draws=iterations)):
        variates += cost
        if watch is not None:
            watch(iteration, state)
    return End(state, variates)


def state_totals(counts, states, observed, n_states: int) -> np.ndarray:
    """Sum the counts of the observed cells by state, shape (chains, K, levels); arguments as in `Law` and `State`."""
    member = (states.T[:, None] == np.arange(n_states)[:, None]) & observed[:, None]
    return member.astype(float) @ counts


def draw_emissions(law: Law, totals, prior: Prior, rng) -> tuple[np.ndarray, int]:
    """Draw the levels' probabilities given each state's totals (..., levels); also return the number of variates."""
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
