"""Rounded draws against the inverse of their distribution function, and bounds that a worst case attains.

The source of bits is a known uniform number U, so that the released cell is ⌊2^b F⁻¹(U)⌋ and nothing is random; F is
integrated by mpmath at the law that the papers state.
"""

from __future__ import annotations

import math
import random
import sys
from fractions import Fraction

import mpmath
import numpy as np
import pytest

from privpost.distributions import exact_draws
from privpost.mechanisms.choices.exponential import ExponentialMechanism
from privpost.mechanisms.draws.gamma import GammaDraw
from privpost.mechanisms.draws.posterior import PosteriorDraw
from privpost.models import BetaBernoulli, DirichletCategorical, GammaExponential
from privpost.privacy.divergences.glm import independence_chain_guarantee

pytest.importorskip("flint")
UNIFORMS = (0.001, 0.137, 0.5, 0.71828, 0.98765)
DIGITS = 60


def bits_of(*uniforms):
    """A source of bits that reveals one uniform number to each draw that asks, in the order of their first requests."""
    revealed: dict[int, list] = {}

    def randbits(number):
        draw = id(sys._getframe(1).f_locals["self"])
        own = revealed.setdefault(draw, [uniforms[len(revealed) % len(uniforms)], 0])
        own[1] += number
        return int(mpmath.floor(mpmath.mpf(own[0]) * mpmath.mpf(2) ** own[1])) % 2**number

    return randbits


def inverse(cdf, u, low, high):
    """The point below which the law has the mass u, by bisection."""
    low, high = mpmath.mpf(low), mpmath.mpf(high)
    for _ in range(120):
        middle = (low + high) / 2
        low, high = (middle, high) if cdf(middle) < u else (low, middle)
    return low


def beta_cdf(a, b):
    return lambda x: mpmath.betainc(a, b, 0, x, regularized=True)


BETAS = [
    # ones, zeros, mechanism, and the law of its draw.
    (3, 5, PosteriorDraw(BetaBernoulli(6, 12), 8, 2.0, weighting="direct"), (9, 17)),
    (3, 5, PosteriorDraw(BetaBernoulli(6, 12), 8, 2.0, 0.25, weighting="diffused"), (6.75, 13.25)),
    (3, 5, PosteriorDraw(BetaBernoulli(6, 12), 8, 2.0, 0.25, weighting="concentrated"), (27, 53)),
]


@pytest.mark.parametrize(("ones", "zeros", "mechanism", "law"), BETAS)
@pytest.mark.parametrize("u", UNIFORMS)
def test_rounded_posterior_draws_have_their_weights(ones, zeros, mechanism, law, u):
    with mpmath.workdps(DIGITS):
        theta = inverse(beta_cdf(*law), u, 0, 1)
        assert mechanism.rounded([ones, zeros], 12, bits_of(u)) == [int(theta * 2**12)]


@pytest.mark.parametrize("u", UNIFORMS)
def test_rounded_ops_tempers_prior_and_likelihood_within_its_ends(u):
    mechanism = ExponentialMechanism(BetaBernoulli(4, 2), 8, 1.0, a0=0.25)
    t = 2 * math.log(3)
    a, b = 1 + (3 + 5) / t, 1 + (1 + 3) / t
    with mpmath.workdps(DIGITS):
        cdf, bottom, top = beta_cdf(a, b), *(beta_cdf(a, b)(mpmath.mpf(x)) for x in (0.25, 0.75))
        theta = inverse(lambda x: (cdf(x) - bottom) / (top - bottom), u, 0.25, 0.75)
        assert mechanism.rounded([5, 3], 12, bits_of(u)) == [int(theta * 2**12)]


GAMMAS = [("direct", 1.0, (8, 25)), ("diffused", 0.25, (5, 21.25)), ("concentrated", 0.25, (20, 85))]


@pytest.mark.parametrize(("weighting", "weight", "law"), GAMMAS)
@pytest.mark.parametrize("u", UNIFORMS)
def test_rounded_rates_have_their_weights(weighting, weight, law, u):
    mechanism = GammaDraw(GammaExponential(4, 20), 4, 2.0, weight, weighting=weighting, bounds=(0.0, 2.0))
    with mpmath.workdps(DIGITS):
        theta = inverse(lambda x: mpmath.gammainc(law[0], 0, x * law[1], regularized=True), u, 0, 10)
        assert mechanism.rounded([5, 4], 12, bits_of(u)) == [int(theta * 2**12)]


WEIGHTS = [("direct", 1.0, (3, 3, 4)), ("diffused", 0.5, (2, 2.5, 3.5)), ("concentrated", 0.5, (4, 5, 7))]


@pytest.mark.parametrize(("weighting", "weight", "law"), WEIGHTS)
def test_rounded_categories_have_their_weights(weighting, weight, law):
    mechanism = PosteriorDraw(DirichletCategorical((1, 2, 3)), 4, 2.0, weight, weighting=weighting)
    for uniforms in zip(UNIFORMS, reversed(UNIFORMS), strict=True):
        with mpmath.workdps(DIGITS):
            first = inverse(beta_cdf(law[0], law[1] + law[2]), uniforms[0], 0, 1)
            second = (1 - first) * inverse(beta_cdf(law[1], law[2]), uniforms[1], 0, 1)
            expected = [int(x * 2**8) for x in (first, second, 1 - first - second)]
            assert mechanism.rounded([2, 1, 1], 8, bits_of(*uniforms)) == expected


@pytest.mark.parametrize("above", [2.0**-12, -(2.0**-12)])
@pytest.mark.parametrize("cell", [40, 100])
def test_floors_of_categories_wait_until_they_are_certain(cell, above):
    """The second θ is so close to a whole number of steps that the first bits of the sticks do not decide its floor."""
    with mpmath.workdps(DIGITS):
        u = mpmath.mpf(0.3)
        first = inverse(beta_cdf(2, 5), u, 0, 1)
        target = (cell + mpmath.mpf(above)) / 2**8
        v = beta_cdf(2, 3)(target / (1 - first))
        drawn = exact_draws.dirichlet([exact_draws.Fraction(2)] * 2 + [exact_draws.Fraction(3)], 8, bits_of(u, v))
        assert drawn == [int(x * 2**8) for x in (first, target, 1 - first - target)]


@pytest.mark.parametrize("rejected", [0.5, 0.9])
def test_a_chain_that_mostly_rejects_spends_what_the_other_ones_density_lacks(rejected):
    """Ten states, no start in the last; one chain proposes it 1 − a times too rarely, the other one from the law."""
    law, start, last = np.full(10, 0.1), np.append(np.full(9, 1 / 9), 0.0), 9
    rare = np.full(10, (1 - 0.1 * (1 - rejected)) / 9)
    rare[last] = 0.1 * (1 - rejected)
    states = []
    for proposal in (rare, law):
        weight = law / proposal
        accepted = np.minimum(1, weight[None] / weight[:, None]) * proposal
        np.fill_diagonal(accepted, 0)
        states.append(start @ (accepted + np.diag(1 - accepted.sum(axis=1))))
    a, height = 1 - 1 / (law / rare).max(), (start / law).max()
    assert a == pytest.approx(rejected)
    spent = math.log(states[1][last] / states[0][last])
    assert spent == pytest.approx(-math.log(1 - rejected))
    # The height of the start by itself would not cover it.
    assert math.log(1 + a * (height - 1)) < spent <= independence_chain_guarantee(0.0, a, height)


def test_sticks_are_enclosed_by_the_ends_of_their_intervals():
    """Against products of exact fractions: never narrower, and no wider in 40 sticks of twelve parts."""
    source = random.Random(7)
    for _ in range(40):
        cells, precision, bits = [source.getrandbits(12) for _ in range(11)], 12, 9
        low = high = Fraction(1)
        exact = []
        for below, above in [*((cell, cell + 1) for cell in cells), (2**12, 2**12)]:
            exact.append((math.floor(low * below * 2**bits / 2**12), math.ceil(high * above * 2**bits / 2**12) - 1))
            low, high = low * (2**12 - above) / 2**12, high * (2**12 - below) / 2**12
        assert exact_draws._sticks(cells, precision, bits) == exact
