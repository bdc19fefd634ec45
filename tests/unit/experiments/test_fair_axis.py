"""Conversions to (ε, δ), the calibrated mechanisms, and the claims of the fair axis."""

from functools import cache
from types import SimpleNamespace

import mpmath
import numpy as np
import pandas as pd
import pytest
from scipy import integrate, stats
from scipy.special import xlogy

from privpost import discovery
from privpost.distributions import truncated_beta
from privpost.evaluation.calibration import ks_statistic
from privpost.experiments.discovered import Failed
from privpost.experiments.fair_axis import calibration
from privpost.experiments.fair_axis.beta_bernoulli import study as beta_bernoulli
from privpost.models.conjugate.beta_bernoulli import BetaBernoulli
from privpost.models.regression.binary import BinaryRegression
from privpost.privacy.accounting.approximate import (
    beta_curve,
    converted_epsilon,
    gaussian_from_approximate,
    implied,
    laplace_from_approximate,
    largest_within,
    pure_from_approximate,
)
from privpost.privacy.accounting.costs import Cost
from privpost.report.documents import audit

MODEL, A0 = BetaBernoulli(6, 12), 0.05


@pytest.mark.parametrize("epsilon, delta", [(0.1, 1e-6), (1.0, 1e-2), (3.0, 0.0)])
def test_pure_mechanisms_by_randomised_response(epsilon, delta):
    pure = pure_from_approximate(epsilon, delta)
    p = 1 / (1 + np.exp(-pure))
    assert p - np.exp(epsilon) * (1 - p) == pytest.approx(delta, rel=1e-6, abs=1e-12)


@pytest.mark.parametrize("delta", [1e-6, 1e-12, 1e-18, 0.0])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
def test_a_pure_guarantee_implies_no_smaller_delta_than_its_own(epsilon, delta):
    mpmath.mp.dps = 50
    budget = Cost("approximate", epsilon, delta=delta)
    best = pure_from_approximate(epsilon, delta)
    for pure in (best, best * (1 + 2e-10), best * (1 + 1e-6)):
        if pure > epsilon:
            at, e = mpmath.e ** mpmath.mpf(pure), mpmath.e ** mpmath.mpf(epsilon)
            exact = (at - e) / (1 + at)
            # Relative rounding of expm1 and expit.
            assert implied(Cost("pure", pure), None, budget).delta == pytest.approx(float(exact), rel=1e-14, abs=0)
    assert implied(Cost("pure", best), None, budget).delta <= delta


@pytest.mark.parametrize("epsilon, delta", [(0.1, 1e-2), (1.0, 1e-4)])
def test_laplace_noise_by_integration(epsilon, delta):
    ratio = laplace_from_approximate(epsilon, delta)
    x = np.linspace(-40, 40, 2_000_001)
    p, q = np.exp(-np.abs(x)) / 2, np.exp(-np.abs(x - ratio)) / 2
    # 1e-6 relative: the step is 4e-5, and the integrand has two kinks.
    integral = np.maximum(p - np.exp(epsilon) * q, 0).sum() * (x[1] - x[0])
    assert integral == pytest.approx(delta, rel=1e-3, abs=1e-8)


@pytest.mark.parametrize("epsilon, delta", [(0.1, 1e-2), (1.0, 1e-6)])
def test_gaussian_noise_by_the_closed_curve(epsilon, delta):
    from scipy.stats import norm

    sigma = gaussian_from_approximate(epsilon, delta)
    curve = norm.cdf(0.5 / sigma - epsilon * sigma) - np.exp(epsilon) * norm.cdf(-0.5 / sigma - epsilon * sigma)
    # dp-accounting solves to 1e-12 in delta.
    assert curve == pytest.approx(delta, rel=1e-4)


@pytest.mark.parametrize("low, high", [(0.0, 1.0), (0.05, 0.95)])
def test_beta_curve_is_the_integral(low, high):
    step = (high - low) / 200_000
    theta = low + step * (np.arange(200_000) + 0.5)
    for p, q in (((7, 12), (6, 13)), ((6, 13), (7, 12)), ((3.2, 80), (2.7, 80.5)), ((50, 2), (51, 1))):
        densities = [np.exp(truncated_beta.log_density(theta, side, low, high)) for side in (p, q)]
        for epsilon in (0.0, 0.1, 0.7):
            integral = step * np.maximum(densities[0] - np.exp(epsilon) * densities[1], 0).sum()
            # 1e-6: the midpoint rule over one kink.
            assert float(beta_curve(p, q, epsilon, low, high)) == pytest.approx(integral, rel=1e-3, abs=1e-6)


@cache
def converted(epsilon, delta, n=10):
    return calibration.converted(MODEL, n, epsilon, delta, a0=A0, coordinates="free")


@pytest.mark.parametrize("epsilon, delta", [(0.1, 1e-2), (1.0, 1e-4)])
def test_calibrated_mechanisms_meet_the_target(epsilon, delta):
    found = converted(epsilon, delta)
    assert {"laplace", "gaussian", "ops", "diffused", "concentrated"} <= set(found)
    for method, mechanism in found.items():
        if mechanism.notion == "rdp":
            spent = converted_epsilon(mechanism.rdp, delta)
            assert spent <= epsilon
            # Only a coefficient of 1 can leave something over.
            assert spent > 0.999 * epsilon or getattr(mechanism, "coefficient", 1.0) == 1
        tight = mechanism.recalibrated(Cost("approximate", epsilon, delta=delta))
        if method in ("ops", "diffused", "concentrated"):
            assert tight.privacy_curve(epsilon) <= delta
            before, after = (getattr(m, m.calibrated) for m in (mechanism, tight))
            # The exact curve never asks for more than the converted guarantee.
            assert after >= before * (1 - 1e-4)
        if method == "gaussian":
            assert tight.sigma <= mechanism.sigma


def test_calibrated_logistic_mechanisms_meet_the_target():
    found = calibration.converted(BinaryRegression(3), 500, 0.5, 1e-5)
    assert set(found) == {"concentrated", "diffused", "langevin", "ops", "ops_renyi", "output_noise"}
    for method in ("concentrated", "diffused"):
        assert 0.999 * 0.5 < converted_epsilon(found[method].rdp, 1e-5) <= 0.5
    assert found["ops"].cost().epsilon == pytest.approx(pure_from_approximate(0.5, 1e-5), rel=1e-9)
    # One large enough for the true posterior.
    assert "direct" in calibration.converted(BinaryRegression(3), 500, 100.0, 1e-5)


def test_bisection_is_of_a_condition_that_small_values_meet():
    assert largest_within(lambda x: x <= 0.3, 1e-6, 1.0) == pytest.approx(0.3, rel=1e-9)
    assert largest_within(lambda x: True, 1e-6, 1.0) == 1.0
    with pytest.raises(ValueError, match="low is"):
        largest_within(lambda x: False, 1e-6, 1.0)
    with pytest.raises(ValueError, match="epsilon is 0"):
        pure_from_approximate(0, 0.1)
    with pytest.raises(ValueError, match="delta is 1"):
        laplace_from_approximate(1, 1)
    with pytest.raises(ValueError, match="delta is 0"):
        gaussian_from_approximate(1, 0)


@pytest.mark.parametrize("n, successes", [(10, 3), (10, 0), (100, 30), (1000, 331)])
@pytest.mark.parametrize("epsilon", [0.1, 3.0])
@pytest.mark.parametrize("method", ["laplace", "gaussian"])
def test_divergence_of_noisy_counts_by_adaptive_quadrature(method, epsilon, n, successes):
    # The mixture over the noise's density and its two atoms by scipy's adaptive rule, at 1001 values of θ.
    mechanism = converted(epsilon, 1e-4, n=n)[method]
    theta, noise = np.linspace(A0, 1 - A0, 1001), {"laplace": stats.laplace, "gaussian": stats.norm}[method]
    noise = noise(scale=mechanism.scale if method == "laplace" else mechanism.sigma)

    def law(count):
        return np.exp(MODEL.log_density(theta, MODEL.posterior(np.array([count, n - count], float))))

    mixture = noise.cdf(-successes) * law(0) + noise.sf(n - successes) * law(n)
    reach = 40 * noise.std()
    for side in ((max(0, successes - reach), successes), (successes, min(n, successes + reach))):
        if side[0] < side[1]:
            mixture = mixture + integrate.quad_vec(lambda c: noise.pdf(c - successes) * law(c), *side, epsrel=1e-7)[0]
    p, q = (density / np.trapezoid(density, theta) for density in (law(successes), np.maximum(mixture, 1e-300)))
    expected = np.trapezoid(xlogy(p, p) - xlogy(p, q), theta)
    found = float(beta_bernoulli.Divergence(MODEL, n, A0)(mechanism, np.array([float(successes)]))[0])
    assert found == pytest.approx(expected, rel=1e-5, abs=1e-9)


def test_ks_with_error_is_the_ks_statistic():
    values = np.random.default_rng(4).random(500) ** 1.2
    statistic, error = beta_bernoulli.ks_with_error(values)
    assert statistic == pytest.approx(float(ks_statistic(values)), rel=1e-12)
    assert 0 < error <= 0.5 / np.sqrt(500)


def test_ks_of_few_trials_is_not_known_exactly():
    """Of one trial, and of trials beyond which the distribution function is 1, the standard error was 0: .46 ± .0."""
    statistic, error = beta_bernoulli.ks_with_error(np.array([0.46]))
    assert (statistic, np.isnan(error)) == (0.54, True)
    # All of two trials lie below the place of the largest distance. Wilson's 95 % interval of 2 in 2 starts at 0.342.
    statistic, error = beta_bernoulli.ks_with_error(np.array([0.2, 0.46]))
    assert (statistic, 1 - 1.96 * error) == (0.54, pytest.approx(0.342, abs=1e-3))


@pytest.mark.parametrize("method", ["ops", "diffused", "concentrated"])
def test_a_mechanism_whose_density_alone_is_known_has_the_same_divergence(method):
    """Both are the same Gauss-Legendre sum, so they differ by rounding; without a density there is none."""
    budget = Cost("pure", 1.0) if method == "ops" else Cost("rdp", 1e6, order=2.0)
    known = discovery.serving(MODEL, 10, budget, a0=A0)[method]
    divergence, successes = beta_bernoulli.Divergence(MODEL, 10, A0), np.arange(11.0)

    def newcomer(log_density):
        return SimpleNamespace(releases="sample", release_law=lambda statistics: None, log_density=log_density)

    assert divergence(newcomer(known.log_density), successes) == pytest.approx(
        divergence(known, successes), rel=1e-9, abs=1e-12
    )
    assert np.isnan(divergence(newcomer(lambda release, statistics: None), successes)).all()


def test_whoever_does_not_take_part_is_named_with_the_reason():
    reasons = calibration.left_out(MODEL, a0=A0)
    assert reasons["FourierMechanism"] == "serves BayesianNetwork"
    assert "ExponentialMechanism" not in reasons
    assert calibration.left_out(MODEL)["ExponentialMechanism"] == "needs the setting a0"
    taking_part = {kind.name for method in calibration.methods(MODEL, a0=A0) for kind in discovery.mechanisms()[method]}
    # Local randomisers trust no curator, and are compared with none.
    assert set(reasons) | taking_part == {kind.name for kind in discovery.curators(discovery.kinds())}
    # In the table: methods without a KL or without exact accounting.
    rows = [("laplace", "exact", "kl"), ("laplace", "converted", "kl"), ("odd", "converted", "l1_error")]
    table = pd.DataFrame(rows, columns=["method", "accounting", "metric"])
    study = SimpleNamespace(text={"alpha": 6, "beta": 12, "a0": A0})
    text = audit.left_out(study, table)
    assert "| KL | `odd` | neither its posterior nor its density is known |" in text
    assert "| exact accounting | `odd` | it has no privacy curve |" in text
    # Of another model: `privpost mechanisms` says which.
    assert "FourierMechanism" not in text


def test_a_truth_outside_of_a_law_s_support_has_a_quantile_of_zero_or_one():
    """OPS draws from [0.05, 0.95]; within it the beta law on it decides."""
    ops = discovery.serving(MODEL, 10, Cost("pure", 1.0), a0=A0)["ops"]
    theta, successes = np.array([0.01, 0.3, 0.99]), np.array([2.0, 2.0, 2.0])
    divergence = beta_bernoulli.Divergence(MODEL, 10, A0)
    scores = beta_bernoulli.score(ops, np.full(3, 0.4), MODEL, theta, successes, 10, divergence, None)
    law = stats.beta(*ops.release_law(np.array([[2.0, 8.0]]))[0])
    inside = (law.cdf(0.3) - law.cdf(A0)) / (law.cdf(1 - A0) - law.cdf(A0))
    assert scores.quantile == pytest.approx([0.0, inside, 1.0])
    assert scores.sample == pytest.approx([0.39, 0.1, 0.59]) and np.isnan(scores.mean).all()


def test_a_mechanism_without_a_curve_has_one_row_and_the_posterior_s_setting_is_one(monkeypatch):
    odd = SimpleNamespace(calibrated=None, recalibrated=lambda budget: None)
    monkeypatch.setattr(calibration, "converted", lambda *given, **settings: {"odd": odd, "other": odd})
    config = SimpleNamespace(epsilon=[1.0], delta=[0.01], n=10, a0=A0, methods=["odd"])
    rows = beta_bernoulli.calibrated(config, MODEL, Failed())
    assert [(row.method, row.accounting) for row in rows] == [("non_private", ""), ("odd", "converted")]
    assert np.isnan(rows[0].setting) and rows[1].setting == 1.0
    assert beta_bernoulli.Row("gaussian", mechanism=SimpleNamespace(calibrated="sigma", sigma=2.5)).setting == 2.5


def test_noise_whose_distribution_function_is_unknown_has_no_divergence():
    unknown = SimpleNamespace(releases="statistics", noise_cdf=lambda away: None)
    assert np.isnan(beta_bernoulli.Divergence(MODEL, 10, A0)(unknown, np.arange(11.0))).all()
