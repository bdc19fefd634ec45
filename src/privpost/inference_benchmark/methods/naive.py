"""The conjugate posterior if the release is taken for the statistics themselves, which ignores the noise."""

from privpost.inference_benchmark.base import Inferred


def infer(task, releases, rng, budget):
    """Draw from the conjugate posterior given the projected release."""
    return Inferred(task.naive(releases, budget.total, rng)[:, None])
