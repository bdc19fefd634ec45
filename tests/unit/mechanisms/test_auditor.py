"""Faults seeded into shipped mechanisms, one at a time: the audit's verdict or a contract test sees each.

One fault of each kind is here; `make mutants STUDY=mechanisms/<name>` makes many. Every check passes on the code as
shipped first, so that it is the fault that fails it.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from test_draws import check_charge_is_twice_the_range
from test_mechanisms import check_a_second_release_is_refused, check_sensitivity

from privpost.experiments.audit import instances
from privpost.experiments.audit.audit import study as audit
from privpost.mechanisms import fourier, logistic_ops, logistic_sampling, redacted_laplace
from privpost.mechanisms.event_counts import HiddenMarkovSampler
from privpost.mechanisms.fourier import FourierMechanism
from privpost.mechanisms.gaussian import GaussianMechanism
from privpost.mechanisms.laplace import LaplaceMechanism
from privpost.mechanisms.logistic_ops import LogisticOps
from privpost.mechanisms.logistic_sampling import LogisticDraw
from privpost.mechanisms.map_estimate import MapMechanism, choose
from privpost.mechanisms.network_laplace import NetworkLaplace
from privpost.mechanisms.posterior_sampling import PosteriorDraw
from privpost.mechanisms.randomised_response import RandomisedResponse
from privpost.mechanisms.redacted_laplace import RedactedLaplace, RedactedSum
from privpost.models import BayesianNetwork, BetaBernoulli, DirichletCategorical, GammaExponential
from privpost.models.binary_regression import BinaryRegression
from privpost.privacy import glm
from privpost.privacy.accounting import Cost
from privpost.privacy.audit import lower_bound
from privpost.privacy.ledger import Ledger

SIZE, LEVEL = 3000, 1e-6
BITS, CATEGORIES = BetaBernoulli(6, 12), DirichletCategorical((5, 5, 5))
CHAIN, PAIR = BayesianNetwork({"a": [], "b": ["a"], "c": ["b"]}), BayesianNetwork({"a": [], "b": []})
SHORT, PURE = RedactedSum(GammaExponential(8, 2), 1.0, 1.5), Cost("pure", 1.0)


def judge(kind, model, n, budget, **options) -> str:
    """The audit's verdict on a mechanism that is calibrated to a budget."""
    mechanism = kind.calibrate(model, n, budget, **options)
    instance = instances.Instance("seeded", mechanism, ((budget, "stated"),), ())
    seen = audit.NOTHING
    if instance.share_of_target <= 1 + 1e-9:
        seen = audit.examine(instances.reduced(mechanism), SIZE, 100, np.random.default_rng(4), rounded=0)
    cost = mechanism.cost()
    bound = lower_bound(seen.counts, cost.order, LEVEL)
    return audit.verdict(cost.epsilon, bound, seen.exact, seen.smallest_p, instance.share_of_target, LEVEL)


def rdp(epsilon: float) -> Cost:
    return Cost("rdp", epsilon, order=2.0)


def statistics_count_twice(patch):
    draw = PosteriorDraw._perturb
    patch.setattr(PosteriorDraw, "_perturb", lambda self, s, rng: draw(self, 2 * np.asarray(s), rng))


def records_count_twice(patch):
    law = LogisticDraw.release_law

    def twice(self, statistics):
        once = law(self, statistics)
        return replace(once, features=np.tile(once.features, (2, 1)), labels=np.tile(once.labels, 2))

    patch.setattr(LogisticDraw, "release_law", twice)


def charge_halved(patch):
    charge = glm.ops_pure_epsilon
    for module in (glm, logistic_ops):
        patch.setattr(module, "ops_pure_epsilon", lambda *args, **settings: charge(*args, **settings) / 2)


def renyi_charge_quartered(patch):
    charge = glm.posterior_rdp
    for module in (glm, logistic_sampling):
        patch.setattr(module, "posterior_rdp", lambda *args, **settings: charge(*args, **settings) / 4)


def normal_noise_halved(patch):
    noise = GaussianMechanism.noise
    patch.setattr(GaussianMechanism, "noise", lambda self, shape, rng: noise(self, shape, rng) / 2)


def noise_shared(patch):
    noise = LaplaceMechanism.noise
    patch.setattr(
        LaplaceMechanism,
        "noise",
        lambda self, shape, rng: np.broadcast_to(noise(self, (*shape[:-1], 1), rng), shape),
    )


def calibrated_sigma_halved(patch):
    calibrate = GaussianMechanism.calibrate.__func__

    def half(cls, *args, **settings):
        mechanism = calibrate(cls, *args, **settings)
        return replace(mechanism, sigma=mechanism.sigma / 2)

    patch.setattr(GaussianMechanism, "calibrate", classmethod(half))


def length_of_the_interval(patch):
    patch.setattr(redacted_laplace, "redacted_sensitivity", lambda low, high: np.subtract(high, low))


def attribute_forgotten(patch):
    patch.setattr(NetworkLaplace, "sensitivity", property(lambda self: 2.0 * (len(self.model.nodes) - 1)))


def coefficient_forgotten(patch):
    flips = fourier.largest_flips
    patch.setattr(fourier, "largest_flips", lambda model: flips(model) - 1)


def scores_of_rows_times_twenty(patch):
    """Only where releases are asked for row by row, not by their number."""
    patch.setattr(MapMechanism, "_perturb", lambda self, s, rng: choose(20 * self.scores(s), rng))


def truth_more_likely(patch):
    truth = RandomisedResponse.truth.fget
    patch.setattr(RandomisedResponse, "truth", property(lambda self: (1 + truth(self)) / 2))


def charge_left_out(patch):
    patch.setattr(Ledger, "_reserve", lambda self, requests, leads: None)


def temperature_halved(patch):
    temperature = HiddenMarkovSampler.temperature.fget
    patch.setattr(HiddenMarkovSampler, "temperature", property(lambda self: temperature(self) / 2))


def ball_too_large(patch):
    """Neither the power nor the charge reads the radius."""
    radius = LogisticOps.radius.fget
    patch.setattr(LogisticOps, "radius", property(lambda self: 3 * radius(self)))


@pytest.mark.parametrize(
    ("fault", "kind", "settings", "verdict"),
    [
        (statistics_count_twice, PosteriorDraw, (BITS, 8, rdp(0.1), {"weighting": "diffused"}), "other law"),
        (
            records_count_twice,
            LogisticDraw,
            (BinaryRegression(2, 0.1), 3, rdp(1.0), {"weighting": "diffused"}),
            "other law",
        ),
        (charge_halved, LogisticOps, (BinaryRegression(8, 1e-3), 500, PURE, {}), "other law"),
        (normal_noise_halved, GaussianMechanism, (BITS, 8, rdp(0.3), {}), "other law"),
        (noise_shared, LaplaceMechanism, (CATEGORIES, 4, PURE, {}), "other law"),
        (scores_of_rows_times_twenty, MapMechanism, (PAIR, 3, PURE, {}), "other law"),
        (truth_more_likely, RandomisedResponse, (BITS, 4, PURE, {}), "other law"),
        (calibrated_sigma_halved, GaussianMechanism, (BITS, 8, rdp(0.3), {}), "over target"),
        (length_of_the_interval, RedactedLaplace, (SHORT, 4, PURE, {}), "violated"),
        (attribute_forgotten, NetworkLaplace, (CHAIN, 2, PURE, {}), "violated"),
        (coefficient_forgotten, FourierMechanism, (CHAIN, 2, PURE, {"t": 1.0}), "violated"),
        (
            renyi_charge_quartered,
            LogisticDraw,
            (BinaryRegression(8, 1e-3), 500, rdp(0.1), {"weighting": "concentrated"}),
            "violated",
        ),
    ],
)
def test_the_audit_catches_a_seeded_fault(fault, kind, settings, verdict, monkeypatch):
    *settings, options = settings
    assert judge(kind, *settings, **options) == "within claim"
    fault(monkeypatch)
    assert judge(kind, *settings, **options) == verdict


@pytest.mark.parametrize(
    ("fault", "kind", "check", "message"),
    [
        (attribute_forgotten, NetworkLaplace, check_sensitivity, "changes between neighbours by up to"),
        (length_of_the_interval, RedactedLaplace, check_sensitivity, "changes between neighbours by up to"),
        (charge_left_out, LaplaceMechanism, check_a_second_release_is_refused, "DID NOT RAISE"),
        (temperature_halved, HiddenMarkovSampler, check_charge_is_twice_the_range, "twice the range"),
        (ball_too_large, LogisticOps, check_charge_is_twice_the_range, "twice the range"),
    ],
)
def test_a_contract_test_catches_a_seeded_fault(fault, kind, check, message, monkeypatch):
    mechanism = kind.examples()[0]
    check(mechanism)
    fault(monkeypatch)
    with pytest.raises((AssertionError, pytest.fail.Exception), match=message):
        check(mechanism)
