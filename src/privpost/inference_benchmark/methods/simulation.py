"""Simulations from the prior, weighted by the density of the noise. It is exact ABC with the noise as kernel.

Gong (2022), "Exact inference with approximate computation for differentially private data via perturbations".
"""

import numpy as np

from privpost.inference_benchmark.base import Inferred

# Number of simulated data sets, which all releases of a task share.
SIMULATIONS = 20_000


def infer(task, releases, rng, budget):
    """Resample draws from the prior by their weights."""
    theta = task.prior(SIMULATIONS, rng)
    exact = task.simulate(theta, rng)
    drawn, effective = [], []
    for release in releases:
        logs = task.noise_log_density(release, exact)
        weights = np.exp(logs - logs.max())
        weights /= weights.sum()
        drawn.append(theta[rng.choice(SIMULATIONS, budget.total, p=weights)])
        effective.append(1 / (np.square(weights).sum() + 1 / budget.total))
    return Inferred(np.stack(drawn)[:, None], np.array(effective))
