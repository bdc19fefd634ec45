"""Independent draws from the exact posterior, which show how far draws are from the reference by chance."""

from privpost.inference_benchmark.base import Inferred


def infer(task, releases, rng, budget):
    """Draw from the reference posterior of the task."""
    return Inferred(task.reference(releases, budget.total, rng)[:, None])
