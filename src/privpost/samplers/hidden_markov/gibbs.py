"""Gibbs sampler of a hidden Markov model with categorical emissions and collapsed transitions, many chains at once.

The model (Foulds et al. 2016, section 5): regions are independent Markov chains over months that start uniformly and
share transition rows θ_k ~ Dir(a, …, a), which are integrated out; a cell (region, month) in state k has counts
C_d ~ Multinomial(φ_kd) for each field d, φ_kd ~ Dir(b, …, b). One iteration draws φ given the states and then every
state given all others and φ, month by month. A chain at temperature T samples from the joint of states and φ to the
power 1/T.
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
    """Which cells are neighbours: cells of a region follow each other in time; shape (cells,) each, bool.

    `first` and `last` mark the ends of each region's chain. A month without events has no cell: the cells before and
    after it are neighbours.
    """

    first: np.ndarray
    last: np.ndarray

    @classmethod
    def of(cls, region) -> Layout:
        """The layout of cells sorted by region and then by month; `region` has shape (cells,)."""
        region = np.asarray(region)
        change = region[1:] != region[:-1]
        return cls(np.concatenate([[True], change]), np.concatenate([change, [True]]))


@dataclass(frozen=True)
class Group:
    """Chains that share a temperature and a truncation.

    Attributes:
        counts: (cells, levels) for all chains, or (chains, cells, levels) for each; real-valued. Where noise makes them
            negative, cells are scored by them as they are, and a state's totals are clipped at 0.
        observed: (chains, cells) bool; the counts of the other cells are held out.
        temperature: T ≥ 1 of the likelihood.
        prior_temperature: T ≥ 1 of the priors of states and emissions; `temperature` when None.
        lows: smallest probability of a level for each field (0 for none), shape (fields,).
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

    `states` (cells, chains); `counts` of each group; `probabilities` (chains, K, levels), the fields one after the
    other, and their logarithms; `transitions` (K, K, chains), the counts of moves from state to state; `rates`
    (chains, cells) of noise-aware chains only. All but states and counts may be None before the first iteration.
    """

    states: np.ndarray
    counts: Sequence[np.ndarray]
    probabilities: np.ndarray | None = None
    log_probabilities: np.ndarray | None = None
    transitions: np.ndarray | None = None
    rates: np.ndarray | None = None

    def part(self, group: int, chains: slice) -> State:
        """The chains of one group, as views."""
        own = [None if values is None else values[chains] for values in (*self[2:4], self.rates)]
        moves = None if self.transitions is None else self.transitions[:, :, chains]
        return State(self.states[:, chains], self.counts[group : group + 1], own[0], own[1], moves, own[2])


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
        """The levels of each field."""
        ends = np.cumsum(self.sizes)
        return [slice(int(end - size), int(end)) for end, size in zip(ends, self.sizes, strict=True)]


def transition_counts(states, layout: Layout, n_states: int) -> np.ndarray:
    """Moves from state to state within regions, shape (K, K, chains), of states (cells, chains)."""
    inner, n_chains = np.flatnonzero(~layout.last), states.shape[1]
    index = (states[inner] * n_states + states[inner + 1]) * n_chains + np.arange(n_chains)
    return np.bincount(index.ravel(), minlength=n_states**2 * n_chains).reshape(n_states, n_states, n_chains)


def site_prior(states, transitions, sites, layout: Layout, a: float) -> np.ndarray:
    """p(z_t | all other states), as `kernels.site_weights` has it, shape (sites, K, chains).

    States and transitions are those of a `State`; `sites` (sites, chains) are cells, one list per chain.
    """
    from privpost.samplers.hidden_markov.kernels import site_probabilities

    given = (np.ascontiguousarray(values, np.int64) for values in (states, transitions, sites))
    return site_probabilities(*given, tuple(layout), float(a))


class Chains:
    """All chains of all groups, one group after the other (`chain.Sampler`); `rng` is one generator per group.

    An iteration's cost is the number of gamma and exponential variates for the emissions of each group's chains,
    rejected ones included: shape (groups,). Those of a seeding are not counted.

    Args:
        seeding: a `seeds.Seeding`, by which each chain starts; None for states drawn uniformly, as the paper's.
    """

    def __init__(self, groups: Sequence[Group], layout: Layout, prior: Prior, seeding=None):
        self.groups, self.prior, self.seeding = groups, prior, seeding
        ends = np.cumsum([len(group.observed) for group in groups])
        self.slices = [slice(int(end - len(group.observed)), int(end)) for end, group in zip(ends, groups, strict=True)]
        self.layout = layout
        self._probabilities, self._logs = np.empty((2, int(ends[-1]), prior.n_states, sum(prior.sizes)))
        # Imported only to run chains: loading the compiler takes longer than most commands.
        from privpost.samplers.hidden_markov.kernels import explicit_sweep

        self._sweep = explicit_sweep

    def init(self, rng: Sequence[np.random.Generator]) -> State:
        """Return the states before the first iteration: drawn uniformly, or the seeding's."""
        draws = [
            own.integers(self.prior.n_states, size=group.observed.shape[::-1])
            if self.seeding is None
            else self.seeding.states(group, self.layout, self.prior, own)
            for group, own in zip(self.groups, rng, strict=True)
        ]
        return self.start(np.concatenate(draws, axis=1))

    def start(self, states) -> State:
        """Return the state before the first iteration, with a copy of states (cells, chains)."""
        return State(np.array(states, dtype=np.intp), tuple(group.counts for group in self.groups))

    def step(self, state: State, rng: Sequence[np.random.Generator]) -> tuple[State, np.ndarray]:
        """Draw the emissions given the states, then every state given all others."""
        states, probabilities, logs = state.states, self._probabilities, self._logs
        variates, n_states = np.zeros(len(self.groups), np.int64), self.prior.n_states
        moves = transition_counts(states, self.layout, n_states)
        for place, (group, chains, group_rng) in enumerate(zip(self.groups, self.slices, rng, strict=True)):
            totals = np.maximum(state_totals(group.counts, states[:, chains], group.observed, n_states), 0.0)
            probabilities[chains], variates[place] = draw_emissions(group, totals, self.prior, group_rng)
            np.log(probabilities[chains], out=logs[chains])
            scores = logs[chains] @ np.swapaxes(group.counts, -1, -2)
            scores *= group.observed[:, None] / group.temperature
            scores -= scores.max(axis=1, keepdims=True)
            np.exp(scores, out=scores)
            uniforms = group_rng.random((len(states), len(group.observed)))
            settings = 1 / group.prior_temperature, self.prior.transition
            self._sweep(states[:, chains], scores, uniforms, tuple(self.layout), *settings, moves[..., chains])
        return State(states, state.counts, probabilities, logs, moves), variates


class End(NamedTuple):
    """A group's last state, and the number of variates for its emissions."""

    state: State
    variates: int


def follow(
    sampler: Chains, rng: Sequence[np.random.Generator], iterations: int, watches: Sequence[Callable | None]
) -> list[End]:
    """Run chains for at least one iteration, and call each group's watch after every one.

    A watch is None, or a function of the iteration's number, from 0, and the group's `State`.
    """
    variates = 0
    for iteration, (state, (cost,)) in enumerate(chain.run(sampler, rng, draws=iterations)):
        variates = variates + cost
        for place, (chains, watch) in enumerate(zip(sampler.slices, watches, strict=True)):
            if watch is not None:
                watch(iteration, state.part(place, chains))
    return [End(state.part(place, chains), int(variates[place])) for place, chains in enumerate(sampler.slices)]


def state_totals(counts, states, observed, n_states: int) -> np.ndarray:
    """Counts of the observed cells summed by state, shape (chains, K, levels); arguments as in `Group` and `State`."""
    member = (states.T[:, None] == np.arange(n_states)[:, None]) & observed[:, None]
    return member.astype(float) @ counts


def draw_emissions(group: Group, totals, prior: Prior, rng) -> tuple[np.ndarray, int]:
    """Draw the levels' probabilities given their totals (..., levels) in states; return them, and how many variates."""
    concentration = 1 + (prior.emission - 1) / group.prior_temperature + totals / group.temperature
    draws, variates = np.empty_like(concentration), 0
    lows = [0.0] * len(prior.sizes) if group.lows is None else group.lows
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
