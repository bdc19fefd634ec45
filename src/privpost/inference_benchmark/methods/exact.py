"""Independent draws from the exact posterior: they show how far as many draws are from the reference by chance."""

from privpost.inference_benchmark.base import Inferred


def infer(task, releases, rng, budget):
    """Draw by the task's own sums and integrals."""
    return Inferred(task.reference(releases, budget.total, rng)[:, None])
