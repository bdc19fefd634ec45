"""Independent draws from the exact posterior. They show how far draws are from the reference by chance."""

from privpost.inference_benchmark.base import Inferred


def infer(task, releases, rng, budget):
    """Draw from the task's own reference posterior."""
    return Inferred(task.reference(releases, budget.total, rng)[:, None])
