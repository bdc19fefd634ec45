"""Independent draws from the exact posterior: how far the reference itself is from as many draws of its own."""

from privpost.experiments.noise_aware.rivals.methods import Inferred


def infer(task, releases, rng, budget):
    """Draw by the task's own sums and integrals."""
    return Inferred(task.reference(releases, budget.total, rng)[:, None])
