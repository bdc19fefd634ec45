"""Exact reversible-jump data augmentation for a private number of records.

Awan, Barrientos and Ju (2024), "Statistical inference for privatized data with unknown sample size".
"""

import numpy as np

from privpost.inference_benchmark.base import Inferred, Refused
from privpost.inference_benchmark.methods.data_augmentation import exchange
from privpost.inference_benchmark.tasks.counts import indicators
from privpost.inference_benchmark.tasks.private_n import PrivateNTask
from privpost.samplers.compiled import outer


def infer(task, releases, rng, budget):
    """Run chains whose steps propose new records, add or remove records, and draw θ."""
    # A chain has `task.largest` rows. Rows without a record are zero, in proposals too.
    if not isinstance(task, PrivateNTask):
        raise Refused("the number of records is public, or they are no bits or categories")
    observed = np.repeat(releases, budget.chains, axis=0)
    theta = task.prior(len(observed), rng)
    # The first number of records is the rounded sum of the released counts.
    number = np.clip(np.rint(observed.sum(axis=1)), 0, task.largest).astype(np.int64)
    records, drawn = _proposed(task, theta, rng), np.empty((budget.draws, *theta.shape))
    records *= _there(task, number)
    counts = np.empty(observed.shape)
    for step in range(-budget.burn_in, budget.draws):
        anew = _proposed(task, theta, rng) * _there(task, number)
        uniform = rng.random((3, *anew.shape[:2]))
        # Records are indicators, so each adds the same to the release and to the statistics.
        exchange(records, records, anew, anew, observed, uniform[0], task.scale, task.power, counts)
        jump(records, number, _proposed(task, theta, rng), observed, *uniform[1:], task.scale)
        theta = task.update(records.sum(axis=1), rng)
        if step >= 0:
            drawn[step] = theta
    return Inferred(drawn.reshape(budget.draws, len(releases), budget.chains, -1).transpose(1, 2, 0, 3))


def _proposed(task, theta, rng) -> np.ndarray:
    """Indicators (chains, largest n, d) of random records from p(x | θ)."""
    return indicators(task.probabilities(theta), task.largest, rng)


def _there(task, number) -> np.ndarray:
    """Whether each row of a chain holds a record, shape (chains, largest n, 1)."""
    return (np.arange(task.largest) < number[:, None])[..., None]


@outer()
def jump(records, number, fresh, observed, coin, uniform, scale):
    """At each step, toss a coin and try to add a fresh record (chains, steps, d) or to remove the last record."""
    # A new record is from p(x | θ), and the prior of the number of records is uniform. So acceptance depends on the
    # ratio of the Laplace noise's densities alone.
    largest, categories = records.shape[1:]
    residual = np.empty(categories)
    for k in range(len(records)):
        for j in range(categories):
            total = 0.0
            for i in range(number[k]):
                total += records[k, i, j]
            residual[j] = observed[k, j] - total
        for i in range(fresh.shape[1]):
            sign = 1 if coin[k, i] < 0.5 else -1
            if number[k] + sign < 0 or number[k] + sign > largest:
                continue
            last = number[k] if sign > 0 else number[k] - 1
            change = 0.0
            for j in range(categories):
                moved = sign * (fresh[k, i, j] if sign > 0 else records[k, last, j])
                change += abs(residual[j]) - abs(residual[j] - moved)
            if uniform[k, i] < np.exp(change / scale):
                for j in range(categories):
                    moved = fresh[k, i, j] if sign > 0 else records[k, last, j]
                    residual[j] -= sign * moved
                    records[k, last, j] = moved if sign > 0 else 0.0
                number[k] += sign
