"""Laplace and Gaussian noise: densities, sensitivities, charges and projections of the shipped mechanisms."""

import numpy as np
import pytest

from privpost.mechanisms import (
    DiscreteGaussianMechanism,
    GaussianMechanism,
    LaplaceMechanism,
)
from privpost.mechanisms.noise.redacted import RedactedSum
from privpost.models import BetaBernoulli, DirichletCategorical, LinearRegression, NormalKnownVariance
from privpost.privacy.accounting.costs import Cost

COUNTS = DirichletCategorical((5, 5, 5))


def test_noise_densities_agree_with_scipy():
    from scipy.stats import laplace, norm

    release, statistics = np.array([1.5, -2.0]), np.array([3.0, 1.0, 0.0])
    noisy = LaplaceMechanism(COUNTS, 4, 0.5, coordinates="free")
    expected = laplace.logpdf(release, statistics[:2], 4.0).sum()
    assert float(noisy.log_density(release, statistics)) == pytest.approx(expected, rel=1e-12)
    noisy = GaussianMechanism(COUNTS, 4, 2.5, 2.0)
    expected = norm.logpdf(release, statistics[:2], 2.5).sum()
    assert float(noisy.log_density(release, statistics)) == pytest.approx(expected, rel=1e-12)


def test_the_noise_on_one_count_has_its_distribution_function_and_privacy_curve():
    """P(noise ≤ v) of scale 2, and the largest P(S) − e^ε P'(S) over sets of releases, by sums over a fine grid."""
    noisy = LaplaceMechanism(BetaBernoulli(1, 1), 20, 0.5, coordinates="free")
    step = 0.001
    at = step * (np.arange(-60_000, 60_000) + 0.5)
    density = np.exp(-np.abs(at) / 2) / 4
    for value in (-3.0, -0.5, 0.0, 1.0, 4.0):
        assert noisy.noise_cdf(value) == pytest.approx(step * density[at < value].sum(), abs=1e-6)
    neighbour = np.exp(-np.abs(at - 1) / 2) / 4
    for epsilon in (0.0, 0.1, 0.4, 0.5, 0.7):
        excess = step * np.maximum(density - np.exp(epsilon) * neighbour, 0).sum()
        assert noisy.privacy_curve(epsilon) == pytest.approx(excess, abs=1e-6)
    assert LaplaceMechanism(COUNTS, 20, 0.5).privacy_curve(0.1) is None
    assert LaplaceMechanism(COUNTS, 20, 0.5).recalibrated(Cost("approximate", 0.1, delta=0.01)) is None
    exact = noisy.recalibrated(Cost("approximate", 0.1, delta=0.01))
    assert exact.privacy_curve(0.1) == pytest.approx(0.01, rel=1e-6)


def test_laplace_calibrates_to_a_renyi_budget():
    budget = Cost("rdp", 0.3, order=4)
    mechanism = LaplaceMechanism.calibrate(BetaBernoulli(), 20, budget)
    assert mechanism.epsilon > 0.3
    assert mechanism.cost().within(budget)
    assert float(mechanism.rdp(4)) == pytest.approx(0.3, rel=1e-9)


def test_projection_and_privatised_posterior():
    every = LaplaceMechanism(BetaBernoulli(2, 3), 10, 1.0, coordinates="all")
    assert every.project([[-1.5, 14.0], [3.5, 6.0]]).tolist() == [[0, 14], [3.5, 6]]
    assert every.naive_posterior([-1.5, 14.0]).tolist() == [2, 17]
    count = GaussianMechanism(BetaBernoulli(6, 12), 10, 2.0, 2.0)
    assert count.project([[-1.5], [14.0], [3.5]]).tolist() == [[0, 10], [10, 0], [3.5, 6.5]]
    free = LaplaceMechanism(COUNTS, 10, 1.0, coordinates="free")
    assert free.project([[2.0, 3.0], [8.0, 7.0], [-4.0, 12.0]]).tolist() == [[2, 3, 5], [8, 7, 0], [0, 10, 0]]


@pytest.mark.parametrize("variant, factor", [("corrected", 0.5), ("paper", 1.0)])
def test_gaussian_charge(variant, factor):
    mechanism = GaussianMechanism(BetaBernoulli(6, 12), 100, 3.0, 15.0, variant=variant)
    assert mechanism.cost() == Cost("rdp", mechanism.cost().epsilon, order=15.0)
    assert mechanism.cost().epsilon == pytest.approx(factor * 15 / 9, rel=1e-12)
    calibrated = GaussianMechanism.calibrate(BetaBernoulli(6, 12), 100, Cost("rdp", 0.2, order=2), variant=variant)
    assert calibrated.sigma == pytest.approx(np.sqrt(factor * 2 / 0.2), rel=1e-12)


@pytest.mark.parametrize("r, m", [(1.0, 1.0), (0.3, 1.0), (1.0, 0.2)])
def test_a_posterior_draw_of_normal_records_is_gaussian_noise_on_their_sum(r, m):
    model, n, order = NormalKnownVariance(0.5, 2.0, 3.0), 20, 15.0
    # The largest change: one record moves from one bound to the other.
    totals = np.array([4.0, 6.0])
    pair = model.posterior(r * np.stack([totals, [n, n]], axis=-1), model.prior / m)
    mean, deviation = model.mean(pair), np.sqrt(model.variance(pair))
    sigma = float(model.record_variance / (r * deviation[0]))
    noise = GaussianMechanism(RedactedSum(model, -1.0, 1.0), n, sigma, order, coordinates="all")
    # Of two normal laws with one deviation.
    exact = order * ((mean[1] - mean[0]) / deviation[0]) ** 2 / 2
    assert noise.cost().epsilon == pytest.approx(exact)
    # The draw is the noisy sum, shifted and scaled by public numbers.
    scale = (mean[1] - mean[0]) / 2
    assert scale * noise.sigma == pytest.approx(deviation[0]) == pytest.approx(deviation[1])


@pytest.mark.parametrize(
    ("kind", "options"), [(LaplaceMechanism, {"epsilon": 1.0}), (GaussianMechanism, {"sigma": 1.0, "order": 2.0})]
)
def test_noise_for_counts_is_refused_where_records_do_not_show_how_far_they_reach(kind, options):
    """((√½, √½), 1) and 0 are 4.41 apart in L1, farther than any two of `records`, which are 4 apart."""
    model, far = LinearRegression(2), np.array([[[0.5**0.5, 0.5**0.5, 1.0]], [[0.0, 0.0, 0.0]]])
    assert np.abs(np.subtract(*model.sufficient_statistics(far))).sum() > 4.4
    with pytest.raises(ValueError, match="no bound is known here"):
        kind(model, 10, **options)


@pytest.mark.parametrize("kind", [GaussianMechanism, DiscreteGaussianMechanism])
def test_gaussian_noise_of_an_approximate_budget_has_its_rdp_at_order_two(kind):
    """The budget names no order: λ = 2 is the documented one, and λΔ²/(2σ²) with Δ = 1 there, to rounding."""
    noisy = kind.calibrate(BetaBernoulli(6, 12), 100, Cost("approximate", 1.0, delta=1e-5))
    assert noisy.cost() == Cost("rdp", noisy.cost().epsilon, order=2.0)
    assert noisy.cost().epsilon == pytest.approx(noisy.sigma**-2, rel=1e-12)
