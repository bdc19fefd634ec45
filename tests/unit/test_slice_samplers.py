"""The slice samplers that exact draws are checked against: their Gaussian, ball and coordinates."""

import math
from dataclasses import replace

import numpy as np
import pytest
from elliptical_slice import into_ball, laplace, mean_shift
from logistic_toys import design
from univariate_slice import Coordinates

from privpost.models.regression.logistic import GaussianApproximation, LogisticPosterior


@pytest.fixture(params=[1.0, 0.3], ids=["plain", "tempered"])
def posterior(request):
    return LogisticPosterior(*design(), prior_precision=0.7, power=request.param)


def mean_squared_norm(approximation: GaussianApproximation) -> float:
    covariance = np.linalg.inv(approximation.factor @ approximation.factor.T)
    return approximation.mean @ approximation.mean + np.trace(covariance)


@pytest.mark.parametrize("radius", [0.05, 0.5, 1.5])
def test_laplace_of_an_active_ball_has_the_ball_s_mean_squared_norm(posterior, radius):
    free = laplace(posterior)
    assert mean_squared_norm(free) > radius**2
    # The root is found within 0.02 in the logarithm of the prior precision, to which the squared norm is proportional
    # at most inversely quadratic.
    bounded = laplace(replace(posterior, radius=radius))
    assert abs(math.log(mean_squared_norm(bounded) / radius**2)) < 0.05


def test_laplace_of_an_inactive_ball_is_that_without_one(posterior):
    np.testing.assert_array_equal(laplace(replace(posterior, radius=100.0)).mean, laplace(posterior).mean)


def test_mean_shift_leads_from_the_mode_to_the_mean():
    features, labels = design(n=60, d=2)
    posterior = LogisticPosterior(features, labels, 0.5)
    approximation = laplace(posterior)
    axis = np.linspace(-12, 12, 241)
    grid = approximation.mean + np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
    log_density = posterior.log_density(grid)
    mass = np.exp(log_density - log_density.max())
    true_shift = mass @ grid / mass.sum() - approximation.mean
    # The mean of 200 estimates has a standard error of 1 %, and the orders left out amount to 2 % here.
    shifts = [mean_shift(posterior, approximation, np.random.default_rng(seed)) for seed in range(200)]
    error = np.linalg.norm(np.mean(shifts, axis=0) - true_shift)
    assert error < 0.06 * np.linalg.norm(true_shift)


def test_coordinates_follow_the_log_density(posterior):
    posterior = replace(posterior, radius=3.0)
    rng = np.random.default_rng(6)
    weights = into_ball(posterior, rng.standard_normal((8, 5)))
    chains = Coordinates(posterior, weights)
    original = weights.copy()
    for coordinate in [0, 3, 4, 3]:
        some = rng.permutation(8)[:5]
        values = rng.standard_normal(5) * 2
        candidate = weights[some].copy()
        candidate[:, coordinate] = values
        found = chains.log_density(coordinate, values, some)
        np.testing.assert_allclose(found, posterior.log_density(candidate), rtol=1e-12)
        weights[:, coordinate] = values = rng.standard_normal(8)
        chains.move(coordinate, values)
        np.testing.assert_array_equal(chains.weights, weights)
    assert not np.array_equal(original, weights)


def test_into_ball_scales_only_what_lies_outside(posterior):
    weights = np.diag([0.5, 2.0, 1e6, 0.0, 1.0])
    moved = into_ball(replace(posterior, radius=1.0), weights)
    np.testing.assert_allclose(moved, np.diag([0.5, 1, 1, 0, 1]), atol=2e-6)
    np.testing.assert_array_equal(moved[0], weights[0])
    assert (np.linalg.norm(moved, axis=1) <= 1).all()
    assert into_ball(posterior, weights) is weights
