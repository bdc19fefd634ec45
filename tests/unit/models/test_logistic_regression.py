"""Posterior, mode and metrics of logistic regression against independent routes."""

import math
from dataclasses import replace

import numpy as np
import pytest
from logistic_toys import design

from privpost.models.regression.logistic import LogisticPosterior, predictive_metrics


@pytest.fixture(params=[1.0, 0.3], ids=["plain", "tempered"])
def posterior(request):
    return LogisticPosterior(*design(), prior_precision=0.7, power=request.param)


def naive_log_likelihood(features, labels, weights):
    total = 0.0
    for row, label in zip(features, labels, strict=True):
        z = math.fsum(row * weights)
        total += (z if label == 1 else 0.0) - (max(z, 0.0) + math.log1p(math.exp(-abs(z))))
    return total


@pytest.mark.parametrize("n", [1, 2, 63, 64, 65, 130, 1000])
def test_log_likelihood_equals_a_loop_over_examples(n):
    features, labels = design(n=n, d=3)
    weights = np.random.default_rng(2).standard_normal((7, 3)) * np.geomspace(0.01, 1000, 7)[:, None]
    expected = [naive_log_likelihood(features, labels, w) for w in weights]
    # Sums of up to 1000 terms, rounded in another order.
    np.testing.assert_allclose(
        LogisticPosterior(features, labels, 1.0).log_likelihood(weights), expected, rtol=1e-12, atol=1e-12
    )


def test_log_likelihood_of_extreme_predictors_is_exact():
    posterior = LogisticPosterior(np.array([[1.0], [-1.0]]), np.array([1, 1]), 1.0)
    np.testing.assert_array_equal(posterior.log_likelihood(np.array([[1e4], [-1e4]])), [-1e4, -1e4])


def test_log_likelihood_of_a_batch_larger_than_a_block_equals_that_of_single_weights():
    posterior = LogisticPosterior(*design(n=3000, d=4), prior_precision=1.0)
    weights = np.random.default_rng(3).standard_normal((37, 4))
    single = np.concatenate([posterior.log_likelihood(w[None]) for w in weights])
    np.testing.assert_allclose(posterior.log_likelihood(weights), single, rtol=1e-13)


def test_log_density_is_the_tempered_likelihood_times_the_prior_in_the_ball(posterior):
    weights = np.random.default_rng(4).standard_normal((6, 5))
    norms = np.linalg.norm(weights, axis=1)
    expected = [
        posterior.power * naive_log_likelihood(posterior.features, posterior.labels, w) - 0.35 * w @ w for w in weights
    ]
    np.testing.assert_allclose(posterior.log_density(weights), expected, rtol=1e-12)
    radius = float(np.median(norms))
    inside = replace(posterior, radius=radius).log_density(weights)
    np.testing.assert_allclose(inside, np.where(norms <= radius, expected, -np.inf), rtol=1e-12)


def test_gradient_and_precision_equal_finite_differences(posterior):
    weights = np.random.default_rng(5).standard_normal(5)
    step = 1e-5
    shifts = step * np.eye(5)
    slope = (posterior.log_density(weights + shifts) - posterior.log_density(weights - shifts)) / (2 * step)
    # Central differences: truncation of order step^2 = 1e-10, rounding of order 1e-16 * 30 / step = 3e-10.
    np.testing.assert_allclose(posterior.gradient(weights), slope, atol=1e-8)
    curvature = [(posterior.gradient(weights + s) - posterior.gradient(weights - s)) / (2 * step) for s in shifts]
    np.testing.assert_allclose(posterior.precision(weights), -np.array(curvature), atol=1e-8)


def test_at_mode_finds_the_mode_and_the_curvature_there(posterior):
    from scipy.optimize import minimize

    approximation = posterior.at_mode()
    other = minimize(lambda w: -posterior.log_density(w[None])[0], np.ones(5), method="BFGS", tol=1e-10)
    # The mode is accepted within 1e-4 standard deviations, here 1.2 at most; BFGS's own error is smaller.
    np.testing.assert_allclose(approximation.mean, other.x, atol=2e-4)
    factor = approximation.factor
    np.testing.assert_allclose(factor @ factor.T, posterior.precision(approximation.mean), rtol=1e-12, atol=1e-12)
    np.testing.assert_array_equal(factor, np.tril(factor))


@pytest.mark.parametrize("precision", [1e5, 1e-3])
def test_at_mode_from_a_start_far_away_finds_the_same_mode(posterior, precision):
    start = replace(posterior, prior_precision=precision).at_mode()
    cold, warm = posterior.at_mode(), posterior.at_mode(start)
    difference = cold.factor.T @ (warm.mean - cold.mean)
    # Both lie within 1e-4 standard deviations of the mode.
    assert np.linalg.norm(difference) < 2e-4


def test_at_mode_of_separable_data_under_a_weak_prior():
    features, _ = design(n=200, d=3)
    labels = (features[:, 0] > 0).astype(float)
    posterior = LogisticPosterior(features, labels, 1e-6)
    approximation = posterior.at_mode()
    gradient = posterior.gradient(approximation.mean)
    assert gradient @ np.linalg.solve(posterior.precision(approximation.mean), gradient) <= 1e-8
    assert np.linalg.norm(approximation.mean) > 100


def test_at_mode_without_likelihood_is_the_prior():
    approximation = LogisticPosterior(*design(), prior_precision=4.0, power=0.0).at_mode()
    np.testing.assert_allclose(approximation.mean, 0, atol=1e-12)
    np.testing.assert_allclose(approximation.factor, 2 * np.eye(5), atol=1e-12)


def test_predictive_metrics_equal_a_loop():
    features, labels = design(n=50, d=4, seed=7)
    features[0] = 0.0  # probability exactly 1/2: label 0 is predicted
    weights = np.random.default_rng(8).standard_normal((3, 2, 4)) * 3
    metrics = predictive_metrics(weights, features, labels)
    assert metrics.test_error.shape == metrics.test_log_likelihood.shape == (3, 2)
    for index in np.ndindex(3, 2):
        w = weights[index]
        wrong = sum((1 / (1 + math.exp(-row @ w)) > 0.5) != label for row, label in zip(features, labels, strict=True))
        assert metrics.test_error[index] == wrong / 50
        expected = naive_log_likelihood(features, labels, w) / 50
        assert metrics.test_log_likelihood[index] == pytest.approx(expected, rel=1e-12)


def test_predictive_metrics_do_not_overflow():
    metrics = predictive_metrics(np.array([1e4]), np.array([[1.0]]), np.array([0]))
    assert (metrics.test_error, metrics.test_log_likelihood) == (1.0, -1e4)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"features": np.ones(3)}, "features must be a non-empty"),
        ({"features": np.ones((40, 5), dtype=np.float32)}, "features must be float64, got float32"),
        ({"features": np.full((40, 5), np.nan)}, "features must be finite"),
        ({"labels": np.zeros(39)}, r"labels must have shape \(40,\), got \(39,\)"),
        ({"labels": np.full(40, -1.0)}, "labels must be 0 or 1"),
        ({"prior_precision": 0.0}, r"prior_precision is 0.0; it must lie in \(0, inf\)"),
        ({"prior_precision": math.nan}, r"prior_precision is nan; it must lie in \(0, inf\)"),
        ({"power": -0.1}, r"power is -0.1; it must lie in \[0, 1\]"),
        ({"power": 1.1}, r"power is 1.1; it must lie in \[0, 1\]"),
        ({"radius": 0.0}, r"radius is 0.0; it must lie in \(0, inf\]"),
    ],
)
def test_settings_out_of_range_are_named(change, message):
    features, labels = design()
    settings = {"features": features, "labels": labels, "prior_precision": 1.0} | change
    with pytest.raises(ValueError, match=message):
        LogisticPosterior(**settings)


def test_metrics_of_shapes_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match="labels must have shape"):
        predictive_metrics(np.ones((2, 3)), np.ones((4, 3)), np.ones(5))
    with pytest.raises(ValueError, match="weights must have 3 columns, got 2"):
        predictive_metrics(np.ones((2, 2)), np.ones((4, 3)), np.ones(4))
