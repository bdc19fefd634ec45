"""Pieces of the noise-aware Gibbs samplers against densities, quadrature and matrix algebra; known slips are caught."""

import itertools

import numpy as np
import pytest
from scipy import stats
from scipy.integrate import quad
from scipy.special import betainc

from privpost import discovery
from privpost.experiments.bernstein2018.trials import experiment
from privpost.mechanisms.noise.laplace import LaplaceMechanism
from privpost.mechanisms.noise.redacted import RedactedSum
from privpost.models import BetaBernoulli, DirichletCategorical, GammaExponential, NormalKnownVariance
from privpost.models.base import BoundedFamily
from privpost.models.conjugate.univariate import UnivariateFamily
from privpost.privacy import redaction
from privpost.samplers.noise_aware import gibbs as noise_aware_gibbs
from privpost.samplers.noise_aware.exact import conditional_cdf, count_weights, posterior_cdf, posterior_density
from privpost.samplers.noise_aware.gibbs import (
    ROUNDS,
    bounded_kernel,
    noise_variance,
    random_sum,
    run,
    truncated_normal,
)
from privpost.samplers.noise_aware.redacted import SEGMENTS, redacted_kernel

# Draws are compared with distribution functions by KS tests at 1e-4; about 30 are made: a false alarm in 300 seeds,
# and none at the fixed ones.
ALARM = 1e-4
FAMILIES = [
    pytest.param(example, id=repr(example))
    for model in discovery.models().values()
    if issubclass(model, UnivariateFamily)
    for example in model.examples()
]
every_family = pytest.mark.parametrize("model", FAMILIES)


# Univariate families: every one that the package discovers


def segments(model):
    """Segments from quantiles of the prior predictive, and the two infinite or outermost ones."""
    low, high = model.predictive_quantile(np.array([0.025, 0.975]))
    support = model.record_support
    return [(support[0], low), (low, high), (high, support[1]), (low, (low + high) / 2)]


# Families whose moments are integrals of x over the distribution function.
continuous = pytest.mark.parametrize(
    "model", [p for p in FAMILIES if not p.values[0].lattice and p.values[0].statistic(2.5) == 2.5]
)


def thetas(model):
    return model.sample(model.prior, np.random.default_rng(3), size=5)


def integrals(model, theta, low, high):
    """E[x^k 1[low ≤ x ≤ high]] for k = 0, 1, 2 from the distribution function alone, by parts; error about 1e-10."""
    ends = model.quantile(np.array([1e-14, 1 - 1e-14]), theta)
    a, b = np.clip([low, high], *ends)
    at_a, at_b = model.cdf(a, theta), model.cdf(b, theta)
    flat, sloped = (
        quad(lambda x, k=k: x**k * model.cdf(x, theta), a, b, epsabs=1e-13, epsrel=1e-12, limit=200)[0]
        for k in range(2)
    )
    return at_b - at_a, b * at_b - a * at_a - flat, b**2 * at_b - a**2 * at_a - 2 * sloped


@pytest.mark.parametrize("model", [p for p in FAMILIES if p.values[0].lattice])
def test_segment_moments_of_counts_match_their_probabilities(model):
    records = np.arange(3000.0)
    for theta, (low, high) in itertools.product(thetas(model), segments(model)):
        probabilities = model.cdf(records, theta) - model.cdf(records - 1, theta)
        probabilities *= (records >= low) & (records <= high)
        moments = model.segment_moments(np.array([theta]), np.array([low]), np.array([high]))
        probability, mean, variance = (float(value[0]) for value in moments)
        assert probability == pytest.approx(probabilities.sum(), abs=1e-12)
        if probability > 1e-3:
            first = probabilities @ records / probability
            # 1e-6: differentiation, where a family has no closed form.
            assert mean == pytest.approx(first, rel=1e-6)
            assert variance == pytest.approx(probabilities @ records**2 / probability - first**2, rel=1e-5)


@continuous
def test_segment_moments_match_numerical_integration(model):
    for theta, (low, high) in itertools.product(thetas(model), segments(model)):
        moments = model.segment_moments(np.array([theta]), np.array([low]), np.array([high]))
        probability, mean, variance = (float(value[0]) for value in moments)
        zeroth, first, second = integrals(model, theta, low, high)
        # 1e-9: rounding in the integration by parts, and the tail that is cut off.
        assert probability == pytest.approx(zeroth, abs=1e-9)
        assert probability * mean == pytest.approx(first, abs=1e-9)
        assert probability * (variance + mean**2) == pytest.approx(second, abs=1e-9)


@every_family
def test_closed_segment_moments_match_differentiation_of_the_log_partition(model):
    # Lemma 1 by central differences; 1e-7 is the rounding error for records with moments of order 1.
    theta = thetas(model)
    for low, high in segments(model):
        ends = np.full(len(theta), low), np.full(len(theta), high)
        closed = model.segment_moments(theta, *ends)
        # A segment of probability 0 has no logarithm; only likely ones are compared.
        with np.errstate(divide="ignore", invalid="ignore"):
            numerical = UnivariateFamily.segment_moments(model, theta, *ends)
        likely = closed.probability > 1e-3
        for value, reference in zip(closed, numerical, strict=True):
            assert np.allclose(value[likely], reference[likely], rtol=1e-5, atol=1e-7)


@every_family
def test_segments_add_up_to_the_record(model):
    theta = thetas(model)
    low, high = model.predictive_quantile(np.array([0.1, 0.8]))
    cuts = [model.record_support[0], low, high, model.record_support[1]]
    ends = [np.full(len(theta), cut) for cut in cuts]
    parts = [model.segment_moments(theta, a, b) for a, b in itertools.pairwise(ends)]
    mean, variance = model.record_moments(theta)
    assert np.allclose(sum(p.probability for p in parts), 1)
    assert np.allclose(sum(p.probability * p.mean for p in parts), mean, atol=1e-12)
    second = sum(p.probability * (p.variance + p.mean**2) for p in parts)
    assert np.allclose(second - mean**2, variance, rtol=1e-9, atol=1e-12)


@every_family
def test_distribution_functions_are_those_of_the_draws(model):
    rng = np.random.default_rng(5)
    theta = float(thetas(model)[0])
    records = model.sample_data(theta, 4000, rng)
    # A count's value is spread evenly over its step of the distribution function.
    below = model.cdf(records - 1, theta) if model.lattice else model.cdf(records, theta)
    spread = below + rng.random(4000) * (model.cdf(records, theta) - below)
    assert stats.kstest(spread, "uniform").pvalue > ALARM
    draws = model.sample(model.prior, rng, size=4000)
    assert stats.kstest(model.posterior_cdf(draws, model.prior), "uniform").pvalue > ALARM
    predictive = model.sample_data(draws, 1, rng)[:, 0]
    quartiles = model.predictive_quantile(np.array([0.25, 0.5, 0.75]))
    # 4000 draws: 5 standard errors of a share are below 0.04.
    probability = np.linspace(0.01, 0.99, 9)
    at = model.quantile(probability, theta)
    if model.lattice:
        assert np.all((predictive[:, None] <= quartiles).mean(axis=0) > np.array([0.25, 0.5, 0.75]) - 0.04)
        assert np.all((predictive[:, None] <= quartiles - 1).mean(axis=0) < np.array([0.25, 0.5, 0.75]) + 0.04)
        assert np.all((model.cdf(at, theta) >= probability) & (model.cdf(at - 1, theta) < probability))
    else:
        assert np.allclose((predictive[:, None] <= quartiles).mean(axis=0), [0.25, 0.5, 0.75], atol=0.04)
        assert np.allclose(model.cdf(at, theta), probability)
    assert np.allclose(model.theta_of(model.eta(theta)), theta)


@pytest.mark.parametrize("width", [1e-9, 1e-4, 0.0999, 0.29, 0.31, 1.0, 40.0, 800.0])
def test_exponential_segment_moments_keep_their_digits(width):
    import mpmath

    mpmath.mp.dps = 60
    z = mpmath.mpf(width)
    mean = 1 / z - 1 / (mpmath.exp(z) - 1)
    variance = 1 / z**2 - mpmath.exp(z) / (mpmath.exp(z) - 1) ** 2
    moments = GammaExponential(1, 1).segment_moments(np.array([width]), np.array([0.0]), np.array([1.0]))
    # 1e-11: cancellation just above the point where the series take over.
    assert moments.mean[0] == pytest.approx(float(mean), rel=1e-11)
    assert moments.variance[0] == pytest.approx(float(variance), rel=1e-11)
    assert moments.probability[0] == pytest.approx(float(1 - mpmath.exp(-z)), rel=1e-12)


def test_normal_segment_moments_stay_finite_in_the_tails():
    theta = np.array([-60.0, -8.0, 0.0, 8.0, 60.0])
    moments = NormalKnownVariance().segment_moments(theta, np.full(5, -1.0), np.full(5, 1.0))
    assert all(np.isfinite(value).all() for value in moments)
    law = stats.truncnorm(-1 - 8.0, 1 - 8.0, loc=8.0)
    assert moments.mean[3] == pytest.approx(law.mean(), rel=1e-6)


@every_family
def test_random_sum_is_the_sum_of_the_records_in_a_segment(model):
    # 20,000 sums of 50 records: 5 standard errors.
    rng = np.random.default_rng(7)
    theta = np.full(20_000, float(thetas(model)[1]))
    low, high = model.predictive_quantile(np.array([0.2, 0.9]))
    ends = np.full(len(theta), low), np.full(len(theta), high)
    sums = RedactedSum(model, *ends).sufficient_statistics(model.sample_data(theta, 50, rng))[:, 0]
    mean, variance = (value[0] for value in random_sum(50, model.segment_moments(theta, *ends)))
    assert sums.mean() == pytest.approx(mean, abs=5 * sums.std() / np.sqrt(len(sums)))
    squares = (sums - mean) ** 2
    assert squares.mean() == pytest.approx(variance, abs=5 * squares.std() / np.sqrt(len(sums)))


# The steps of the samplers


@pytest.mark.parametrize("residual", [1e-3, 0.3, 5.0, 400.0])
def test_noise_precision_is_inverse_gaussian(residual):
    scale = 2.5
    draws = 1 / noise_variance(np.full(20_000, residual), scale, np.random.default_rng(11))
    mean, shape = 1 / (scale * residual), 1 / scale**2
    assert stats.kstest(draws, stats.invgauss(mean / shape, scale=shape).cdf).pvalue > ALARM


def test_noise_variance_at_residual_zero_is_the_limit():
    # 1/σ² ~ InverseGaussian(mean → ∞, shape 1/b²) is Lévy: σ² ~ b² χ²_1.
    draws = noise_variance(np.zeros(20_000), 3.0, np.random.default_rng(12))
    assert np.isfinite(draws).all()
    assert stats.kstest(draws / 9, stats.chi2(1).cdf).pvalue > ALARM


def test_noise_variance_restores_the_laplace_distribution():
    # σ² from its prior, r | σ², then σ² | r anew: σ² has its prior's law again, Exp(mean 2b²).
    rng, scale = np.random.default_rng(13), 1.7
    variance = 2 * scale**2 * rng.standard_exponential(20_000)
    residual = np.sqrt(variance) * rng.standard_normal(20_000)
    assert stats.kstest(residual, stats.laplace(scale=scale).cdf).pvalue > ALARM
    again = noise_variance(residual, scale, rng)
    assert stats.kstest(again, stats.expon(scale=2 * scale**2).cdf).pvalue > ALARM


@pytest.mark.parametrize("mean", [-40.0, -3.0, 0.2, 0.5, 4.0, 60.0])
@pytest.mark.parametrize("ends", [(0.0, 1.0), (0.0, np.inf)])
def test_truncated_normal_is_exact_however_improbable(mean, ends):
    draws, rejected = truncated_normal(np.full(4000, mean), np.full(4000, 0.7), *ends, np.random.default_rng(17))
    assert np.all((draws >= ends[0]) & (draws <= ends[1]))
    # Through logarithms of tail masses, since scipy's cdf underflows this far out.
    a, b = (ends[0] - mean) / 0.7, (ends[1] - mean) / 0.7
    z = (draws - mean) / 0.7
    if a > 0:
        a, b, z = -b, -a, -z
    log_cdf = stats.norm.logcdf
    u = (np.exp(log_cdf(z) - log_cdf(b)) - np.exp(log_cdf(a) - log_cdf(b))) / -np.expm1(log_cdf(a) - log_cdf(b))
    assert stats.kstest(np.clip(u, 0, 1), "uniform").pvalue > ALARM
    assert rejected <= (ROUNDS + 1) * 4000


class CountingGenerator:
    """A generator that counts calls for normal variates and gives up where a bounded loop never would."""

    def __init__(self, seed, limit):
        self._rng, self.calls, self._limit = np.random.default_rng(seed), 0, limit

    def standard_normal(self, shape):
        self.calls += 1
        if self.calls > self._limit:
            raise AssertionError("the rejection loop has no bound")
        return self._rng.standard_normal(shape)

    def random(self, shape):
        return self._rng.random(shape)


def check_rejection_is_bounded():
    rng = CountingGenerator(1, limit=ROUNDS + 5)
    truncated_normal(np.array([-50.0, 0.5]), np.ones(2), 0.0, 1.0, rng)


def test_rejection_is_bounded_and_an_unbounded_loop_is_caught(monkeypatch):
    check_rejection_is_bounded()
    monkeypatch.setattr(noise_aware_gibbs, "ROUNDS", 10**9)
    with pytest.raises(AssertionError, match="no bound"):
        check_rejection_is_bounded()


def test_counts_without_valid_proposals_stay_where_they_are():
    # The release says −1e9 of two categories, with so little noise that no proposal is valid.
    release = np.array([[-1e9], [-1e9], [2e9 + 5]])
    kernel = bounded_kernel(DirichletCategorical((5, 5, 5)), release, 5, 1e-3)
    rng = np.random.default_rng(2)
    state = kernel.init(rng)
    state = state._replace(variance=np.full((3, 1), 1e-6))
    following, rejected = kernel.step(state, rng)
    assert np.array_equal(following.statistic, state.statistic)
    assert rejected == ROUNDS + 1


@pytest.mark.parametrize("released", [3, 2], ids=["all counts", "two of three"])
def test_counts_follow_the_normal_product(released):
    # Σ1(Σ1+Σ2)⁻¹Σ2 and its mean, by matrices; 5 standard errors of 40,000 draws.
    # All counts take the closed form, two of them the one for any family.
    rng, n, size = np.random.default_rng(19), 5000, 40_000
    theta, y = np.array([0.2, 0.3, 0.5]), np.array([1100.0, 1420.0, 2530.0])
    noise = np.array([900.0, 2500.0, 400.0])
    first = n * (np.diag(theta) - np.outer(theta, theta))
    first, y, noise, mean = first[:released, :released], y[:released], noise[:released], n * theta[:released]
    wide = {name: np.repeat(value[:, None], size, axis=1) for name, value in (("θ", theta), ("y", y), ("σ²", noise))}
    kernel = bounded_kernel(DirichletCategorical((5, 5, 5)), wide["y"], n, 20.0)
    start = noise_aware_gibbs.State(wide["θ"], np.zeros((released, size)), wide["σ²"])
    draws = kernel.step(start, rng)[0].statistic
    gain = first @ np.linalg.inv(first + np.diag(noise))
    covariance = gain @ np.diag(noise)
    mean = mean + gain @ (y - mean)
    assert released == 2 or np.allclose(draws.sum(axis=0), n)
    error = np.sqrt(np.diag(covariance) / size)
    assert np.all(np.abs(draws.mean(axis=1) - mean) < 5 * error)
    # A covariance of normals has a standard error of at most √(2/N) of the variances.
    tolerance = 5 * np.sqrt(2 / size) * np.sqrt(np.outer(np.diag(covariance), np.diag(covariance)))
    assert np.all(np.abs(np.cov(draws) - covariance) < tolerance)


def test_the_product_with_a_singular_normal_law_is_that_of_the_matrices():
    first = 90 * (np.diag([0.2, 0.3, 0.5]) - np.outer([0.2, 0.3, 0.5], [0.2, 0.3, 0.5]))
    mean, y, noise = 90 * np.array([0.2, 0.3, 0.5]), np.array([3.0, 40.0, 20.0]), np.array([9.0, 400.0, 0.1])
    found = noise_aware_gibbs.normal_product(*(value[..., None] for value in (mean, first, y, noise)))
    gain = first @ np.linalg.inv(first + np.diag(noise))
    # Rounding only.
    assert found[0][:, 0] == pytest.approx(mean + gain @ (y - mean), rel=1e-12)
    assert found[1][..., 0] @ found[1][..., 0].T == pytest.approx(gain @ np.diag(noise), rel=1e-9, abs=1e-12)


def test_the_product_of_whole_and_of_repeated_numbers_is_that_of_floats_written_out():
    rng = np.random.default_rng(5)
    root, mean, observed = (rng.integers(-9, 9, shape) for shape in ((2, 2, 1), (2, 6), (2, 1)))
    covariance, variance = np.einsum("ikt,jkt->ijt", root, root), np.array([[4], [9]])
    repeated = (mean, covariance, observed, variance)
    whole = (mean, np.tile(covariance, 6), np.tile(observed, 6), np.tile(variance, 6))
    expected = noise_aware_gibbs.normal_product(*(np.array(part, float) for part in whole))
    for given in (repeated, whole):
        for found, right in zip(noise_aware_gibbs.normal_product(*given), expected, strict=True):
            assert np.array_equal(found, right)


@pytest.mark.parametrize(
    "model",
    [
        pytest.param(example, id=repr(example))
        for model in discovery.models().values()
        if issubclass(model, BoundedFamily)
        for example in model.examples()
    ],
)
def test_moments_of_sums_are_those_of_the_data(model):
    rng, n, size = np.random.default_rng(29), 40, 20_000
    theta = np.asarray(model.sample(model.prior, rng))
    totals = model.sufficient_statistics(model.sample_data(np.broadcast_to(theta, (size, *theta.shape)), n, rng))
    for q in {1, model.statistics_size}:
        mean, covariance = (value[..., 0] for value in model.sum_moments(theta[..., None], n, q))
        sd = np.sqrt(np.diag(covariance))
        assert covariance.shape == (q, q)
        # 5 standard errors; the counts' excess kurtosis is small at 40 records.
        assert np.all(np.abs(totals.mean(axis=0)[:q] - mean) < 5 * sd / np.sqrt(size))
        error = np.abs(np.cov(totals.T)[:q, :q] - covariance)
        assert np.all(error < 6 * np.sqrt(2 / size) * np.outer(sd, sd))


@pytest.mark.parametrize("segments", SEGMENTS)
def test_full_sum_given_the_release_matches_the_joint_normal(segments):
    # The joint normal law of (full sum, redacted sum, y) by matrices; with independent segments the covariance of the
    # redacted sum with the rest is 0. Observed through θ: its mean given the sum is linear in it for the normal family.
    model, n, size = NormalKnownVariance(0, 1e12, 1), 400, 40_000
    theta, low, high, noise, y = 0.3, -1.0, 1.5, 300.0, 90.0
    centre = model.segment_moments(np.array([theta]), low, high)
    m_c, v_c = (float(value[0]) for value in random_sum(n, centre))
    rest = n * theta - m_c
    if segments == "multinomial":
        v_all, covariance = n * 1.0, v_c - m_c * rest / n
    else:
        outer = [model.segment_moments(np.array([theta]), *ends) for ends in ((-np.inf, low), (high, np.inf))]
        v_all, covariance = v_c + sum(float(random_sum(n, part)[1][0]) for part in outer), v_c
    # σ² is drawn within the sweep, so its mixture is integrated over by the sampler's own draws.
    kernel = redacted_kernel(model, np.full(size, y), n, 15.0, low, high, segments)
    rng = np.random.default_rng(23)
    start = noise_aware_gibbs.State(np.full(size, theta), np.zeros(size), np.full(size, noise))
    state = kernel.step(start, rng)[0]
    # With a flat prior θ given the sum is N(sum/n, 1/n).
    slope = covariance / (v_c + state.variance)
    expected = (n * theta + slope * (y - m_c)).mean() / n
    spread = (v_all - slope * covariance).mean() / n**2 + 1 / n + ((slope * (y - m_c)) / n).var()
    assert state.theta.mean() == pytest.approx(expected, abs=5 * np.sqrt(spread / size))
    assert state.theta.var() == pytest.approx(spread, rel=5 * np.sqrt(2 / size))


def test_errors_name_the_setting():
    kernel = bounded_kernel(BetaBernoulli(1, 1), np.zeros(2)[None], 5, 1.0)
    with pytest.raises(ValueError, match="burn_in is -1"):
        run(kernel, np.random.default_rng(0), -1, 5, print)
    with pytest.raises(ValueError, match="segments is 'both'"):
        redacted_kernel(GammaExponential(1, 1), np.zeros(2), 5, 1.0, 0.1, 1.0, "both")
    with pytest.raises(ValueError, match="low is"):
        redaction.redacted_sensitivity(1.0, np.inf)
    with pytest.raises(ValueError, match="model is 'zeta'"):
        experiment("zeta", [1.0], "paper")


def test_runs_hand_over_every_draw_once():
    kernel = bounded_kernel(BetaBernoulli(10, 10), np.full(7, 30.0)[None], 50, 5.0)
    whole, parts = [], []
    run(kernel, np.random.default_rng(4), 0, 130, lambda theta: whole.append(theta.copy()))
    proposals = run(kernel, np.random.default_rng(4), 60, 70, lambda theta: parts.append(theta.copy()))
    assert np.array_equal(np.concatenate(whole)[60:], np.concatenate(parts))
    assert proposals.made == 130 * 7 + proposals.rejected


# The exact posterior


def test_exact_posterior_is_the_sum_over_counts():
    prior, n, scale = (10.0, 10.0), 30, 4.0
    y, theta = np.array([-6.0, 11.3, 40.0]), np.array([0.2, 0.45, 0.7])
    s = np.arange(n + 1)
    for i in range(3):
        joint = stats.betabinom(n, *prior).pmf(s) * stats.laplace(loc=s, scale=scale).pdf(y[i])
        weights = joint / joint.sum()
        assert np.allclose(count_weights(prior, y, n, scale)[i], weights, atol=1e-14)
        cdf = weights @ betainc(prior[0] + s, prior[1] + n - s, theta[i])
        assert posterior_cdf(prior, y[None], theta, n, [scale])[0, i] == pytest.approx(cdf, abs=1e-12)
        density = quad(lambda t, i=i: posterior_density(prior, y[i : i + 1], [t], n, scale)[0, 0], 0, theta[i])[0]
        assert density == pytest.approx(cdf, abs=1e-7)


@pytest.mark.parametrize("prior", [(10.0, 10.0), (0.5, 2.3)])
def test_conditional_cdf_by_recursion_is_the_incomplete_beta_function(prior):
    theta, n = np.array([0.01, 0.4, 0.97]), 3000
    s = np.arange(n + 1)
    reference = betainc(prior[0] + s, prior[1] + n - s, theta[:, None])
    assert np.allclose(conditional_cdf(prior, theta, n), reference, atol=1e-11)


# Slips that are known from other implementations


def check_sensitivity_of_redacted_sums():
    for low, high in ((0.4, 1.0), (-2.0, 3.0), (-3.0, -1.0)):
        records = np.array([low - 1, low, (low + high) / 2, high, high + 1])
        sums = [redaction.redacted_sum(np.array([record, 0.5]), low, high) for record in records]
        largest = max(abs(a - b) for a, b in itertools.permutations(sums, 2))
        assert redaction.redacted_sensitivity(low, high) == pytest.approx(float(largest))


def test_a_record_can_leave_the_interval(monkeypatch):
    check_sensitivity_of_redacted_sums()
    monkeypatch.setattr(redaction, "redacted_sensitivity", lambda low, high: np.asarray(high - low))
    with pytest.raises(AssertionError):
        check_sensitivity_of_redacted_sums()


def test_additive_noise_refuses_unbounded_statistics():
    with pytest.raises(ValueError, match="no bound is known here"):
        LaplaceMechanism(GammaExponential(8, 2), 100, 1.0)


def test_the_release_of_a_trial_uses_the_redacted_sensitivity(monkeypatch):
    trial = experiment("exponential", [8, 2], "corrected")
    data = trial.data(50, 4, np.random.default_rng(0))
    scale = trial.mechanism(50, 0.5, data).scale
    assert np.allclose(scale, data.high / 0.5)
