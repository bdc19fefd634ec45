"""Gibbs sampling with a normal approximation of the latent statistics (Bernstein and Sheldon 2018)."""

import numpy as np

from privpost.inference_benchmark.base import Inferred, Refused
from privpost.inference_benchmark.tasks.counts import CountsTask
from privpost.inference_benchmark.tasks.regression import RegressionTask
from privpost.inference_benchmark.tasks.sums import ClampedTask, RedactedTask
from privpost.samplers.noise_aware import normal, regression
from privpost.samplers.noise_aware.gibbs import bounded_kernel, run


def infer(task, releases, rng, budget):
    """Run several chains on each release."""
    # For redacted sums, the sum inside and the sum outside the bounds are correlated, since the numbers of records
    # inside and outside the bounds are multinomial.
    if task.noise != "laplace":
        raise Refused("it takes Laplace noise apart into normal noise of random variance")
    repeated = np.repeat(releases, budget.chains, axis=0).T
    if isinstance(task, CountsTask):
        kernel = bounded_kernel(task.model, repeated, task.n, task.scale)
    elif isinstance(task, ClampedTask):
        kernel = normal.kernel(task.mechanism.model, repeated, task.n, task.scale)
    elif isinstance(task, RedactedTask):
        kernel = redacted(task, repeated[0], "multinomial")
    elif isinstance(task, RegressionTask):
        moments, law = task.mechanism.moments(repeated.T).T, task.mechanism.noise_law
        kernel = regression.kernel(task.model, moments, task.n, law, "normal")
    else:
        raise Refused("it serves bits, categories, sums and regression; `records` serves networks")
    return chains(task, kernel, releases, rng, budget)


def redacted(task, repeated, segments: str):
    """Return the kernel for redacted sums (chains,), where `segments` is "multinomial" or "independent"."""
    # Compiled code is loaded only where chains run.
    from privpost.samplers.noise_aware.redacted import redacted_kernel

    low, high, scale = (np.full(len(repeated), float(x)) for x in (*_bounds(task), task.scale))
    return redacted_kernel(task.model, repeated, task.n, scale, low, high, segments)


def _bounds(task):
    return task.mechanism.model.low, task.mechanism.model.high


def chains(task, kernel, releases, rng, budget):
    """Return the draws of the kernel's chains, grouped by release."""
    drawn = []
    run(kernel, rng, budget.burn_in, budget.draws, drawn.append)
    theta = np.concatenate(drawn)
    if isinstance(task, RegressionTask):
        # Chains of regressions have the parameters on the last axis.
        theta = np.swapaxes(theta, 1, 2)
    theta = theta.reshape(budget.draws, -1, len(releases), budget.chains)[:, : task.size]
    return Inferred(theta.transpose(2, 3, 0, 1))
