"""Draws in a ball against closed forms and quadrature, wherever the untruncated mean lies.

Kolmogorov-Smirnov tests reject below 1e-6 and means at 5 standard errors (6e-7): with about 40 of them the false-alarm
rate of the file is below 1e-4; all seeds are fixed.
"""

import numpy as np
import pytest
from scipy.special import log_ndtr, logsumexp

from privpost.distributions.gaussian_in_ball import sample

SIZE = 20_000


@pytest.mark.parametrize("mean, sd", [(0.3, 0.5), (0.3, 20.0), (1.5, 0.1), (1.5, 5.0), (-40.0, 0.5)])
def test_one_dimension_is_the_truncated_normal(mean, sd):
    from scipy.stats import kstest

    draws = sample([mean], [[1 / sd**2]], 1.0, SIZE, np.random.default_rng(1)).draws[:, 0]
    # Distribution function in logarithms, on the side of the mean's tail.
    sign = -1.0 if mean > 0 else 1.0

    def upper(x):
        return log_ndtr(-(x - sign * mean) / sd)

    x = np.sort(sign * draws)
    share = np.exp(upper(x) - upper(-1.0)), np.exp(upper(1.0) - upper(-1.0))
    assert kstest((1 - share[0]) / (1 - share[1]), "uniform").pvalue > 1e-6


CASES = {
    "inside": ((0.2, -0.3), ((4.0, 1.0), (1.0, 2.0))),
    "inside, wide": ((0.2, -0.3), ((0.02, 0.01), (0.01, 0.05))),
    "just outside": ((0.9, 0.6), ((50.0, 20.0), (20.0, 30.0))),
    "outside, wide": ((0.9, 0.6), ((0.5, 0.2), (0.2, 0.3))),
    "far outside": ((3.0, 1.0), ((50.0, 20.0), (20.0, 30.0))),
    "ten thousand standard deviations outside": ((2.0, 1.0), ((3e7, 1e7), (1e7, 1e8))),
}


@pytest.mark.parametrize("name", CASES)
def test_two_dimensions_against_quadrature(name):
    mean, precision = map(np.array, CASES[name])
    drawn = sample(mean, precision, 1.0, SIZE, np.random.default_rng(2))
    assert np.all((drawn.draws**2).sum(axis=1) <= 1 + 1e-12)
    # Polar grid, finer where the density is concentrated: around the draws' own extent, four times as wide.
    radius, angle = np.linalg.norm(drawn.draws, axis=1), np.unwrap(np.arctan2(drawn.draws[:, 1], drawn.draws[:, 0]))
    low = max(0.0, 1 - 4 * (1 - radius.min()))
    whole = np.ptp(angle) > 1.5
    spread = np.pi if whole else 4 * np.abs(angle - np.median(angle)).max()
    x, w = np.polynomial.legendre.leggauss(400)
    r = low + (1 - low) * (x + 1) / 2
    phi = np.median(angle) + spread * x
    points = np.stack([np.outer(r, np.cos(phi)), np.outer(r, np.sin(phi))], axis=-1)
    off = points - mean
    log_weight = -0.5 * np.einsum("...i,ij,...j->...", off, precision, off) + np.log(np.outer(w * r, w))
    weight = np.exp(log_weight - logsumexp(log_weight))
    # First and second moments around a point close to the mean, so that narrow laws are resolved.
    centre = (weight[..., None] * points).sum(axis=(0, 1))
    for power in (1, 2):
        expected = (weight[..., None] * (points - centre) ** power).sum(axis=(0, 1))
        found = (drawn.draws - centre) ** power
        assert np.all(np.abs(found.mean(axis=0) - expected) < 5 * found.std(axis=0) / SIZE**0.5)
    product = (drawn.draws - centre).prod(axis=1)
    expected = (weight * (points - centre).prod(axis=-1)).sum()
    assert abs(product.mean() - expected) < 5 * product.std() / SIZE**0.5


@pytest.mark.parametrize("distance, sd", [(0.5, 0.2), (1.3, 0.1), (2.0, 1.0)])
def test_eight_dimensions_against_the_radial_law(distance, sd):
    # Isotropic: the squared radius over sd² is a noncentral chi-square variate, truncated.
    from scipy.stats import kstest, ncx2

    mean = np.full(8, distance / 8**0.5)
    drawn = sample(mean, np.eye(8) / sd**2, 1.0, SIZE, np.random.default_rng(3))
    law = ncx2(8, (distance / sd) ** 2)
    uniform = law.cdf((drawn.draws**2).sum(axis=1) / sd**2) / law.cdf(1 / sd**2)
    assert kstest(uniform, "uniform").pvalue > 1e-6


def test_plain_rejection_agrees_where_it_is_possible():
    from scipy.stats import ks_2samp

    rng = np.random.default_rng(4)
    factor = rng.normal(size=(5, 5))
    precision = 10 * (factor @ factor.T + np.eye(5))
    mean = np.array([0.9, 0.3, -0.4, 0.2, 0.1])
    plain = rng.multivariate_normal(mean, np.linalg.inv(precision), size=200_000)
    plain = plain[(plain**2).sum(axis=1) <= 1]
    drawn = sample(mean, precision, 1.0, SIZE, rng).draws
    assert len(plain) > 5000
    for direction in (*np.eye(5), mean):
        assert ks_2samp(plain @ direction, drawn @ direction).pvalue > 1e-6


@pytest.mark.parametrize("dimension", [1, 8, 14])
@pytest.mark.parametrize("distance", [0.99, 1.01, 2.0, 1e4])
@pytest.mark.parametrize("sd", [1e-4, 0.1, 10.0])
def test_acceptance_does_not_vanish(dimension, distance, sd):
    rng = np.random.default_rng(5)
    factor = rng.normal(size=(dimension, dimension))
    precision = (factor @ factor.T + 0.3 * np.eye(dimension)) / sd**2
    mean = np.full(dimension, distance / dimension**0.5)
    # 0.01: half of the smallest share in a longer run over these cases.
    assert sample(mean, precision, 1.0, 500, rng).acceptance > 0.01


@pytest.mark.parametrize(
    "arguments, message",
    [
        (([0.0], [[1.0]], 0.0, 5), "radius is 0.0"),
        (([0.0], [[1.0]], 1.0, 0), "size is 0"),
        (([0.0, 0.0], [[1.0, 0.0], [0.0, -1.0]], 1.0, 5), "precision has the eigenvalue -1"),
    ],
)
def test_impossible_settings_are_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        sample(*arguments, np.random.default_rng(0))
