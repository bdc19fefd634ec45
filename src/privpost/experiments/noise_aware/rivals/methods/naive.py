"""The conjugate posterior that takes the release for the statistics themselves."""

from privpost.experiments.noise_aware.rivals.methods import Inferred


def infer(task, releases, rng, budget):
    """Draw from the conjugate law of the projected release."""
    parameters = task.naive(releases)
    drawn = task.model.sample(parameters, rng, budget.total)
    return Inferred(drawn.reshape(budget.total, len(releases), task.size).transpose(1, 0, 2)[:, None])
