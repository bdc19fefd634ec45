"""Quadrature of the posterior given redacted or clamped sums, which are treated as normal."""

import numpy as np

from privpost.inference_benchmark.base import Inferred, Refused
from privpost.inference_benchmark.tasks.sums import ClampedTask, RedactedTask


def infer(task, releases, rng, budget):
    """Draw with the mechanism's method `posterior`."""
    if not isinstance(task, RedactedTask | ClampedTask):
        raise Refused("it serves redacted and clamped sums; of counts the exact posterior is a sum")
    drawn = [np.asarray(task.mechanism.posterior(release, budget.total, rng)) for release in releases]
    return Inferred(np.stack(drawn).reshape(len(releases), 1, budget.total, task.size))
