"""Data augmentation on the latent records. It is exact for any model that can be simulated.

Ju, Awan, Gong and Rao (2022), "Data augmentation MCMC for Bayesian inference from privatized data".
"""

import numpy as np

from privpost.inference_benchmark.base import Inferred
from privpost.inference_benchmark.tasks.randomised_response import ResponseTask
from privpost.samplers.compiled import outer


def infer(task, releases, rng, budget):
    """Propose new records from p(x | θ), accept each by the ratio of the noise's densities, then draw θ.

    For randomised response, true answers are drawn from their law given the reports (Tanner and Wong 1987).
    """
    observed = np.repeat(releases, budget.chains, axis=0)
    theta = task.prior(len(observed), rng)
    if isinstance(task, ResponseTask):
        return _shaped(task, _answered(task, theta, observed, rng, budget), budget)
    records = task.records(theta, rng)
    released, statistics = (np.ascontiguousarray(part, float) for part in records)
    drawn, sums = np.empty((budget.draws, *theta.shape)), np.empty(statistics.shape[::2])
    for step in range(-budget.burn_in, budget.draws):
        proposed = task.records(theta, rng)
        uniform = rng.random(released.shape[:2])
        exchange(released, statistics, *proposed, observed, uniform, task.scale, task.power, sums)
        theta = task.update(sums, rng)
        if step >= 0:
            drawn[step] = theta
    return _shaped(task, drawn, budget)


def _shaped(task, drawn, budget):
    return Inferred(drawn.reshape(budget.draws, -1, budget.chains, task.size).transpose(1, 2, 0, 3))


def _answered(task, theta, observed, rng, budget) -> np.ndarray:
    drawn = np.empty((budget.draws, *theta.shape))
    for step in range(-budget.burn_in, budget.draws):
        theta = task.update(task.augmented(theta, observed, rng), rng)
        if step >= 0:
            drawn[step] = theta
    return drawn


@outer()
def exchange(released, statistics, new_released, new_statistics, observed, uniform, scale, power, sums):
    """Accept or reject the proposal for each record in turn, and update the sums (chains, d) of the statistics."""
    # The noise x has the log-density −|x/scale|^power / power, where the power is 1 or 2.
    size, coordinates = released.shape[1:]
    residual, rate = np.empty(coordinates), 1 / scale**power / power
    for k in range(len(released)):
        for j in range(coordinates):
            total = 0.0
            for i in range(size):
                total += released[k, i, j]
            residual[j] = observed[k, j] - total
        for i in range(size):
            change, u = 0.0, uniform[k, i]
            for j in range(coordinates):
                old, new = residual[j], residual[j] - (new_released[k, i, j] - released[k, i, j])
                change += abs(old) - abs(new) if power == 1 else old * old - new * new
            change *= rate
            # Test u < e^x. For negative x, e^x lies between 1 + x and 1/(1 - x), which often decides without exp.
            accepted = u < 1 + change or (u * (1 - change) < 1 and u < np.exp(change))
            # Values are written in both cases, as the processor would often predict a branch wrongly.
            for j in range(coordinates):
                taken = new_released[k, i, j] if accepted else released[k, i, j]
                residual[j] -= taken - released[k, i, j]
                released[k, i, j] = taken
            for j in range(statistics.shape[2]):
                statistics[k, i, j] = new_statistics[k, i, j] if accepted else statistics[k, i, j]
        for j in range(statistics.shape[2]):
            total = 0.0
            for i in range(size):
                total += statistics[k, i, j]
            sums[k, j] = total
