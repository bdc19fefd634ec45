"""Quadrature over a model's parameter space: the trapezoidal rule in logit or log coordinates.

The integrands are analytic and decay exponentially there, at integrable singularities of the ends too, so the rule
converges geometrically in the step.
"""

import numpy as np
from scipy.special import expit, softmax

from privpost.models import BayesianNetwork, NormalUnknownVariance


def parameter_nodes(model):
    """Nodes θ (number, *theta_shape) and log-weights (number,) for integrals over the model's parameter space."""
    if isinstance(model, BayesianNetwork):
        # A product rule over [0, 1]^m, for densities without poles at the ends (α, β ≥ 1).
        step = {2: 0.3, 3: 0.6}[model.theta_shape[0]]
        axis = step * np.arange(-round(22 / step), round(22 / step) + 1)
        z = np.stack([*map(np.ravel, np.meshgrid(*[axis] * model.theta_shape[0]))], axis=-1)
        return expit(z), (np.log(step) - np.logaddexp(0, z) - np.logaddexp(0, -z)).sum(axis=-1)
    if isinstance(model, NormalUnknownVariance):
        # sinh of an even grid for the mean, which has Student's tails, and ln for the variance.
        z, w = np.meshgrid(np.arange(-6.0, 6.0, 0.04), np.arange(-6.0, 12.0, 0.06), indexing="ij")
        theta = np.stack([np.sinh(z), np.exp(w)], axis=-1).reshape(-1, 2)
        return theta, (np.log(0.04 * 0.06) + np.log(np.cosh(z)) + w).ravel()
    if model.theta_shape == () and model.support == (0.0, 1.0):
        z = np.arange(-200.0, 32.0, 0.02)
        return expit(z), np.log(0.02) - np.logaddexp(0, z) - np.logaddexp(0, -z)
    if model.theta_shape == () and model.support == (0.0, np.inf):
        z = np.arange(-60.0, 12.0, 0.01)
        return np.exp(z), np.log(0.01) + z
    if model.theta_shape in ((), (1,)) and model.support == (-np.inf, np.inf):
        z = np.arange(-30.0, 30.0, 0.01)
        return z.reshape(-1, *model.theta_shape), np.full(len(z), np.log(0.01))
    if model.support == (0.0, 1.0) and model.theta_shape in ((2,), (1, 2)):
        z = np.arange(-200.0, 200.0, 0.05)
        theta = np.stack([expit(z), expit(-z)], axis=-1)
        return theta.reshape(-1, *model.theta_shape), np.log(0.05) - np.logaddexp(0, z) - np.logaddexp(0, -z)
    if model.support == (0.0, 1.0) and model.theta_shape == (3,):
        step = 0.4
        axis = np.arange(-40.0, 40.0, step)
        z = np.stack([*map(np.ravel, np.meshgrid(axis, axis)), np.zeros(axis.size**2)], axis=-1)
        theta = softmax(z, axis=-1)
        return theta, 2 * np.log(step) + np.log(theta).sum(axis=-1)
    raise NotImplementedError(f"no quadrature over the parameter space of {model!r}")
