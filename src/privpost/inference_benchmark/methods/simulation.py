"""Simulations from the prior, weighted by the density of the noise (Gong 2022, "Exact inference with approximate
computation for differentially private data via perturbations"): kernel ABC whose kernel is the noise, hence exact."""

import numpy as np

from privpost.inference_benchmark.base import Inferred

# Simulated data sets, which serve all releases of a task.
SIMULATIONS = 20_000


def infer(task, releases, rng, budget):
    """Resample the prior's draws by their weights, which are worth (Σ w)²/Σ w² draws."""
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
