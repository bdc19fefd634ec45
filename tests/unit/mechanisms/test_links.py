"""Probit and complementary log-log regression: losses, slopes, curvature floors, and exact draws against quadrature."""

import itertools
import math
from types import SimpleNamespace

import mpmath
import numpy as np
import pytest
from scipy import optimize
from scipy.special import expit

from privpost.experiments.audit import laws
from privpost.experiments.audit.expected import law_of
from privpost.experiments.geumlek2017.theorem16 import study as theorem16
from privpost.mechanisms.link_sampling import LinkDraw
from privpost.models.link_regression import LinkPosterior, LinkRegression, steepest
from privpost.privacy.glm import posterior_rdp
from privpost.samplers import logistic_exact


def posterior(link, z=0.0, label=1.0, features=None):
    features = np.ones((1, 1)) if features is None else features
    return LinkPosterior(features, np.full(len(features), label), 1.0, link=link)


def loss(link, label, z):
    p = mpmath.ncdf(z) if link == "probit" else 1 - mpmath.exp(-mpmath.exp(z))
    return -mpmath.log(p if label else 1 - p)


@pytest.mark.parametrize("link", ["probit", "cloglog"])
@pytest.mark.parametrize("label", [0.0, 1.0])
@pytest.mark.parametrize("z", [-8.0, -2.0, 0.0, 1.5])
def test_losses_slopes_and_curvatures_by_high_precision(link, label, z):
    law, at = posterior(link, label=label), np.array([z])
    with mpmath.workdps(60):
        value = float(loss(link, label, mpmath.mpf(z)))
        slope, curvature = (float(mpmath.diff(lambda t: loss(link, label, t), z, order)) for order in (1, 2))
    # The log-likelihood's slope is the loss's with the other sign; 1e-5: cancellation in curvatures of 1e-4 and below.
    assert -law.log_likelihood_of_predictors(at[None])[0] == pytest.approx(value, rel=1e-9)
    assert -law.slopes(at)[0] == pytest.approx(slope, rel=1e-9)
    assert law.curvatures(at)[0] == pytest.approx(curvature, rel=1e-5, abs=1e-12)


@pytest.mark.parametrize("link", ["probit", "cloglog"])
def test_the_floor_bounds_the_gap_between_loss_and_tangent(link):
    rng, size = np.random.default_rng(1), 20_000
    z, reach = rng.normal(0, 3, size), 10 ** rng.uniform(-3, 1, size)
    law = LinkPosterior(np.ones((size, 1)), rng.integers(0, 2, size).astype(float), 1.0, link=link)
    floor, (slope, _) = law.curvature_floor(z, reach), law._derivatives(z)
    for share in np.linspace(-1, 1, 9):
        s = share * reach
        gap = law._losses(z + s) - law._losses(z) - slope * s
        # Rounding of the losses.
        assert np.all(gap >= floor * s**2 / 2 - 1e-12 * (1 + law._losses(z) + law._losses(z + s) + np.abs(slope * s)))


@pytest.mark.parametrize("link", ["logistic", "probit", "cloglog"])
def test_no_slope_on_the_ball_is_steeper_than_stated(link):
    z = np.linspace(-2.5, 2.5, 2001)
    model = LinkRegression(1, link=link, radius=2.5)
    for label, bound in zip((0.0, 1.0), steepest(link, 2.5), strict=True):
        law = model.posterior(np.column_stack([np.ones(len(z)), np.full(len(z), label)]).ravel(), 1.0, 1.0)
        assert np.abs(law.slopes(z)).max() == pytest.approx(bound, rel=1e-9)


@pytest.mark.parametrize("link", ["logistic", "probit", "cloglog"])
@pytest.mark.parametrize("reach", [0.01, 0.1, 0.3, 0.5, 1.0, 2.0, 4.0])
def test_no_pair_of_records_has_gradients_farther_apart_than_stated(link, reach):
    rng, size, largest = np.random.default_rng(4), 50_000, 0.0
    model = LinkRegression(2, link=link, radius=reach)
    records = rng.normal(size=(2, size, 2))
    records /= np.linalg.norm(records, axis=-1, keepdims=True)
    # Half of them on the rim of the disc, and half of the weights on that of the ball.
    records[:, ::2] *= np.sqrt(rng.random((2, size // 2, 1)))
    weights = reach * np.where(rng.random(size) < 0.5, 1.0, rng.random(size))
    predictors = weights * records[..., 0]
    for labels in itertools.product((0.0, 1.0), repeat=2):
        gradients = []
        for x, z, label in zip(records, predictors, labels, strict=True):
            law = model.posterior(np.column_stack([x, np.full(size, label)]).ravel(), 1.0, 1.0)
            gradients.append(law.slopes(z)[:, None] * x)
        largest = max(largest, float(np.linalg.norm(gradients[0] - gradients[1], axis=1).max()))
    assert largest <= 2 * model.slope_bound
    # On small balls two records of one label attain it; on the shipped ones the bound is that of different labels.
    assert largest > 1.99 * model.slope_bound or link != "cloglog" or reach > 0.4
    if link != "cloglog" or reach > 0.4:
        assert model.slope_bound == sum(steepest(link, reach)) / 2


@pytest.mark.parametrize("link", ["probit", "cloglog"])
@pytest.mark.parametrize("dimension", [1, 2])
@pytest.mark.parametrize("ends", [None, (1.0, 2.0)])
def test_exact_draws_have_the_law_by_quadrature(link, dimension, ends):
    # With the ends forced most proposals come from the tail shells.
    rng = np.random.default_rng(3)
    model, n = LinkRegression(dimension, 0.05, link=link, radius=3.0), 12
    x = rng.normal(size=(n, dimension))
    data = np.column_stack([x / np.maximum(1, np.linalg.norm(x, axis=1))[:, None], rng.integers(0, 2, n)])
    mechanism = LinkDraw(model, n, 2.0, 0.5, weighting="diffused", public_time=False)
    around = logistic_exact.envelope(mechanism.release_law(model.sufficient_statistics(data)), ends=ends)
    draws, _ = logistic_exact.sample(around, 4000, rng)
    assert laws.p_value(law_of(mechanism, data).quantiles(draws, rng)) > 1e-4


@pytest.mark.parametrize("link", ["probit", "cloglog"])
def test_the_charge_has_the_balls_own_slopes(link):
    model = LinkRegression(2, 0.1, link=link, radius=2.0)
    own = float(posterior_rdp(3.0, 50, 0.1, 0.4, 1.0, sum(steepest(link, 2.0)) / 2))
    assert LinkDraw(model, 50, 3.0, 0.4, weighting="diffused", public_time=False).cost().epsilon == pytest.approx(
        own, rel=1e-12
    )
    # More than with B = 1, as the slopes are steeper than 1.
    assert own > posterior_rdp(3.0, 50, 0.1, 0.4)


def test_bad_input_names_the_setting():
    with pytest.raises(ValueError, match="link is 'logit'; allowed: logistic, probit, cloglog"):
        LinkRegression(1, link="logit")
    with pytest.raises(ValueError, match=r"reach is 0\.0"):
        LinkRegression(1, radius=0.0)
    with pytest.raises(ValueError, match="labels other than 0 and 1"):
        LinkRegression(1).sufficient_statistics(np.array([[0.5, 2.0]]))


def test_the_limit_of_the_share_is_that_of_quadrature_and_no_pair_of_records_beats_it():
    # Two thirds of a percent: the law at nβ = 1e4 is a Gaussian but for terms of that size over M.
    beta, n = 1e-3, 1e7
    share, distance, sine = theorem16.limit_share(beta)
    length = optimize.brentq(lambda x: math.exp(-x) - x + 1, 0.5, 3) / distance
    config = SimpleNamespace(link="logistic", angles=[math.asin(sine)], pushing=[length])
    found, *_ = theorem16.worst_pair(config, n, beta, 2.0, None)
    assert found / posterior_rdp(2.0, n, beta) == pytest.approx(share, rel=1e-3)
    # Any two records of the unit disc at the mode (0, -M): the slopes of their losses differ by at most 2 sqrt(share).
    rng = np.random.default_rng(3)
    records = rng.normal(size=(2, 200_000, 2))
    records /= np.maximum(1, np.linalg.norm(records, axis=-1, keepdims=True))
    slopes = records * expit(records[..., 1:] * distance)
    assert ((slopes[0] - slopes[1]) ** 2).sum(axis=-1).max() <= 4 * share
    # No length pushes the mode farther.
    for other in np.geomspace(1e-4, 1, 50):
        assert distance + 1e-9 >= optimize.brentq(lambda m, t=other: beta * m - t * expit(-t * m), 0, 1 / beta)
