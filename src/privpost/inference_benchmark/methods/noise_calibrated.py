"""Noise-calibrated likelihood on a grid of θ, where the noisy sum is treated as normal."""

import numpy as np

from privpost.inference_benchmark.base import Inferred, Refused
from privpost.samplers.noise_aware.quadrature import Posterior, parameter_edges

CELLS = 1000


def infer(task, releases, rng, budget):
    """Draw from the density p(θ) N(y; m(θ), V(θ) + v).

    Here y is the release, m(θ) and V(θ) are the mean and variance of the sum, and v is the variance of the noise.
    """
    if task.size > 1 or releases.shape[1] > 1:
        raise Refused("its grid serves one parameter and one number released")
    edges = parameter_edges(task.model, CELLS)
    theta, width = (edges[1:] + edges[:-1]) / 2, np.diff(edges)
    mean, variance = (part.reshape(len(theta)) for part in task.moments(theta[:, None]))
    variance = variance + task.noise_variance
    logs = task.log_prior(theta) - 0.5 * (np.log(variance) + (releases - mean) ** 2 / variance)
    mass = np.exp(logs - logs.max(axis=1, keepdims=True)) * width
    mass /= mass.sum(axis=1, keepdims=True)
    draws = [Posterior(theta[None], width[None], row[None]).sample(budget.total, rng) for row in mass]
    return Inferred(np.stack(draws)[:, None, :, None])
