"""Chains on the latent contingency table of a small Bayesian network."""

import numpy as np

from privpost.inference_benchmark.base import Inferred, Refused
from privpost.inference_benchmark.tasks.networks import NetworkTask
from privpost.samplers import chain
from privpost.samplers.noise_aware.table import Tables


def infer(task, releases, rng, budget):
    """Move records between cells of the table, then draw θ given the counts."""
    if not (isinstance(task, NetworkTask) and task.complete):
        raise Refused("it moves tables of Bayesian networks only, all of whose counts are released")
    sampler = Tables(task.model, np.repeat(releases, budget.chains, axis=0), task.n, task.scale)
    states = chain.run(sampler, rng, draws=budget.draws, burn_in=budget.burn_in)
    counts = np.stack([state.counts.T.copy().reshape(len(releases), budget.chains, -1) for state, _ in states])
    return Inferred(task.update(counts.transpose(1, 2, 0, 3).astype(float), rng))
