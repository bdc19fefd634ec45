"""Data augmentation on the latent records (Ju, Awan, Gong and Rao 2022, "Data augmentation MCMC for Bayesian inference
from privatized data"): exact for any model that can be simulated."""

import numpy as np

from privpost.experiments.noise_aware.rivals.methods import Inferred
from privpost.samplers.compiled import outer


def infer(task, releases, rng, budget):
    """Propose every record anew from p(x | θ), accept it by the ratio of the noise's densities, then draw θ."""
    observed = np.repeat(releases, budget.chains, axis=0)
    theta = task.prior(len(observed), rng)
    records = task.records(theta, rng)
    released, statistics = (np.ascontiguousarray(part, float) for part in records)
    drawn, sums = np.empty((budget.draws, *theta.shape)), np.empty(statistics.shape[::2])
    for step in range(-budget.burn_in, budget.draws):
        proposed = task.records(theta, rng)
        uniform = rng.random(released.shape[:2])
        exchange(released, statistics, *proposed, observed, uniform, task.scale, sums)
        theta = task.update(sums, rng)
        if step >= 0:
            drawn[step] = theta
    return Inferred(drawn.reshape(budget.draws, len(releases), budget.chains, -1).transpose(1, 2, 0, 3))


@outer()
def exchange(released, statistics, new_released, new_statistics, observed, uniform, scale, sums):
    """Accept or keep each record in turn, in place, and write the sums of the statistics (chains, d)."""
    total = np.empty(released.shape[2])
    for k in range(len(released)):
        total[:] = 0.0
        for i in range(released.shape[1]):
            for j in range(released.shape[2]):
                total[j] += released[k, i, j]
        sums[k] = 0.0
        for i in range(released.shape[1]):
            change = 0.0
            for j in range(released.shape[2]):
                residual = observed[k, j] - total[j]
                moved = residual - new_released[k, i, j] + released[k, i, j]
                change += abs(residual) - abs(moved)
            if change >= 0 or uniform[k, i] < np.exp(change / scale):
                for j in range(released.shape[2]):
                    total[j] += new_released[k, i, j] - released[k, i, j]
                    released[k, i, j] = new_released[k, i, j]
                for j in range(statistics.shape[2]):
                    statistics[k, i, j] = new_statistics[k, i, j]
            for j in range(statistics.shape[2]):
                sums[k, j] += statistics[k, i, j]
