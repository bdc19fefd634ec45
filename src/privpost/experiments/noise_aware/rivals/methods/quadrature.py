"""The posterior of a redacted sum by quadrature, the sum's own law taken as normal: what `privpost release` gives."""

import numpy as np

from privpost.experiments.noise_aware.rivals.methods import Inferred
from privpost.experiments.noise_aware.rivals.tasks import RedactedTask, Refused


def infer(task, releases, rng, budget):
    """Draw by the mechanism's own `posterior`."""
    if not isinstance(task, RedactedTask):
        raise Refused("it serves redacted sums; of counts the exact posterior is a sum")
    drawn = [np.asarray(task.mechanism.posterior(release, budget.total, rng)) for release in releases]
    return Inferred(np.stack(drawn)[:, None, :, None])
