"""Gibbs sampling with a normal approximation of the latent statistics (Bernstein and Sheldon 2018)."""

import numpy as np

from privpost.experiments.noise_aware.rivals.methods import Inferred
from privpost.experiments.noise_aware.rivals.tasks import NetworkTask, Refused, repeated
from privpost.samplers.noise_aware.gibbs import run


def infer(task, releases, rng, budget):
    """Run several chains on each release.

    For redacted sums they allow for the covariance between the redacted sum and that of the other records: how many
    records each of the two has is a multinomial draw.
    """
    if isinstance(task, NetworkTask):
        raise Refused("counts of several families have no normal law of their own here; `records` serves networks")
    return chains(task, task.trial.kernel(*repeated(task, releases, budget.chains), task.n), releases, rng, budget)


def chains(task, kernel, releases, rng, budget):
    """Return the draws of the kernel's chains, those of one release side by side."""
    drawn = []
    run(kernel, rng, budget.burn_in, budget.draws, drawn.append)
    theta = np.concatenate(drawn)
    theta = theta.reshape(budget.draws, -1, len(releases), budget.chains)[:, : task.size]
    return Inferred(theta.transpose(2, 3, 0, 1))
