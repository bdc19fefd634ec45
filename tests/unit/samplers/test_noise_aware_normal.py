"""The noise-aware posterior of a normal law's mean and variance: moments, likelihoods, grids and chains, again."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import invgamma, norm

from privpost.mechanisms import LaplaceMechanism
from privpost.models import ClampedMoments, NormalUnknownVariance
from privpost.models.conjugate.clamped_moments import moments_within
from privpost.samplers import chain
from privpost.samplers.noise_aware import normal as noise_aware_normal
from privpost.samplers.noise_aware import normal_quadrature as quadrature

MODEL = ClampedMoments(NormalUnknownVariance(0.0, 4.0, 6.0, 6.0), -2.0, 2.5)
THETA = np.array([0.7, 1.5])


def released(n: int, epsilon: float, seed: int = 3) -> tuple[np.ndarray, float]:
    """Return a release of n records from the prior, and the scale of its noise."""
    rng, mechanism = np.random.default_rng(seed), LaplaceMechanism(MODEL, n, epsilon)
    theta = MODEL.sample(MODEL.prior, rng)
    return mechanism.perturb(MODEL.sufficient_statistics(MODEL.family.sample_data(theta, n, rng)), rng), mechanism.scale


def moments(law) -> tuple[np.ndarray, np.ndarray]:
    """Return means and deviations of mean and ln sd."""
    mean = law.mass @ law.middle
    return mean, np.sqrt(law.mass @ np.square(law.middle - mean))


@pytest.mark.parametrize("ends", [(-1.0, 1.0), (1.0, math.inf), (-math.inf, -1.0)])
@pytest.mark.parametrize("law", [(0.1, 0.2), (1.5, 0.04), (-3.0, 9.0)])
def test_moments_within_an_interval_are_integrals(ends, law):
    """Adaptive quadrature decides; 1e-9 is its tolerance."""
    mean, variance = law
    low, high = np.clip(ends, mean - 12 * variance**0.5, mean + 12 * variance**0.5)
    for k, value in enumerate(moments_within(*map(np.array, law), *ends)):
        again, _ = quad(lambda x, k=k: x**k * norm.pdf(x, mean, variance**0.5), low, high, epsabs=1e-11)
        assert value == pytest.approx(again, rel=1e-9, abs=1e-9)


def test_moments_of_the_sums_are_those_of_records():
    """Integrals over one record's law decide, by the midpoint rule in its quantiles: 1e-5 is its error."""
    x = norm.ppf((np.arange(400_000) + 0.5) / 400_000, THETA[0], THETA[1] ** 0.5)
    u = (x - 0.25) / 2.25
    r = np.clip(u, -1, 1)
    each = np.stack([r, r**2, u, u**2])
    mean, covariance = MODEL.sum_moments(THETA, 7)
    assert mean == pytest.approx(7 * each.mean(axis=1), abs=1e-4)
    assert covariance == pytest.approx(7 * np.cov(each, bias=True), abs=2e-4)
    data = x[::400].reshape(10, 100)
    assert MODEL.sufficient_statistics(data) == pytest.approx(each[:2, ::400].reshape(2, 10, 100).sum(axis=-1).T)


def test_a_pair_s_likelihood_is_an_integral_over_the_plane():
    """A fine grid of the latent pair decides; 1e-3 is what the noise's kinks leave of the midpoint rule."""
    mean, root = np.array([1.0, -0.5]), np.array([[1.5, 0.0], [0.8, 0.6]])
    z = 8 * (2 * (np.arange(1600) + 0.5) / 1600 - 1)
    weight = norm.pdf(z) * (z[1] - z[0])
    first, second = mean[0] + root[0, 0] * z[:, None], mean[1] + root[1, 0] * z[:, None] + root[1, 1] * z
    for scale, release in ((0.3, (2.0, 0.5)), (1.0, (-4.0, 3.0)), (8.0, (9.0, 1.0))):
        noise = np.exp(-(np.abs(release[0] - first) + np.abs(release[1] - second)) / scale) / (4 * scale**2)
        again = weight @ noise @ weight
        found = quadrature.log_likelihood(mean[:, None], (root @ root.T)[..., None], np.array(release), scale)
        assert found[0] == pytest.approx(math.log(again), abs=1e-3)


def two_records(release, scale: float, theta) -> np.ndarray:
    """Return p(y | θ) of two records by a grid of both, where clamped records are atoms; θ (points, 2)."""
    edges = np.linspace(-2.0, 2.5, 301)
    middle = ((edges[1:] + edges[:-1]) / 2 - 0.25) / 2.25
    r = np.concatenate([[-1.0], middle, [1.0]])
    both = [r[:, None] ** k + r**k for k in (1, 2)]
    noise = np.exp(-sum(np.abs(y - each) for y, each in zip(release, both, strict=True)) / scale) / (4 * scale**2)
    below = norm.cdf(np.concatenate([[-np.inf], edges, [np.inf]]), theta[:, :1], np.sqrt(theta[:, 1:]))
    law = np.diff(below)
    return np.einsum("ti,tj,ij->t", law, law, noise)


def test_the_inversion_has_the_law_of_two_records():
    """A sum over cells of both records decides: their length, 1/150 of the scale of u, leaves 1e-3 of the density.

    Two records' sums have frequencies beyond those that the inversion keeps, which the noise damps by 1 %.
    """
    theta = np.array([[0.2, 1.0], [1.0, 0.5], [-1.5, 3.0]])
    for release in ((0.4, 1.0), (-1.0, 2.0)):
        again = two_records(release, 2.25, theta)
        found = [quadrature.inverted(MODEL, each, np.array(release), 2, 2.25) for each in theta]
        assert found == pytest.approx(again, rel=0.01)


@pytest.mark.parametrize(("n", "epsilon"), [(50, 1.0), (50, 10.0), (400, 3.0)])
def test_the_posterior_is_prior_times_likelihood_on_another_grid(n, epsilon):
    """An even grid in mean and variance with scipy's prior decides: means and deviations of ln sd and mean to 2 % of a
    deviation, as cells of 0.4 deviations and what is left out leave."""
    release, scale = released(n, epsilon)
    law = quadrature.posterior(MODEL, release, n, scale)
    centre, sd = moments(law)
    mean = centre[0] + sd[0] * np.linspace(-6, 6, 60)
    variance = np.exp(2 * (centre[1] + sd[1] * np.linspace(-6, 6, 60)))
    theta = np.stack(np.meshgrid(mean, variance, indexing="ij"), axis=-1)
    logs = invgamma.logpdf(theta[..., 1], 6, scale=6) + norm.logpdf(theta[..., 0], 0, np.sqrt(theta[..., 1] / 4))
    flat = theta.reshape(-1, 2)
    logs += quadrature.log_likelihood(*MODEL.sum_moments(flat, n), release, scale).reshape(logs.shape)
    weight = np.exp(logs - logs.max()) * np.gradient(variance)
    points = np.stack([theta[..., 0], np.log(theta[..., 1]) / 2], axis=-1).reshape(-1, 2)
    again = np.average(points, axis=0, weights=weight.ravel())
    spread = np.sqrt(np.average((points - again) ** 2, axis=0, weights=weight.ravel()))
    assert np.all(np.abs(centre - again) < 0.02 * spread) and sd == pytest.approx(spread, rel=0.02)


def test_the_exact_posterior_of_few_records_is_a_sum_over_both():
    """Two records, cells of both and a grid of θ decide: to 2 % of a deviation, as the inversion's cut leaves."""
    release, scale = np.array([-0.8, 1.3]), 2.25
    law = quadrature.exact(MODEL, release, 2, scale)
    centre, sd = moments(law)
    mean, log_sd = (c + s * np.linspace(-5.5, 5.5, 34) for c, s in zip(centre, sd, strict=True))
    theta = np.stack(np.meshgrid(mean, np.exp(2 * log_sd), indexing="ij"), axis=-1).reshape(-1, 2)
    prior = invgamma.pdf(theta[:, 1], 6, scale=6) * norm.pdf(theta[:, 0], 0, np.sqrt(theta[:, 1] / 4)) * theta[:, 1]
    weight = prior * two_records(release, scale, theta)
    points = np.stack([theta[:, 0], np.log(theta[:, 1]) / 2], axis=-1)
    again = np.average(points, axis=0, weights=weight)
    spread = np.sqrt(np.average((points - again) ** 2, axis=0, weights=weight))
    assert np.all(np.abs(centre - again) < 0.02 * spread) and sd == pytest.approx(spread, rel=0.02)


def test_draws_and_distribution_functions_are_the_grid_s():
    """Moments of 40,000 draws within 5 standard errors; the distribution function is the share of draws below."""
    release, scale = released(60, 2.0)
    law, rng = quadrature.posterior(MODEL, release, 60, scale), np.random.default_rng(1)
    drawn = law.sample(40_000, rng)
    points = np.stack([drawn[:, 0], np.log(drawn[:, 1]) / 2], axis=-1)
    centre, sd = moments(law)
    assert np.all(np.abs(points.mean(axis=0) - centre) < 5 * sd / 200)
    assert points.std(axis=0) == pytest.approx(sd, rel=5 / math.sqrt(80_000) + 0.005)
    for at in ((centre[0], math.exp(2 * centre[1])), (centre[0] + sd[0], math.exp(2 * (centre[1] - sd[1])))):
        assert law.cdf(at) == pytest.approx((drawn <= at).mean(axis=0), abs=5 * 0.5 / 200)
    again = LaplaceMechanism(MODEL, 60, 2.0).posterior(release, 40_000, np.random.default_rng(1))
    assert np.array_equal(again, drawn)


@pytest.mark.parametrize(("n", "epsilon"), [(100, 10.0), (1000, 1.0)])
def test_chains_have_the_grid_s_law(n, epsilon):
    """200 chains against the true law of the sums: means within 5 standard errors and 3 % of a deviation.

    The conjugate step knows the sums' own law, so that the chains are nearer to it than the normal law is.
    """
    release, scale = released(n, epsilon)
    kernel = noise_aware_normal.kernel(MODEL, np.repeat(release[:, None], 200, axis=1), n, scale)
    states = chain.run(kernel, np.random.default_rng(2), draws=60, burn_in=150, thin=2)
    theta = np.stack([state.theta for state, _ in states])
    points = np.stack([theta[:, 0], np.log(theta[:, 1]) / 2])
    centre, sd = moments(quadrature.exact(MODEL, release, n, scale))
    error = points.mean(axis=1).std(axis=1) / math.sqrt(200)
    assert np.all(np.abs(points.mean(axis=(1, 2)) - centre) < 5 * error + 0.03 * sd)
    assert points.std(axis=(1, 2)) == pytest.approx(sd, rel=0.04)


def test_bounds_out_of_order_are_refused():
    for low, high in ((1.0, 1.0), (2.0, -2.0), (-math.inf, 0.0)):
        with pytest.raises(ValueError, match="low"):
            ClampedMoments(MODEL.family, low, high)


def test_the_sensitivity_is_the_largest_change_on_a_fine_grid():
    """Pairs of 401 records from beyond one bound to beyond the other; ±½ is among them, so that the value is exact."""
    x = np.linspace(-2.0 - 0.45, 2.5 + 0.45, 401 + 80)
    statistics = MODEL.sufficient_statistics(np.append(x, 0.25 + 2.25 * np.array([-1, -0.5, 0.5, 1]))[:, None])
    change = np.abs(statistics[:, None] - statistics[None]).sum(axis=-1).max()
    mechanism = LaplaceMechanism(MODEL, 10, 0.5)
    assert mechanism.sensitivity == pytest.approx(change) == pytest.approx(2.25)
    assert mechanism.scale == pytest.approx(4.5)


def test_the_naive_law_is_that_of_the_projected_sums():
    """A release beyond what ten records can have: Σr² = 10 and Σr = −10 are ten records on the lower bound."""
    found = LaplaceMechanism(MODEL, 10, 1.0).naive_posterior(np.array([-30.0, 17.0]))
    assert found == pytest.approx(MODEL.family.posterior([-20.0, 40.0, 10.0]))


def test_inversions_that_are_rounding_do_not_move_the_exact_posterior():
    """A release where inverted densities far from the peak are negative: the normal law is within 0.2 deviations."""
    family = NormalUnknownVariance(0.0, 4.0, 6.0, 6.0)
    bound = float(family.predictive_quantile(0.975))
    given = ClampedMoments(family, -bound, bound), np.array([-38.92728532, 23.26996903]), 100, 0.225
    centre, sd = moments(quadrature.posterior(*given))
    found, _ = moments(quadrature.exact(*given))
    assert np.all(np.abs(found - centre) < 0.2 * sd)
