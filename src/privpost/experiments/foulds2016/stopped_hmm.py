"""Privacy of a stopped Gibbs chain on a hidden Markov model, by enumeration (Foulds et al. 2016, proposition 3)."""

import itertools
from dataclasses import replace

import numpy as np
from scipy.special import log_softmax

from privpost.experiments.foulds2016.stopped_chains import STARTS, Compared, compared
from privpost.mechanisms.draws.event_states import HiddenMarkovSampler
from privpost.mechanisms.noise.event_counts import prior_of
from privpost.models.events import EventCounts
from privpost.privacy.divergences.glm import independence_chain_guarantee
from privpost.samplers.hidden_markov import gibbs
from privpost.samplers.hidden_markov.joint import log_joint

# The ε that the sampler states, fields of `Compared`, and bounds by composition and by minorisation.
COLUMNS = ("nominal_cost", *Compared._fields, "composed_bound", "minorised_bound")
LEVELS = 2
N_STATES = 2


def data_sets(cells: int, events: int) -> np.ndarray:
    """Return all data sets of `events` events in `cells` cells, as counts (data sets, cells, levels)."""
    places = cells * LEVELS
    bars = np.array(list(itertools.combinations(range(events + places - 1), places - 1)))
    ends = np.pad(bars, ((0, 0), (1, 1)), constant_values=((0, 0), (-1, events + places - 1)))
    return (np.diff(ends, axis=1) - 1).reshape(-1, cells, LEVELS)


def neighbours(counts) -> np.ndarray:
    """Return the indices (2, pairs) of all pairs of data sets that differ in the level or the cell of one event."""
    flat = counts.reshape(len(counts), -1)
    place = {tuple(row): at for at, row in enumerate(flat.tolist())}
    pairs = []
    for source, target in itertools.combinations(range(flat.shape[1]), 2):
        step = np.zeros(flat.shape[1], int)
        step[[source, target]] = -1, 1
        pairs += [(place[tuple(row)], place[tuple(row + step)]) for row in flat if row[source]]
    return np.array(pairs).T


class Chain:
    """The Gibbs chain of a mechanism with two hidden states and one field of two levels.

    A state of the chain is a path and one emission probability per hidden state. A path is the hidden states of all
    cells (2^cells paths). Emission probabilities are on a grid (grid² pairs). As in `hidden_markov.gibbs`, a sweep
    draws the emissions given the path, and then each cell's hidden state given all else.
    """

    def __init__(self, mechanism: HiddenMarkovSampler, grid: int):
        (cells,), (low,) = mechanism.model.cells, mechanism.lows
        self.temperature = mechanism.temperature
        self.paths = np.array(list(itertools.product(range(N_STATES), repeat=cells)))
        probabilities = np.linspace(low, 1 - low, grid)
        self._levels = np.log([probabilities, 1 - probabilities])
        self._grid = np.array(list(itertools.product(range(grid), repeat=N_STATES)))
        # The prior law of the hidden states is the mechanism's law for cells without events.
        empty = mechanism.law(np.zeros((cells, LEVELS)), np.ones((len(self.paths), cells), bool))
        without = gibbs.Law(empty.counts, empty.observed, empty.temperature, empty.prior_temperature)
        settings = gibbs.Layout.of(mechanism.model.regions), prior_of(mechanism.model)
        self._log_prior = log_joint(gibbs.State(self.paths.T), without, *settings)[1]
        differ = self.paths[:, None] != self.paths[None]
        self._alike = [~np.delete(differ, cell, axis=2).any(axis=2) for cell in range(cells)]

    def law(self, counts) -> np.ndarray:
        """Return the law (grid², paths) of an exact draw of emissions and path, given counts (cells, levels)."""
        scores = counts @ self._levels / self.temperature
        joint = self._log_prior + sum(
            cell[self._grid[:, states]] for cell, states in zip(scores, self.paths.T, strict=True)
        )
        return np.exp(log_softmax(joint, axis=None))

    def kernel(self, law) -> np.ndarray:
        """Return the probabilities (grid², paths before, paths after) of emissions and path after a sweep."""
        ends = (law / law.sum(axis=0))[:, :, None] * np.eye(len(self.paths))
        for alike in self._alike:
            site = law[:, None, :] * alike
            ends = ends @ (site / site.sum(axis=2, keepdims=True))
        return ends


def starts(law) -> np.ndarray:
    """Return two laws (2, paths) of a chain's first path: uniform, and uniform over the most probable paths."""
    marginal = law.sum(axis=0)
    # There are several most probable paths, since renaming the states leaves a path's probability unchanged.
    best = np.isclose(marginal, marginal.max(), rtol=1e-9, atol=0)
    return np.array([np.full(len(best), 1 / len(best)), best / best.sum()])


def losses(mechanism: HiddenMarkovSampler, grid: int, sweeps) -> np.ndarray:
    """Return the values (starts, sweeps, columns) of `COLUMNS` after each number of sweeps."""
    counts = data_sets(mechanism.model.cells[0], mechanism.n)
    pairs, chain = neighbours(counts), Chain(mechanism, grid)
    laws = np.array([chain.law(data) for data in counts])
    kernels = [chain.kernel(law) for law in laws]
    moves = [kernel.sum(axis=0) for kernel in kernels]
    begin = np.array([starts(law) for law in laws])
    # A sweep's kernel is sΠ + (1 − s)R with s = `least`, the law Π of an exact draw and another kernel R. So the
    # guarantee of an independence chain holds with 1/M = s.
    least = min(float((kernel / law[:, None]).min()) for kernel, law in zip(kernels, laws, strict=True))
    height = (begin / laws.sum(axis=1)[:, None]).max(axis=(0, 2))
    nominal, flat, rows = mechanism.cost().epsilon, laws.reshape(len(laws), -1), []
    for start, steps in itertools.product(range(len(STARTS)), sweeps):
        ends = [
            first[start] @ np.linalg.matrix_power(move, steps - 1) @ kernel
            for first, move, kernel in zip(begin, moves, kernels, strict=True)
        ]
        # Composition counts the cost of the updates, but not the cost of a start that depends on the data.
        composed = replace(mechanism, iterations=steps).unconverged_cost() if STARTS[start] == "uniform" else np.nan
        rejected = np.exp(steps * np.log1p(-least))
        minorised = independence_chain_guarantee(nominal, rejected, height[start]) if rejected < 1 else np.inf
        measured = compared(np.array(ends).reshape(flat.shape), flat, pairs)
        rows.append([nominal, *measured, composed, float(minorised)])
    return np.array(rows).reshape(len(STARTS), len(sweeps), -1)


def axes(config) -> dict:
    """Return the labels of one ε's rows, by column: kinds of starts, and numbers of sweeps."""
    return {"start": STARTS, "sweeps": config.sweeps}


def simulate(config) -> np.ndarray:
    """Return the losses (epsilons, rows, columns) at every ε, start and number of sweeps."""
    model, by_epsilon = EventCounts((config.cells,), (LEVELS,), N_STATES), []
    for epsilon in config.epsilons:
        mechanism = HiddenMarkovSampler(model, config.events, epsilon, truncation=config.truncation)
        by_epsilon.append(losses(mechanism, config.probabilities, config.sweeps).reshape(-1, len(COLUMNS)))
    return np.array(by_epsilon)
