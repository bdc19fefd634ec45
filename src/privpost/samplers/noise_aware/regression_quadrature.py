"""Posterior of one weight given noisy second moments, by quadrature over the three latent moments.

With the parameters integrated out, the moments S = (Σx², Σxy, Σy²) have the density p(S | z) ∝ p(S) p(z | S). The
grid's coordinates are ln Σx², the least-squares slope, and the logarithm of the residual sum of squares. Given S, the
weight has a Student t law.
"""

import numpy as np
from scipy.special import stdtr

from privpost.models.regression.normal import NormalRegression
from privpost.samplers.noise_aware.regression import Noise

# Nodes with less than this share of the largest weight are left out; the measured error is below 1e-8.
_LEAST = 1e-9
# Student's law is interpolated between these points, with an error below 2e-8.
_TABLE = np.linspace(-40.0, 40.0, 2**17)


def weight_cdf(model: NormalRegression, moments, n: int, noise: Noise, at, starts=2000, size: int = 48, seed: int = 0):
    """Return the posterior distribution function of the weight at the points `at` (k,), given one release.

    Args:
        model: the regression, with one feature.
        moments: noisy (Σx², Σxy, Σy²), shape (3,), in the data's units.
        starts: the mass is located by this many draws from the prior, and as many draws near the release.
        size: nodes per dimension of the first grids; the last grid has twice as many.
        seed: seed of the draws that locate the mass.
    """
    low, high = _box(model, np.asarray(moments, float), n, noise, starts, np.random.default_rng(seed))
    for _ in range(3):
        nodes, weights = _grid(model, moments, n, noise, low, high, size)
        # The next grid spans the nodes that have mass, and one step more on each side.
        step = (high - low) / (size - 1)
        inside = [nodes[k][weights > 1e-13 * weights.max()] for k in range(3)]
        low = np.array([values.min() for values in inside]) - step
        high = np.array([values.max() for values in inside]) + step
    nodes, weights = _grid(model, moments, n, noise, low, high, 2 * size)
    law = model.given(_gram(nodes), n)
    sd = np.sqrt(law.rate / law.shape / law.precision[:, 0, 0])
    matter = weights > _LEAST * weights.max()
    z = (np.asarray(at, float)[:, None] - law.mean[matter, 0]) / sd[matter]
    return _student(2 * law.shape[0], z) @ weights[matter] / weights[matter].sum()


def _student(degrees: float, z) -> np.ndarray:
    """Return the distribution function of Student's t law at z, interpolated from a table near 0."""
    values, beyond = np.interp(z, _TABLE, stdtr(degrees, _TABLE)), np.abs(z) > _TABLE[-1]
    values[beyond] = stdtr(degrees, z[beyond])
    return values


def _gram(nodes):
    square, slope, rest = np.exp(nodes[0]), nodes[1], np.exp(nodes[2])
    cross = slope * square
    return np.stack([np.stack([square, cross], -1), np.stack([cross, rest + slope * cross], -1)], -2)


def _log_density(model, moments, n, noise, nodes):
    """Return the log-density, in the grid's coordinates, of S given the release, up to a constant."""
    gram = _gram(nodes)
    # The Jacobian of S is (Σx²)² times the residual sum of squares.
    residual = np.asarray(moments)[:, None] - gram[:, [0, 0, 1], [0, 1, 1]].T
    return model.log_marginal(gram, n) + noise.log_density(residual) + 2 * nodes[0] + nodes[2]


def _box(model, moments, n, noise, starts, rng):
    """Return the ends of a box that contains draws of S from the prior and draws of S near the release."""
    covariance = model.feature_scale / (2 * rng.standard_gamma(model.degrees / 2, starts))
    variance = model.rate / rng.standard_gamma(model.shape, starts)
    slopes = np.sqrt(variance / model.prior_precision) * rng.standard_normal(starts)
    drawn = np.stack([np.log(n * covariance), slopes, np.log(n * variance)])
    near = moments[:, None] + 3 * noise.scale[:, None] * rng.standard_normal((3, starts))
    valid = (near[0] > 0) & (near[0] * near[2] > near[1] ** 2)
    if valid.any():
        a, b, c = near[:, valid]
        drawn = np.concatenate([drawn, np.stack([np.log(a), b / a, np.log(c - b * b / a)])], axis=1)
    low, high = drawn.min(axis=1), drawn.max(axis=1)
    return low - 0.1 * (high - low), high + 0.1 * (high - low)


def _grid(model, moments, n, noise, low, high, size):
    axes = [np.linspace(*ends, size) for ends in zip(low, high, strict=True)]
    nodes = np.stack([axis.ravel() for axis in np.meshgrid(*axes, indexing="ij")])
    logs = _log_density(model, moments, n, noise, nodes)
    return nodes, np.exp(logs - logs.max())
