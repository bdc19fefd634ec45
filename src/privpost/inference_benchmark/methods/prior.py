"""Draws from the prior, which ignore the release."""

from privpost.inference_benchmark.base import Inferred


def infer(task, releases, rng, budget):
    """Draw from the prior."""
    drawn = task.prior(len(releases) * budget.total, rng)
    return Inferred(drawn.reshape(len(releases), 1, budget.total, task.size))
