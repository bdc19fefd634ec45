"""Starts of hidden Markov chains from k-means++ partitions of cells."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from privpost.models.base import check_range
from privpost.samplers import chain
from privpost.samplers.hidden_markov import gibbs
from privpost.samplers.hidden_markov.joint import log_joint

# About how many starts run together. A batch has all starts of one chain, or of several chains with few starts each.
_AT_ONCE = 64


@dataclass(frozen=True)
class Seeding:
    """Makes several starts for each chain, and chooses the start with the largest log joint density.

    A start is a k-means++ partition of the observed cells (Arthur and Vassilvitskii 2007), followed by sweeps of the
    chain. Seeding reads only the data of the chain, so the privacy guarantee of a release from a converged chain is
    unchanged. A release from a chain that has not converged has no guarantee.

    Attributes:
        starts: number of starts of a chain, ≥ 1.
        iterations: number of sweeps of each start, ≥ 1.

    Raises:
        ValueError: a number out of range.
    """

    starts: int = 64
    iterations: int = 40

    def __post_init__(self):
        check_range("[1, inf)", starts=self.starts, iterations=self.iterations)

    def states(self, law: gibbs.Law, layout: gibbs.Layout, prior: gibbs.Prior, rng) -> np.ndarray:
        """Return the first states (cells, chains) of all chains under `law`."""
        shape, at_once = law.observed.shape, max(1, _AT_ONCE // self.starts)
        best, tables = (
            np.empty(shape[::-1], np.intp),
            np.broadcast_to(law.counts, (shape[0], *law.counts.shape[-2:])),
        )
        for begin in range(0, shape[0], at_once):
            chains = slice(begin, begin + at_once)
            observed = law.observed[chains]
            shared = law.counts.ndim == 2 or at_once == 1
            counts = tables[begin] if shared else np.repeat(tables[chains], self.starts, axis=0)
            own = replace(law, counts=counts, observed=np.repeat(observed, self.starts, axis=0))
            states = rng.integers(prior.n_states, size=own.observed.shape[::-1])
            for place, (seen, table) in enumerate(zip(observed, tables[chains], strict=True)):
                tempered, first = np.maximum(table[seen], 0.0) / law.temperature, place * self.starts
                states[seen, first : first + self.starts] = partitions(tempered, prior, self.starts, rng)
            sampler = gibbs.Chains(own, layout, prior)
            ((state, _),) = chain.run(sampler, rng, draws=1, thin=self.iterations, state=gibbs.State(states))
            joints = sum(log_joint(state, own, layout, prior)).reshape(len(observed), self.starts)
            best[:, chains] = state.states[:, joints.argmax(axis=1) + self.starts * np.arange(len(observed))]
        return best


def partitions(counts, prior: gibbs.Prior, starts: int, rng) -> np.ndarray:
    """Return random k-means++ partitions (cells, starts) into K states, given the cells' counts (cells, levels).

    Each centre is a cell, and each cell goes to the nearest centre. The distance is the multinomial deviance of the
    cell's counts from the level shares of the centre, summed over fields. The shares are computed from counts + ½.
    """
    logs = np.empty(counts.shape)
    for field in prior.fields:
        smooth = counts[:, field] + 0.5
        logs[:, field] = np.log(smooth / smooth.sum(axis=1, keepdims=True))
    own = (counts * logs).sum(axis=1)[:, None]
    fits = np.empty((prior.n_states, len(counts), starts))
    distance = np.full((len(counts), starts), np.inf)
    for fit in fits:
        # The first centre is any cell. A later centre is any cell too if all cells lie on centres already.
        ends = np.cumsum(np.where(np.isinf(distance), 1.0, distance + 1e-300), axis=0)
        centres = (ends < rng.random(starts) * ends[-1]).sum(axis=0)
        fit[:] = counts @ logs[centres].T
        distance = np.minimum(distance, np.maximum(own - fit, 0.0))
    return fits.argmax(axis=0)
