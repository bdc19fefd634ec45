"""The conjugate posterior of the release, widened by the variance of the noise: a normal approximation."""

import numpy as np

from privpost.experiments.noise_aware.rivals.methods import Inferred


def infer(task, releases, rng, budget):
    """Draw from N(m, V + 2b² J Jᵀ), m and V of the conjugate law, J the slope of m in the release; cut to θ's range."""
    mean, variance = centre(task, releases)
    step = task.scale / 10
    slopes = []
    for j in range(releases.shape[1]):
        ahead, behind = (centre(task, releases + sign * step * np.eye(releases.shape[1])[j])[0] for sign in (1, -1))
        slopes.append((ahead - behind) / (2 * step))
    normal = rng.standard_normal((budget.total, *mean.shape)) * np.sqrt(variance)
    noise = np.sqrt(2) * task.scale * rng.standard_normal((budget.total, *releases.shape))
    drawn = mean + normal + np.einsum("tkj,jkp->tkp", noise, np.stack(slopes))
    return Inferred(np.clip(drawn, *task.model.support).transpose(1, 0, 2)[:, None])


def centre(task, releases):
    """Return mean and variance (k, p) of θ in the conjugate law."""
    parameters = task.naive(releases)
    return tuple(np.reshape(f(parameters), (len(releases), -1)) for f in (task.model.mean, task.model.variance))
