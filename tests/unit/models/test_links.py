"""Probit and complementary log-log regression: likelihoods, slopes, and the share of theorem 16's bound."""

import itertools
import math
from types import SimpleNamespace

import mpmath
import numpy as np
import pytest
from scipy import optimize, stats
from scipy.special import expit

from privpost.experiments.geumlek2017.theorem16 import study as theorem16
from privpost.models.regression.link import LinkRegression, steepest
from privpost.privacy.divergences.glm import posterior_rdp


def slopes(link, label, z):
    """Derivatives of the log-likelihood of one label at z, by hand."""
    if link == "cloglog":
        return np.exp(z) / np.expm1(np.exp(z)) if label else -np.exp(z)
    sign = 1 if label else -1
    return sign * (stats.norm.pdf(z) / stats.norm.cdf(sign * z) if link == "probit" else expit(-sign * z))


def loss(link, label, z):
    p = mpmath.ncdf(z) if link == "probit" else 1 - mpmath.exp(-mpmath.exp(z))
    return -mpmath.log(p if label else 1 - p)


@pytest.mark.parametrize("link", ["probit", "cloglog"])
@pytest.mark.parametrize("label", [0.0, 1.0])
@pytest.mark.parametrize("z", [-40.0, -8.0, -2.0, 0.0, 1.5])
def test_likelihoods_by_high_precision(link, label, z):
    with mpmath.workdps(60):
        value = float(loss(link, label, mpmath.mpf(z)))
    model = LinkRegression(1, link=link)
    assert -model.log_likelihood([z], [1.0, label]) == pytest.approx(value, rel=1e-9)
    # Twice the record has twice the loss, and a scaled one that of the scaled weight.
    assert -model.log_likelihood([2 * z], [0.5, label] * 2) == pytest.approx(2 * value, rel=1e-9)


@pytest.mark.parametrize("link", ["logistic", "probit", "cloglog"])
def test_no_slope_on_the_ball_is_steeper_than_stated(link):
    z = np.linspace(-2.5, 2.5, 4001)
    for label, bound in zip((0.0, 1.0), steepest(link, 2.5), strict=True):
        slopes = np.diff(LinkRegression(1, link=link).log_likelihood(z[:, None], [1.0, label])) / np.diff(z)
        # Slopes over steps of 1/800, which lie between those at the ends of a step.
        assert bound * (1 - 4e-3) < np.abs(slopes).max() <= bound


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
        gradients = [
            slopes(link, label, z)[:, None] * x for x, z, label in zip(records, predictors, labels, strict=True)
        ]
        largest = max(largest, float(np.linalg.norm(gradients[0] - gradients[1], axis=1).max()))
    assert largest <= 2 * model.slope_bound
    # On small balls two records of one label attain it; on the shipped ones the bound is that of different labels.
    assert largest > 1.99 * model.slope_bound or link != "cloglog" or reach > 0.4
    if link != "cloglog" or reach > 0.4:
        assert model.slope_bound == sum(steepest(link, reach)) / 2


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
