"""Noise-aware posteriors without a chain, against brute force, enumeration and high precision."""

import itertools

import numpy as np
import pytest
from scipy import stats
from scipy.special import betainc, gammaln

from privpost import discovery
from privpost.evaluation.calibration import ks_limit, ks_statistic, ks_visible
from privpost.evaluation.mmd import Bins, UnitInterval, beta_embedding, mmd2_of_draws
from privpost.experiments.bernstein2018.trials import experiment
from privpost.models import GammaExponential, GammaPoisson, NormalKnownVariance
from privpost.models.conjugate.univariate import UnivariateFamily
from privpost.samplers.noise_aware import quadrature
from privpost.samplers.noise_aware.exact import categories_cdf, category_weights, count_weights, expectations
from privpost.samplers.noise_aware.exact_counts import _drawn
from privpost.samplers.noise_aware.gibbs import random_sum, run

FAMILIES = [
    pytest.param(model.examples()[0], id=name)
    for name, model in discovery.models().items()
    if issubclass(model, UnivariateFamily)
]


@pytest.mark.parametrize("residual", [0.0, 0.3, -4.0, 60.0, -900.0])
@pytest.mark.parametrize("variance", [1e-6, 0.5, 40.0, 1e6])
def test_normal_laplace_density_in_high_precision(residual, variance):
    import mpmath

    mpmath.mp.dps = 60
    scale, r, v = 1.7, mpmath.mpf(residual), mpmath.mpf(variance)
    parts = [mpmath.exp(sign * r / scale) * mpmath.ncdf((-sign * r - v / scale) / mpmath.sqrt(v)) for sign in (-1, 1)]
    exact = mpmath.log(sum(parts) * mpmath.exp(v / (2 * scale**2)) / (2 * scale))
    # 1e-12 of the terms of the exponent, which cancel; the sum of two normal-Laplace parts is a density of order 1.
    found = float(quadrature.log_normal_laplace(residual, variance, scale))
    assert found == pytest.approx(float(exact), abs=1e-9 + 1e-12 * (residual**2 / variance + variance))


def brute_force(model, y, n, scale, low, high, at):
    """P(Θ ≤ at | y) by a sum over 20,000 even steps between far quantiles of the prior."""
    edges = quadrature.parameter_edges(model, 20_000)
    theta, width = (edges[1:] + edges[:-1]) / 2, np.diff(edges)
    mean, variance = random_sum(n, model.segment_moments(theta, low, high))
    log_density = model.log_density(theta, model.prior) + quadrature.log_normal_laplace(y - mean, variance, scale)
    mass = np.exp(log_density - log_density.max()) * width
    return np.interp(at, edges[1:], np.cumsum(mass)) / mass.sum()


@pytest.mark.parametrize("model", FAMILIES)
@pytest.mark.parametrize("n, epsilon", [(20, 0.01), (1000, 0.1), (10_000, 1.0)])
def test_posterior_of_a_redacted_sum_against_brute_force(model, n, epsilon):
    trial, rng = experiment("exponential", [8, 2], "corrected"), np.random.default_rng(5)
    trial.model = model
    data = trial.data(n, 3, rng)
    mechanism = trial.mechanism(n, epsilon, data)
    y, scale = mechanism.perturb(data.exact.T, rng).T[0], np.broadcast_to(mechanism.scale, 3)
    posterior = quadrature.redacted_posterior(model, y, n, scale, data.low, data.high)
    found = posterior.cdf(data.theta[0])
    for i in range(3):
        reference = brute_force(model, y[i], n, scale[i], data.low[i], data.high[i], data.theta[0, i])
        # The density is taken to be flat within a cell of a 256th of its range, which two modes far apart share.
        assert found[i] == pytest.approx(reference, abs=4e-3)
    at = posterior.quantiles(np.array([0.1, 0.5, 0.9]))
    for k, probability in enumerate((0.1, 0.5, 0.9)):
        assert np.allclose(posterior.cdf(at[:, k]), probability, atol=1e-9)


def even(model, y, n, scale, interval, ends, at):
    """P(Θ ≤ at | y) by a sum over 400,000 even steps in the logarithm of θ."""
    log_theta = np.linspace(*np.log(ends), 400_000)
    theta = np.exp(log_theta)
    mean, variance = random_sum(n, model.segment_moments(theta, *interval))
    log_density = model.log_density(theta, model.prior) + quadrature.log_normal_laplace(y - mean, variance, scale)
    mass = np.exp(log_density - log_density.max()) * theta
    return mass[theta <= at].sum() / mass.sum()


@pytest.mark.parametrize("n", [300, 100_000])
def test_both_modes_of_one_redacted_sum_are_found(n):
    """Waits of mean 12, of which those above 60 are left out: a rate of .0085 explains the sum as well.

    With 100,000 records both modes are far narrower than a cell of the first grid of `redacted_posterior`.
    """
    model, y, scale = GammaExponential(1, 10), 11.091 * n, 60.0
    found = quadrature.resolved_posterior(model, y, n, scale, 0.0, 60.0)
    reference = even(model, y, n, scale, (0.0, 60.0), (1e-3, 1.0), 0.03)
    assert 0.15 < reference < 0.3
    assert found.cdf([0.03])[0] == pytest.approx(reference, abs=1e-3)
    drawn = found.sample(40_000, np.random.default_rng(1))
    assert np.mean(drawn < 0.03) == pytest.approx(reference, abs=0.01)


@pytest.mark.parametrize("prior_variance", [1.0, 1e8])
def test_a_resolved_posterior_without_redaction_is_the_conjugate_one(prior_variance):
    """However far the data are from the prior, and however wide that is: noise of scale 1e-3 hardly counts."""
    model, n = NormalKnownVariance(0.0, prior_variance, 1.0), 400
    found = quadrature.resolved_posterior(model, 50.0 * n, n, 1e-3, -np.inf, np.inf)
    exact = model.posterior(np.array([50.0 * n, n]))
    assert found.moments()[0][0] == pytest.approx(model.mean(exact), abs=1e-3)
    assert found.moments()[1][0] == pytest.approx(model.variance(exact) ** 0.5, rel=1e-2)


@pytest.mark.parametrize(
    ("model", "n", "scale", "y"),
    [
        *((GammaExponential(shape, rate), 4, 4.0, 10.0) for shape, rate in ((1, 2), (0.5, 1), (1, 10))),
        *((GammaPoisson(1, 2), 300, 20.0, y) for y in (150.0, 155.0, 270.5)),
    ],
)
def test_priors_of_shape_one_and_less_have_posteriors(model, n, scale, y):
    """At one θ of 1e-154 moments overflow to a density of infinity; and 2,200 cells with one too heavy are halved."""
    found = quadrature.resolved_posterior(model, y, n, scale, 0.0, np.inf)
    middle = found.quantiles(np.array([0.5]))[0, 0]
    reference = even(model, y, n, scale, (0.0, np.inf), (1e-12, 1e3), middle)
    assert reference == pytest.approx(0.5, abs=1e-3)


@pytest.mark.parametrize("prior", [(1e-300, 1e-300), (1e-5, 1.0), (1e300, 1e300)])
def test_a_posterior_that_floats_cannot_tell_is_refused(prior):
    with pytest.raises(ValueError, match="too flat, too narrow or too far out"):
        quadrature.resolved_posterior(GammaExponential(*prior), 10.0, 4, 4.0, 0.0, 4.0)


def test_bounds_may_differ_between_trials_and_moments_are_those_of_the_law():
    model, y, n = GammaExponential(8, 2), np.array([150.0, 240.0, 300.0]), 1000
    low, high, scale = np.array([0.01, 0.02, 0.0]), np.array([0.8, 1.2, 2.0]), np.array([8.0, 12.0, 20.0])
    together = quadrature.redacted_posterior(model, y, n, scale, low, high)
    at = np.array([4.0, 3.8, 3.4])
    for i in range(3):
        alone = quadrature.redacted_posterior(model, y[i : i + 1], n, scale[i], low[i], high[i])
        assert alone.cdf(at[i : i + 1])[0] == pytest.approx(together.cdf(at)[i], abs=1e-9)
    mean, sd = together.moments()
    middle = together.quantiles([0.5])[:, 0]
    # The median of any law is within a standard deviation of its mean.
    assert np.all(np.abs(middle - mean) < sd)
    conjugate = quadrature.conjugate_posterior(model, np.array([[108.0, 27.0]]))
    # Even cells of a sixteenth of a standard deviation add 1/12 of that squared to the variance.
    assert np.allclose(np.ravel(conjugate.moments()), [4.0, 108**0.5 / 27], rtol=2e-4)


def test_the_collapsed_sampler_has_the_posterior_by_quadrature():
    model, n = GammaExponential(8, 2), 1000
    y = np.repeat(240.0, 400)
    kernel = quadrature.collapsed_kernel(model, y, n, 12.0, 0.006, 1.17)
    parts = []
    run(kernel, np.random.default_rng(3), 30, 50, lambda theta: parts.append(theta.copy()))
    posterior = quadrature.redacted_posterior(model, y[:1], n, 12.0, 0.006, 1.17)
    cumulative, edges = np.cumsum(posterior.mass[0]), posterior.theta[0] + posterior.width[0] / 2
    # Every tenth sweep of 400 chains: nearly independent draws.
    u = np.interp(np.concatenate(parts)[::10].ravel(), edges, cumulative)
    assert ks_statistic(u) < ks_limit(len(u), 1e-4)


def test_likelihood_of_a_redacted_sum_by_fourier_inversion():
    # Against the mean of the Laplace density over 200,000 simulated sums: 5 standard errors.
    rng, n, scale = np.random.default_rng(6), 7, 0.9
    for model, interval in ((GammaExponential(8, 2), (0.05, 0.9)), (NormalKnownVariance(0, 1, 1), (-1.0, 1.5))):
        theta, y = model.sample(model.prior, rng, size=2), np.array([0.2, 1.5])
        found = quadrature.redacted_likelihood(model, y, n, scale, interval, theta)
        means, errors = np.empty((2, 2)), np.empty((2, 2))
        for j in range(2):
            records = model.sample_data(theta[j], 200_000 * n, rng).reshape(-1, n)
            sums = np.where((records >= interval[0]) & (records <= interval[1]), records, 0.0).sum(axis=1)
            for i in range(2):
                density = np.exp(-np.abs(y[i] - sums) / scale)
                means[i, j], errors[i, j] = density.mean(), density.std() / np.sqrt(len(density))
        ratio = found / found[:1, :1]
        error = ratio * np.sqrt((errors / means) ** 2 + (errors[0, 0] / means[0, 0]) ** 2)
        assert np.all(np.abs(ratio - means / means[0, 0]) < 5 * error + 1e-12)


@pytest.mark.parametrize("size, released, n, scale", [(3, 3, 30, 200.0), (3, 2, 40, 2.0), (4, 4, 12, 0.5)])
def test_weights_of_category_counts_against_enumeration(size, released, n, scale):
    rng = np.random.default_rng(size)
    prior, y = np.linspace(1, 5, size), rng.normal(n / size, 2 * scale, (released, 4))
    expected = np.zeros((size, 4, n + 1))
    for counts in itertools.product(range(n + 1), repeat=size - 1):
        if sum(counts) <= n:
            s = np.array([*counts, n - sum(counts)])
            log_weight = (gammaln(prior + s) - gammaln(s + 1)).sum()
            log_weight = log_weight - np.abs(y - s[:released, None]).sum(axis=0) / scale
            for j in range(size):
                expected[j, :, s[j]] += np.exp(log_weight)
    expected /= expected.sum(axis=2, keepdims=True)
    # Rounding of the Fourier transforms.
    assert np.allclose(category_weights(prior, y, n, scale), expected, atol=1e-12)
    theta = rng.dirichlet(prior, 4).T
    cdf = categories_cdf(prior, y, theta, n, scale)
    s = np.arange(n + 1)
    for j in range(size):
        given = betainc(prior[j] + s, prior.sum() - prior[j] + n - s, theta[j][:, None])
        assert np.allclose(cdf[j], (expected[j] * given).sum(axis=1), atol=1e-10)


def test_weights_of_many_categories_keep_their_digits():
    # Ten categories, of whose unconstrained counts n is far away: against sums of positive terms alone.
    prior, n, scale = np.full(10, 5.0), 100, 20.0
    y = np.random.default_rng(3).normal(10, 30, (10, 2))
    s = np.arange(n + 1.0)
    log_factor = gammaln(5 + s) - gammaln(s + 1) - np.abs(y[..., None] - s) / scale
    factor = np.exp(log_factor - log_factor.max(axis=2, keepdims=True))
    found = category_weights(prior, y, n, scale)
    for trial in range(2):
        others = np.ones(1)
        for j in range(1, 10):
            others = np.convolve(others, factor[j, trial])[: n + 1]
        expected = factor[0, trial] * others[::-1]
        assert np.allclose(found[0, trial], expected / expected.sum(), atol=1e-9)


def test_counts_are_drawn_with_their_weights():
    weights = np.array([[0.1, 0.0, 0.6, 0.3], [0.0, 1.0, 0.0, 0.0]])
    drawn = _drawn(weights, np.arange(2), np.random.default_rng(1).random((20_000, 2)))
    shares = (drawn[..., None] == np.arange(4)).mean(axis=0)
    # 5 standard errors of 20,000 draws.
    assert np.all(np.abs(shares - weights) <= 5 * np.sqrt(weights * (1 - weights) / 20_000))


def test_mmd_of_rates_by_binning_is_the_double_sum():
    rng, size = np.random.default_rng(1), 300
    p, q = rng.gamma(8, 0.5, (size, 3)), rng.gamma(9, 0.45, (size, 3))
    p[:, 2] += 60.0
    kernel = [np.exp(-0.5 * (a[:, None] - b[None]) ** 2) for a, b in ((p, p), (q, q), (p, q), (q, p))]
    total = (kernel[0] + kernel[1] - kernel[2] - kernel[3]) * (1 - np.eye(size))[..., None]
    expected = total.sum(axis=(0, 1)) / (size * (size - 1))
    bins = Bins(0.04, 2048)
    halves = [bins.features(x[:100]) + bins.features(x[100:]) for x in (p, q)]
    # Without the pairs i = j, of which the double sum has the kernel's 1 and what p_i and q_i are apart.
    diagonal = np.exp(-0.5 * np.square(p - q)).sum(axis=0)
    squared = bins.squared(halves[0] - halves[1]) - 2 * size + 2 * diagonal
    # Sharing between neighbours smooths the kernel by step²/3: 3e-4 of numbers near 1, less in their difference.
    assert np.allclose(squared / (size * (size - 1)), expected, atol=4e-4)


@pytest.mark.parametrize("space", ["unit", "rates"])
def test_mmd_of_draws_from_a_known_law_is_unbiased(space):
    # The mean over 3,000 samples of 20 draws, and the distance of the laws in closed form; 5 standard errors.
    rng, size, trials = np.random.default_rng(4), 20, 3000
    if space == "unit":
        bins, draws = UnitInterval(), rng.beta(6, 4, (size, trials))
        law, own = (beta_embedding(*pair)[:, None] for pair in ((5, 5), (6, 4)))
    else:
        bins, model = Bins(0.04, 2048), GammaExponential(8, 2)
        draws = rng.gamma(30, 1 / 6, (size, trials))
        laws = [quadrature.conjugate_posterior(model, np.array([pair], float)) for pair in ((28, 7), (30, 6))]
        law, own = (bins.features(found.theta.T, found.mass.T) for found in laws)
    values = mmd2_of_draws(bins, bins.features(draws), law, size)
    assert abs(values.mean() - bins.squared(own - law)[0]) < 5 * values.std() / np.sqrt(trials)


def test_expectations_given_noisy_counts_are_those_of_the_categories_and_of_bits():
    # One released count of two is the binomial's; both are the multinomial's, whose weights are a convolution.
    y, n = np.array([[12.0, 31.0]]), 40

    def mean(a, b):
        return (a / (a + b))[None]

    found = expectations((10, 10), y, n, 5.0, mean)[0]
    weights = count_weights((10, 10), y[0], n, 5.0)
    assert np.allclose(found, weights @ ((10 + np.arange(n + 1)) / (20 + n)), rtol=1e-12)
    three = np.array([[12.0, 31.0], [14.0, 2.0], [9.0, 4.0]])
    weights = category_weights((5, 5, 5), three, n, 5.0)[0]
    found = expectations((5, 5, 5), three, n, 5.0, mean)[0]
    assert np.allclose(found, weights @ ((5 + np.arange(n + 1)) / (15 + n)), rtol=1e-12)


def test_the_smallest_visible_miscalibration_is_seen():
    # U of a law off by δ at ½: the test of M values rejects in at least 80 % of repeats, less 5 standard errors.
    size, rng = 500, np.random.default_rng(8)
    delta = ks_visible(size)
    u = rng.random((2000, size))
    low = rng.random((2000, size)) < 0.5 + delta
    found = ks_statistic(np.where(low, u / 2, (1 + u) / 2))
    assert (found > ks_limit(size)).mean() > 0.8 - 5 * np.sqrt(0.16 / 2000)
    assert stats.kstest(u[0], "uniform").pvalue > 1e-4
