"""Chains on the latent records of a Bayesian network."""

import numpy as np

from privpost.inference_benchmark.base import Inferred, Refused
from privpost.inference_benchmark.tasks.networks import NetworkTask
from privpost.samplers import chain


def infer(task, releases, rng, budget):
    """Flip single bits of records, shift many records at once, and draw θ given the counts."""
    if not (isinstance(task, NetworkTask) and task.complete):
        raise Refused("it moves records of Bayesian networks only, all of whose counts are released")
    from privpost.samplers.noise_aware.records import Records

    sampler = Records(task.model, np.repeat(releases, budget.chains, axis=0), task.n, task.scale)
    states = chain.run(sampler, rng, draws=budget.draws, burn_in=budget.burn_in)
    counts = np.stack([state.counts.copy().reshape(len(releases), budget.chains, -1) for state, _ in states])
    return Inferred(task.update(counts.transpose(1, 2, 0, 3), rng))
