"""Gibbs sampling of redacted sums whose segments are independent of each other, as Bernstein and Sheldon (2018) say."""

from privpost.experiments.noise_aware.rivals.methods import gibbs
from privpost.experiments.noise_aware.rivals.tasks import RedactedTask, Refused, repeated, same


def infer(task, releases, rng, budget):
    """Run several chains on each release."""
    if not isinstance(task, RedactedTask):
        raise Refused("only redacted sums have segments")
    trial = same(task, "public_bounds")
    return gibbs.chains(task, trial.kernel(*repeated(task, releases, budget.chains), task.n), releases, rng, budget)
