"""Gibbs sampling that treats sums inside and outside the bounds as independent (Bernstein and Sheldon 2018)."""

import numpy as np

from privpost.inference_benchmark.base import Refused
from privpost.inference_benchmark.methods import gibbs
from privpost.inference_benchmark.tasks.sums import RedactedTask


def infer(task, releases, rng, budget):
    """Run several chains on each release."""
    if not isinstance(task, RedactedTask):
        raise Refused("only redacted sums have segments")
    repeated = np.repeat(releases[:, 0], budget.chains)
    return gibbs.chains(task, gibbs.redacted(task, repeated, "independent"), releases, rng, budget)
