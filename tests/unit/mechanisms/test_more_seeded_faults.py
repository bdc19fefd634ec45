"""Faults seeded into Langevin steps, noise of whole numbers and rounded draws, one at a time.

The audit's verdict sees each, and passes the shipped code; with `test_seeded_faults.py` every mechanism has one.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from test_seeded_faults import (
    BITS,
    CATEGORIES,
    CHAIN,
    FAULTS,
    PURE,
    eight_features,
    judge,
    judged_as_shipped,
    noise_shared,
    on,
    power_doubled,
    rdp,
    stated_power_doubled,
)

from privpost import discovery
from privpost.distributions import exact_draws
from privpost.mechanisms import logistic_finite
from privpost.mechanisms.discrete_noise import DiscreteGaussianMechanism, GeometricMechanism
from privpost.mechanisms.exponential import ExponentialMechanism
from privpost.mechanisms.gamma_sampling import GammaDraw
from privpost.mechanisms.logistic_finite import LogisticLangevin
from privpost.mechanisms.moments_gaussian import MomentsGaussian
from privpost.mechanisms.moments_laplace import MomentsLaplace
from privpost.mechanisms.network_sampling import AttributeSampler
from privpost.mechanisms.posterior_sampling import PosteriorDraw
from privpost.models import GammaExponential
from privpost.models.binary_regression import BinaryRegression
from privpost.models.normal_regression import NormalRegression

# After so few steps the start and each step still show.
LINE = on(BinaryRegression(1, 0.1), 4, rdp(0.1), step=0.2, relaxations=0.7)
PLANE = on(BinaryRegression(2, 0.1), 3, rdp(1.0), relaxations=0.7)
LONG = on(BinaryRegression(2, 0.1), 3, rdp(1.0))
RECORDED = eight_features(rdp(1.0, 10.0))


def with_noise(change):
    """Steps whose noise of a shape is changed."""

    class Changed:
        def __init__(self, rng):
            self.rng, self.seen = rng, []

        def standard_normal(self, shape):
            self.seen.append(self.rng.standard_normal(shape))
            return change(self.seen)

    def seeded(patch):
        draw = LogisticLangevin.draw

        def changed(self, statistics, rng, size=None, **settings):
            return draw(self, statistics, rng if size is None else Changed(rng), size, **settings)

        patch.setattr(LogisticLangevin, "draw", changed)

    return seeded


def variance_halved(patch):
    with_noise(lambda seen: seen[-1] / 2**0.5)(patch)


def first_noise_in_every_step(patch):
    with_noise(lambda seen: seen[0])(patch)


def noise_of_weights_shared(patch):
    with_noise(lambda seen: np.broadcast_to(seen[-1][:, :1], seen[-1].shape))(patch)


def start_at_the_mode(patch):
    draw = LogisticLangevin.draw

    def from_the_mode(self, statistics, rng, size=None, **settings):
        if size is None:
            return draw(self, statistics, rng)
        mode = self.release_law(statistics).at_mode().mean
        first = replace(self, relaxations=1e-9), np.broadcast_to(mode, (size, self.model.dimension))
        return draw(self, statistics, rng, size, after=first)

    patch.setattr(LogisticLangevin, "draw", from_the_mode)


def one_step_fewer(patch):
    steps = LogisticLangevin.steps.fget
    patch.setattr(LogisticLangevin, "steps", property(lambda self: max(1, steps(self) - 1)))


def half_the_step_size(patch):
    size = LogisticLangevin.step_size.fget
    patch.setattr(LogisticLangevin, "step_size", property(lambda self: size(self) / 2))


def prior_forgotten(patch):
    law = LogisticLangevin.release_law
    patch.setattr(LogisticLangevin, "release_law", lambda self, s: replace(law(self, s), prior_precision=1e-9))


def first_step_alone_is_charged(patch):
    mu = logistic_finite.langevin_mu
    patch.setattr(logistic_finite, "langevin_mu", lambda steps, *settings: mu(1, *settings))


def charge_nine_times_too_small(patch):
    mu = logistic_finite.langevin_mu
    patch.setattr(logistic_finite, "langevin_mu", lambda *settings: mu(*settings) / 3)


def noise_halved(kind):
    """Towards 0, so that it stays whole."""

    def halved_noise(patch):
        noise = kind.noise
        patch.setattr(kind, "noise", lambda self, shape, rng: np.trunc(noise(self, shape, rng) / 2))

    return halved_noise


def sensitivity_of_one(patch):
    patch.setattr(GeometricMechanism, "sensitivity", property(lambda self: 1.0))


def records_count_twice(patch):
    untrimmed = AttributeSampler._untrimmed
    patch.setattr(AttributeSampler, "_untrimmed", lambda self, s: untrimmed(self, 2 * np.asarray(s)))


def unweighted_when_rounded(patch):
    """The draws of studies keep their law."""
    cells = PosteriorDraw._cells
    patch.setattr(PosteriorDraw, "_cells", lambda self, *given: cells(replace(self, coefficient=1.0), *given))


def prior_unweighted_when_rounded(patch):
    """α in place of α/m, which a concentrated draw divides by."""
    cells = PosteriorDraw._cells

    def forgetful(self, statistics, *given):
        direct = PosteriorDraw(self.model, self.n, self.order, weighting="direct")
        return cells(direct, statistics, *given)

    patch.setattr(PosteriorDraw, "_cells", forgetful)


def waiting_times_count_twice_when_rounded(patch):
    cells = GammaDraw._cells
    patch.setattr(GammaDraw, "_cells", lambda self, s, *given: cells(self, [2 * s[0], *s[1:]], *given))


def temperature_of_one_when_rounded(patch):
    cells = ExponentialMechanism._cells
    patch.setattr(ExponentialMechanism, "_cells", lambda self, *given: cells(replace(self, epsilon=1e9), *given))


def ends_forgotten_when_rounded(patch):
    beta = exact_draws.beta
    patch.setattr(exact_draws, "beta", lambda law, ends=(0, 1), randbits=None: beta(law, randbits=randbits))


STEPS = [
    *(
        (fault, settings, "other law")
        for settings in (LINE, PLANE, LONG, RECORDED)
        for fault in (
            variance_halved,
            first_noise_in_every_step,
            prior_forgotten,
            power_doubled(LogisticLangevin),
            stated_power_doubled,
        )
    ),
    (start_at_the_mode, LINE, "other law"),
    *((fault, PLANE, "other law") for fault in (start_at_the_mode, one_step_fewer, half_the_step_size)),
    *((noise_of_weights_shared, settings, "other law") for settings in (PLANE, LONG)),
    *((charge_nine_times_too_small, settings, "violated") for settings in (LINE, PLANE, LONG, RECORDED)),
    (first_step_alone_is_charged, RECORDED, "violated"),
]
WAITS = on(GammaExponential(2, 2), 4, rdp(0.3), bounds=(0.0, 2.0), weighting="diffused")
OTHERS = [
    (noise_halved(GeometricMechanism), GeometricMechanism, on(BITS, 8, PURE), "violated"),
    (noise_shared(GeometricMechanism), GeometricMechanism, on(CATEGORIES, 4, PURE), "violated"),
    (sensitivity_of_one, GeometricMechanism, on(CATEGORIES, 4, PURE), "violated"),
    (noise_halved(DiscreteGaussianMechanism), DiscreteGaussianMechanism, on(BITS, 8, rdp(0.3)), "violated"),
    (noise_shared(DiscreteGaussianMechanism), DiscreteGaussianMechanism, on(CATEGORIES, 4, rdp(1.0)), "violated"),
    (noise_halved(MomentsLaplace), MomentsLaplace, on(NormalRegression(1), 4, PURE), "violated"),
    (noise_halved(MomentsGaussian), MomentsGaussian, on(NormalRegression(1), 4, rdp(1.0)), "violated"),
    (noise_shared(MomentsGaussian), MomentsGaussian, on(NormalRegression(2), 4, rdp(2.0)), "violated"),
    (records_count_twice, AttributeSampler, on(CHAIN, 20, PURE), "other law"),
    (unweighted_when_rounded, PosteriorDraw, on(BITS, 100, rdp(0.03), weighting="diffused"), "other law"),
    (unweighted_when_rounded, PosteriorDraw, on(CATEGORIES, 20, rdp(0.1), weighting="diffused"), "other law"),
    (prior_unweighted_when_rounded, PosteriorDraw, on(BITS, 8, rdp(0.1), weighting="concentrated"), "other law"),
    (waiting_times_count_twice_when_rounded, GammaDraw, WAITS, "other law"),
    (temperature_of_one_when_rounded, ExponentialMechanism, on(BITS, 100, PURE, a0=0.05), "other law"),
    (ends_forgotten_when_rounded, ExponentialMechanism, on(BITS, 4, PURE, a0=0.3), "other law"),
]
CAUGHT = [*((fault, LogisticLangevin, *case) for fault, *case in STEPS), *OTHERS]


@pytest.mark.parametrize(
    "fault, kind, settings, verdict",
    [pytest.param(*case, id=f"{case[0].__name__}-{case[1].__name__}-{i}") for i, case in enumerate(CAUGHT)],
)
def test_the_audit_catches_a_seeded_fault(fault, kind, settings, verdict, monkeypatch):
    """By the laws that settings mean and by bounds from draws; 6,000 draws, 400 rounded ones, at the level 1e-6."""
    settings = {**settings, "rounded": 200 if fault.__name__.endswith("when_rounded") else 0}
    assert judged_as_shipped(kind, **settings) == "within claim"
    fault(monkeypatch)
    assert judge(kind, **settings) == verdict


def test_every_mechanism_has_a_fault_that_the_audit_catches():
    seeded = {case[1] for cases in FAULTS.values() for case in cases} | {case[1] for case in CAUGHT}
    assert {kind.mechanism for kind in discovery.kinds()} <= seeded
