"""Noise-aware linear regression: the chain against quadrature, bounds of the second moments, and bad input."""

from __future__ import annotations

import re
import warnings

import numpy as np
import pytest
from scipy.stats import t as student

from privpost import progress
from privpost.mechanisms import MomentsGaussian, MomentsLaplace
from privpost.models import LinearRegression, NormalRegression
from privpost.models.regression.normal import log_determinant
from privpost.samplers import chain
from privpost.samplers.noise_aware import draws as noise_aware_draws
from privpost.samplers.noise_aware import regression
from privpost.samplers.noise_aware.regression_quadrature import _student, weight_cdf

MODEL = NormalRegression(1, prior_precision=0.36, shape=6.0, rate=0.18, degrees=12.0, feature_scale=0.36)
# Second moments of 200 records with slope 0.4 and variances 0.04 and 0.03, in the order of the upper triangle.
EXACT = np.array([8.0, 3.2, 7.3])
CHAINS, DRAWS = 40, 300


@pytest.mark.parametrize("size", [1, 2, 3])
def test_determinants_are_lapacks(size):
    """Also of a negative determinant; the formula loses digits only where LAPACK does, in near-singular matrices."""
    matrices = np.random.default_rng(size).standard_normal((50, size, size))
    np.testing.assert_allclose(log_determinant(matrices), np.linalg.slogdet(matrices)[1], rtol=1e-9, atol=1e-12)


def released(mechanism, seed=3):
    """One noisy release of `EXACT` in the data's units, shape (3,)."""
    return mechanism.moments(mechanism.perturb(EXACT, np.random.default_rng(seed)))


def weights(moments, n, noise, law="wishart"):
    """Weights (draws, chains) of independent chains given one release."""
    kernel = regression.kernel(MODEL, np.repeat(moments[:, None], CHAINS, 1), n, noise, law)
    states = chain.run(kernel, np.random.default_rng(7), draws=DRAWS, burn_in=150)
    return np.stack([state.theta[:, 0] for state, _ in states])


def off(drawn, cdf, at):
    """Standard errors between shares of draws below the points and a distribution function, over the chains."""
    shares = np.stack([(drawn <= point).mean(axis=0) for point in at])
    return (shares.mean(axis=1) - cdf) / (shares.std(axis=1, ddof=1) / np.sqrt(CHAINS))


@pytest.mark.parametrize(
    "mechanism",
    [MomentsLaplace(MODEL, 200, 1.0), MomentsLaplace(MODEL, 200, 10.0), MomentsGaussian(MODEL, 200, 2.0, 2.0)],
    ids=["laplace, wide", "laplace, narrow", "gaussian"],
)
def test_the_chain_has_the_law_that_quadrature_gives(mechanism):
    """Shares below five points, by the spread over 40 chains: 4.6 of Student's t with 39 degrees, 4e-5 each."""
    moments = released(mechanism)
    drawn = weights(moments, 200, mechanism.noise_law)
    at = np.quantile(drawn, [0.05, 0.25, 0.5, 0.75, 0.95])
    exact = weight_cdf(MODEL, moments, 200, mechanism.noise_law, at, size=32)
    assert np.abs(off(drawn, exact, at)).max() < 4.6


def test_jumps_leave_the_law_of_few_records_as_it_is():
    """Of data sets drawn from the prior, where noise hides everything: ln det after 20 jumps, 5 standard errors."""
    n, none, rng = 3, np.zeros((20_000, 2, 2)), np.random.default_rng(5)
    before, chains = (
        regression._Chains(MODEL, np.zeros((3, 1)), size, regression.Noise("gaussian", np.full(3, 1e6)), "wishart", 1)
        for size in (0, n)
    )
    omega = before._covariance(MODEL.sample(MODEL.given(none, 0), rng), none, rng)
    records = rng.standard_normal((len(none), n, 2)) @ np.swapaxes(np.linalg.cholesky(omega), -1, -2)
    first = last = np.swapaxes(records, -1, -2) @ records
    for _ in range(20):
        last = chains._jumps(last, rng)
    change = log_determinant(last) - log_determinant(first)
    assert change.std() > 1
    assert abs(change.mean()) < 5 * change.std() / np.sqrt(len(change))


def test_a_wrong_noise_scale_is_seen():
    """Where the noise is about as large as the sampling error; 7.5 and 6.3 standard errors were measured."""
    mechanism = MomentsLaplace(MODEL, 200, 4.0)
    moments = released(mechanism)
    at = np.quantile(weights(moments, 200, mechanism.noise_law), [0.05, 0.25, 0.5, 0.75, 0.95])
    exact = weight_cdf(MODEL, moments, 200, mechanism.noise_law, at, size=32)
    for factor in (0.8, 1.25):
        told = regression.Noise("laplace", factor * mechanism.noise_law.scale)
        assert np.abs(off(weights(moments, 200, told), exact, at)).max() > 4.6


def test_quadrature_without_noise_is_students_law():
    """Noise far below the sampling error: the weight's law given the moments, up to the noise, 1e-3 of its width."""
    noise = regression.Noise("gaussian", np.full(3, 1e-4))
    law = MODEL.posterior(EXACT, 200)
    sd = np.sqrt(law.rate / law.shape / law.precision[0, 0])
    at = law.mean[0] + sd * np.array([-2.0, -0.5, 0.0, 1.0])
    found = weight_cdf(MODEL, EXACT, 200, noise, at, size=32)
    assert found == pytest.approx(student.cdf((at - law.mean[0]) / sd, 2 * law.shape), abs=1e-3)


@pytest.mark.parametrize("degrees", [1.0, 3.0, 200.0])
def test_students_law_is_right_beyond_the_table_and_at_infinity(degrees):
    at = np.array([[3.0, -41.0, 1e6], [-np.inf, np.inf, 0.1]])
    assert _student(degrees, at) == pytest.approx(student.cdf(at, degrees), abs=2e-8)


def test_quadrature_of_twice_the_nodes_is_the_same():
    mechanism = MomentsLaplace(MODEL, 200, 1.0)
    at = np.array([-0.3, 0.1, 0.6])
    once, twice = (weight_cdf(MODEL, released(mechanism), 200, mechanism.noise_law, at, size=s) for s in (32, 48))
    # A tenth of a standard error of the chain's shares.
    assert once == pytest.approx(twice, abs=5e-4)


def test_the_papers_normal_law_is_close_at_large_n():
    """Conditionals that fit no joint law: 0.011 from the exact posterior here, Monte Carlo error included."""
    mechanism = MomentsLaplace(MODEL, 200, 10.0)
    moments = released(mechanism)
    drawn = weights(moments, 200, mechanism.noise_law, "normal")
    at = np.quantile(drawn, [0.05, 0.25, 0.5, 0.75, 0.95])
    exact = weight_cdf(MODEL, moments, 200, mechanism.noise_law, at, size=32)
    assert np.abs([(drawn <= point).mean() for point in at] - exact).max() < 0.02


# Bounds of the second moments


@pytest.mark.parametrize("dimension", [1, 2, 5, 8])
def test_no_pair_of_records_is_farther_apart_than_the_sensitivity(dimension):
    """Random and extreme records of any norm: the largest distances found, L1 and L2."""
    rng, number = np.random.default_rng(dimension), 20_000
    features = rng.standard_normal((2, number, dimension)) * (rng.random((2, number, dimension)) < rng.random())
    features /= np.maximum(np.linalg.norm(features, axis=-1, keepdims=True), 1e-9)
    features *= rng.choice([0.0, 0.5, 1.0, 1.0, 1.0], (2, number, 1))
    labels = rng.choice([-1.0, -0.5, 0.0, 0.5, 1.0], (2, number))
    data = np.concatenate([features, labels[..., None]], axis=-1)[..., None, :]
    model = NormalRegression(dimension)
    for mechanism, norm in ((MomentsLaplace(model, 1, 1.0), 1), (MomentsGaussian(model, 1, 1.0, 2.0), 2)):
        one, other = mechanism.query(data * (1 - 1e-13))
        largest = np.linalg.norm(one - other, norm, axis=-1).max()
        assert largest <= mechanism.sensitivity
        assert largest > 0.6 * mechanism.sensitivity


@pytest.mark.parametrize("dimension", [2, 3, 6])
def test_the_bound_on_an_l1_change_weighs_each_moment(dimension):
    """√4.5 times the root of the sum over pairs, a loop: 1/2 for a product of two features, 1 for all others."""
    # The label is the last one.
    weights = [0.5 if i < j < dimension else 1.0 for j in range(dimension + 1) for i in range(j + 1)]
    sensitivity = MomentsLaplace(NormalRegression(dimension), 1, 1.0).sensitivity
    assert sensitivity == pytest.approx((4.5 * sum(weights)) ** 0.5, rel=1e-12)


def test_the_sensitivities_are_attained_where_they_are_exact():
    corners = np.array([[[1.0, 1.0]], [[0.0, 0.0]], [[1.0, -1.0]]])
    mechanism = MomentsLaplace(NormalRegression(1), 1, 1.0)
    laplace = mechanism.query(corners)
    assert np.abs(laplace[0] - laplace[1]).sum() == mechanism.sensitivity == 3.0
    mechanism = MomentsGaussian(NormalRegression(1), 1, 1.0, 2.0)
    gaussian = mechanism.query(corners)
    assert np.linalg.norm(gaussian[0] - gaussian[2]) == mechanism.sensitivity
    two = MomentsGaussian(NormalRegression(2), 1, 1.0, 2.0)
    turned = two.query((1 - 1e-13) * np.array([[[1.0, 0.0, 1.0]], [[0.5, np.sqrt(0.75), -1.0]]]))
    assert np.linalg.norm(turned[0] - turned[1]) == pytest.approx(two.sensitivity)


def test_bounds_are_the_units_of_the_noise():
    """Twice the bound of the features and half of the label's: as the release of data in units of their bounds."""
    unit = MomentsLaplace(NormalRegression(2), 3, 1.0)
    other = MomentsLaplace(NormalRegression(2, feature_bound=2.0, label_bound=0.5), 3, 1.0)
    data = np.random.default_rng(0).uniform(-0.5, 0.5, (3, 3))
    assert other.query(data * [2, 2, 0.5]) == pytest.approx(unit.query(data))
    assert other.moments(other.query(data)) == pytest.approx((data.T @ data)[np.triu_indices(3)])
    assert (other.noise_law.scale * other.units).tolist() == pytest.approx([unit.scale] * 6)


# Model


def test_the_posterior_is_ridge_regression_at_a_fixed_variance():
    data = np.random.default_rng(2).uniform(-0.4, 0.4, (30, 4))
    fixed = LinearRegression(3, prior_precision=5.0)
    mean, _ = fixed.posterior(fixed.sufficient_statistics(data))
    unknown = NormalRegression(3, prior_precision=5.0)
    assert unknown.posterior(unknown.sufficient_statistics(data), 30).mean == pytest.approx(mean)


@pytest.mark.parametrize("mechanism", [MomentsLaplace(MODEL, 200, 1.0), MomentsGaussian(MODEL, 200, 2.0, 2.0)])
def test_a_release_has_a_noise_aware_posterior_by_four_chains(mechanism, capsys, monkeypatch):
    """Independent: shares below five points against quadrature. One chain was worth 96 of 2,000 draws."""
    monkeypatch.setattr(noise_aware_draws, "PATIENCE", 0.0)
    moments = released(mechanism)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        drawn = mechanism.posterior(moments * mechanism.units, 1200, np.random.default_rng(2))
    assert drawn.shape == (1200, 2)
    assert np.all(drawn[:, 1] > 0)
    assert (drawn.chains, drawn.diagnostics.n_chains) == (4, 4)
    assert drawn.diagnostics.agree
    assert drawn.diagnostics.ess_min > 200
    at = np.quantile(drawn[:, 0], [0.05, 0.25, 0.5, 0.75, 0.95])
    exact = weight_cdf(MODEL, moments, 200, mechanism.noise_law, at, size=32)
    # Five standard errors of a share, for 200 independent draws.
    assert np.abs([(drawn[:, 0] <= point).mean() for point in at] - exact).max() < 5 * 0.5 / 200**0.5
    capsys.readouterr()


def test_a_long_run_says_how_far_it_is(capsys, monkeypatch):
    monkeypatch.setattr(noise_aware_draws, "PATIENCE", 0.0)
    monkeypatch.setattr(progress, "PAUSE", 0.0)
    mechanism = MomentsLaplace(MODEL, 200, 1.0)
    mechanism.posterior(released(mechanism) * mechanism.units, 40, np.random.default_rng(2))
    told = capsys.readouterr().err.splitlines()
    assert "100 of 200 draws of each chain done" in "\n".join(told)
    # The burn-in is part of the work: after 50 of 200 draws and 50 of burn-in two fifths are done.
    assert re.search(r"^50 of 200 draws of each chain done, .*about", "\n".join(told), re.MULTILINE)


# Bad input


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: NormalRegression(3, degrees=2.0), r"degrees is 2.0; it must be > dimension - 1"),
        (lambda: NormalRegression(1, rate=0.0), "rate is 0.0; it must be > 0"),
        (lambda: NormalRegression(1).sufficient_statistics([[2.0, 0.0]]), "feature_bound is 1.0"),
        (lambda: MomentsLaplace(LinearRegression(1), 3, 1.0), "model is LinearRegression"),
        (lambda: regression.kernel(MODEL, np.ones((3, 1)), 1, None), "n is 1; second moments of 2 variables"),
        (lambda: regression.kernel(MODEL, np.ones((3, 1)), 9, None, "beta"), "law is 'beta'; allowed: wishart, normal"),
    ],
)
def test_errors_name_the_setting(call, message):
    with pytest.raises(ValueError, match=message):
        call()
