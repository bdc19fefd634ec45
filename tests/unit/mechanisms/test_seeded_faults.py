"""Faults seeded into the shipped code, one at a time: each is caught, by the audit's verdict or by a contract test.

Every check first passes on the code as shipped, so that it is the fault that fails it.
"""

from __future__ import annotations

import functools
from dataclasses import replace

import numpy as np
import pytest
from test_draws import (
    TWO_STATES,
    check_arrays_of_equal_bounds_change_nothing,
    check_charge_is_twice_the_range,
    check_draws_by_row_and_by_number_have_one_law,
    check_states_and_emissions_follow_enumeration,
)
from test_mechanisms import check_a_second_release_is_refused, check_sensitivity
from test_private_gibbs import (
    MECHANISM,
    check_the_states_have_taken_the_steps_that_are_paid,
    check_the_whole_chain_costs_at_most_its_charge,
)

from privpost.distributions import gaussian_in_ball
from privpost.experiments.audit import instances
from privpost.experiments.audit.audit import study as audit
from privpost.mechanisms import fourier, logistic_ops, logistic_sampling, private_gibbs, redacted_laplace
from privpost.mechanisms.event_counts import EventCountsLaplace
from privpost.mechanisms.event_states import HiddenMarkovSampler
from privpost.mechanisms.exponential import ExponentialMechanism
from privpost.mechanisms.fourier import FourierMechanism
from privpost.mechanisms.gamma_sampling import GammaDraw
from privpost.mechanisms.gaussian import GaussianMechanism
from privpost.mechanisms.laplace import LaplaceMechanism
from privpost.mechanisms.linear_sampling import LinearSampler
from privpost.mechanisms.logistic_finite import LogisticOutputNoise
from privpost.mechanisms.logistic_ops import LogisticOps
from privpost.mechanisms.logistic_sampling import LogisticDraw
from privpost.mechanisms.map_estimate import MapMechanism, choose
from privpost.mechanisms.network_laplace import NetworkLaplace
from privpost.mechanisms.network_sampling import RecordSampler, TrimmedSampler
from privpost.mechanisms.posterior_sampling import PosteriorDraw
from privpost.mechanisms.private_gibbs import PrivateGibbs
from privpost.mechanisms.redacted_laplace import RedactedLaplace, RedactedSum
from privpost.models import BayesianNetwork, BetaBernoulli, DirichletCategorical, GammaExponential
from privpost.models.binary_regression import BinaryRegression
from privpost.models.event_counts import EventCounts
from privpost.models.linear_regression import LinearRegression
from privpost.privacy import count_tables, glm
from privpost.privacy.accounting import Cost
from privpost.privacy.audit import lower_bound
from privpost.privacy.ledger import Ledger
from privpost.samplers import logistic_in_ball
from privpost.samplers.hidden_markov import gibbs
from privpost.samplers.hidden_markov.seeds import Seeding

SIZE, LEVEL = 3000, 1e-6


def judge(kind, model, n, budget, rounded=0, **options) -> str:
    """The audit's verdict on a mechanism that is calibrated to a budget; `rounded` draws are rounded exactly."""
    mechanism = kind.calibrate(model, n, budget, **options)
    instance = instances.Instance("seeded", mechanism, ((budget, "stated"),), ())
    found = audit.NOTHING
    if instance.share_of_target <= 1 + 1e-9:
        found = audit.examine(instances.reduced(mechanism), SIZE, 100, np.random.default_rng(4), rounded=rounded)
    cost = mechanism.cost()
    bound = lower_bound(found.counts, cost.order, LEVEL)
    return audit.verdict(cost.epsilon, bound, found.exact, found.smallest_p, instance.share_of_target, LEVEL)


@functools.cache
def judged_as_shipped(kind, model, n, budget, **options) -> str:
    """The verdict without a fault, once for all faults that are seeded into the same settings."""
    return judge(kind, model, n, budget, **options)


def rdp(epsilon: float, order: float = 2.0) -> Cost:
    return Cost("rdp", epsilon, order=order)


def power_doubled(kind):
    """Every record counts twice in the law that the chains sample."""

    def doubled_power(patch):
        once = kind.release_law

        def twice(self, statistics):
            law = once(self, statistics)
            return replace(law, features=np.tile(law.features, (2, 1)), labels=np.tile(law.labels, 2))

        patch.setattr(kind, "release_law", twice)

    return doubled_power


def stated_power_doubled(patch):
    power = LogisticDraw.power.fget
    patch.setattr(LogisticDraw, "power", property(lambda self: 2 * power(self)))


def renyi_charge_four_times_too_small(patch):
    charge = glm.posterior_rdp
    for module in (glm, logistic_sampling):
        patch.setattr(module, "posterior_rdp", lambda *args, **settings: charge(*args, **settings) / 4)


def calibrated_power_doubled(patch):
    power = glm.diffused_power
    patch.setattr(logistic_sampling, "diffused_power", lambda *args, **settings: 2 * power(*args, **settings))


def sampler_ignores_the_power(patch):
    sample = logistic_sampling.sample_in_public_time
    patch.setattr(
        logistic_sampling,
        "sample_in_public_time",
        lambda posterior, *args: sample(replace(posterior, power=1.0), *args),
    )


def beta_draw_with_twice_the_coefficient(patch):
    draw = PosteriorDraw._perturb
    patch.setattr(PosteriorDraw, "_perturb", lambda self, s, rng: draw(self, 2 * np.asarray(s), rng))


def prior_without_its_weight(patch):
    draw = PosteriorDraw._perturb
    patch.setattr(PosteriorDraw, "_perturb", lambda self, s, rng: draw(_with_coefficient(self, 1.0), s, rng))


def _with_coefficient(mechanism, value):
    return replace(mechanism, coefficient=value)


def ops_charge_halved(patch):
    charge = glm.ops_pure_epsilon
    for module in (glm, logistic_ops):
        patch.setattr(module, "ops_pure_epsilon", lambda *args, **settings: charge(*args, **settings) / 2)


def normal_noise_halved(patch):
    noise = GaussianMechanism.noise
    patch.setattr(GaussianMechanism, "noise", lambda self, shape, rng: noise(self, shape, rng) / 2)


def calibrated_sigma_halved(patch):
    calibrate = GaussianMechanism.calibrate.__func__

    def half(cls, *args, **settings):
        mechanism = calibrate(cls, *args, **settings)
        return replace(mechanism, sigma=mechanism.sigma / 2)

    patch.setattr(GaussianMechanism, "calibrate", classmethod(half))


def noise_shared(kind):
    """One noise variate for all coordinates."""

    def shared_noise(patch):
        noise = kind.noise
        patch.setattr(
            kind,
            "noise",
            lambda self, shape, rng: np.broadcast_to(noise(self, (*shape[:-1], 1), rng), shape),
        )

    return shared_noise


def coefficients_share_their_noise(patch):
    """One noise variate for all coefficients, of the scale that the shipped code draws with."""

    def _perturb(self, statistics, rng):
        sums = self._sums(statistics)[..., self._noisy]
        return sums + rng.laplace(0.0, self.scale, (*sums.shape[:-1], 1))

    patch.setattr(FourierMechanism, "_perturb", _perturb)


def chain_temperature_halved(patch):
    temperature = HiddenMarkovSampler.temperature.fget
    patch.setattr(HiddenMarkovSampler, "temperature", property(lambda self: temperature(self) / 2))


def charged_temperature_halved(patch):
    temperature = count_tables.temperature
    patch.setattr(count_tables, "temperature", lambda *args: temperature(*args) / 2)


def paid_temperature_halved(patch):
    """The chain alone: what is charged stays."""
    temperature, cost = PrivateGibbs.temperature.fget, PrivateGibbs.cost
    patch.setattr(PrivateGibbs, "cost", lambda self: replace(cost(self), epsilon=cost(self).epsilon / 2))
    patch.setattr(PrivateGibbs, "temperature", property(lambda self: temperature(self) / 2))


def iterations_not_shared(patch):
    """ε buys each iteration anew."""
    temperature = PrivateGibbs.temperature.fget
    patch.setattr(PrivateGibbs, "temperature", property(lambda self: temperature(self) / self.iterations))


def scans_forgotten(patch):
    """Emissions alone are paid for."""
    patch.setattr(private_gibbs, "_updates", lambda model: 1)


def one_iteration_more(patch):
    follow = gibbs.follow
    patch.setattr(
        gibbs, "follow", lambda sampler, rng, iterations, watches: follow(sampler, rng, iterations + 1, watches)
    )


def bits_temperature_halved(patch):
    temperature = ExponentialMechanism.temperature.fget
    patch.setattr(ExponentialMechanism, "temperature", property(lambda self: temperature(self) / 2))


def length_of_the_interval(patch):
    patch.setattr(redacted_laplace, "redacted_sensitivity", lambda low, high: np.subtract(high, low))


def attribute_forgotten_in_counts(patch):
    patch.setattr(NetworkLaplace, "sensitivity", property(lambda self: 2.0 * (len(self.model.nodes) - 1)))


def attribute_forgotten_in_a_sampler(patch):
    patch.setattr(TrimmedSampler, "sensitivity", property(lambda self: (len(self.model.nodes) - 1) * self.log_ratio))


def attribute_forgotten_in_the_interval(patch):
    patch.setattr(RecordSampler, "log_ratio", property(lambda self: self.epsilon / (2 * (len(self.model.nodes) - 1))))


def attribute_forgotten_in_coefficients(patch):
    flips = fourier.largest_flips
    patch.setattr(fourier, "largest_flips", lambda model: flips(model) - 1)


def charge_left_out(patch):
    patch.setattr(Ledger, "_reserve", lambda self, requests, leads: None)


def scores_of_rows_times_twenty(patch):
    """Only where releases are asked for row by row, not by their number."""
    patch.setattr(MapMechanism, "_perturb", lambda self, s, rng: choose(20 * self.scores(s), rng))


def noise_of_arrays_divided(patch):
    """Only where each trial has bounds of its own."""
    noise = RedactedLaplace.noise
    patch.setattr(
        RedactedLaplace,
        "noise",
        lambda self, shape, rng: noise(self, shape, rng) / (10 if np.ndim(self.scale) else 1),
    )


def temperature_of_several_states_halved(patch):
    """Only where the model is a mixture."""
    temperature = HiddenMarkovSampler.temperature.fget
    patch.setattr(
        HiddenMarkovSampler,
        "temperature",
        property(lambda self: temperature(self) / (2 if self.model.n_states > 1 else 1)),
    )


def ball_three_times_too_large(patch):
    """Neither the power nor the charge reads the radius."""
    radius = LogisticOps.radius.fget
    patch.setattr(LogisticOps, "radius", property(lambda self: 3 * radius(self)))


def tilt_forgotten(patch):
    envelope = logistic_in_ball.envelope
    patch.setattr(logistic_in_ball, "envelope", lambda *given: replace(envelope(*given), tilt=0.0))


def gamma_data_count_twice(patch):
    posterior = GammaDraw.release_law
    patch.setattr(GammaDraw, "release_law", lambda self, s: posterior(self, 2 * np.asarray(s, float)))


def noise_on_the_mode_halved(patch):
    draw = LogisticOutputNoise.draw

    def narrower(self, statistics, rng, size=None, **settings):
        if size is None:
            return draw(self, statistics, rng)
        release = draw(self, statistics, rng, size, **settings)
        mean = release.info.start.mean
        return release._replace(values=mean + (release.values - mean) / 2)

    patch.setattr(LogisticOutputNoise, "draw", narrower)


def ball_of_the_draw_doubled(patch):
    """The charge is that of the smaller ball, in which nearly all draws lie anyway."""
    sample = gaussian_in_ball.sample
    patch.setattr(gaussian_in_ball, "sample", lambda mean, p, radius, *args: sample(mean, p, 2 * radius, *args))


def every_attribute_has_all_of_epsilon(patch):
    weights = MapMechanism.weights.fget
    patch.setattr(MapMechanism, "weights", property(lambda self: len(self.model.nodes) * weights(self)))


def on(model, n, budget, **options) -> dict:
    return {"model": model, "n": n, "budget": budget, **options}


def eight_features(budget, **options) -> dict:
    return on(BinaryRegression(8, 1e-3), 500, budget, **options)


BITS, CATEGORIES, UNIFORM = BetaBernoulli(6, 12), DirichletCategorical((5, 5, 5)), BetaBernoulli(1, 1)
CHAIN, PAIR = BayesianNetwork({"a": [], "b": ["a"], "c": ["b"]}), BayesianNetwork({"a": [], "b": []})
FIELDS, SHORT = EventCounts((4,), (2, 3), 1), RedactedSum(GammaExponential(8, 2), 1.0, 1.5)
PURE, PAID = Cost("pure", 1.0), replace(MECHANISM, n=60)
SMALLEST = on(BinaryRegression(1, 0.05), 4, PURE, charge="smallest_ball", public_time=False)
# Faults, each with the mechanism and the settings on which it is to be caught; by verdict.
FAULTS = {
    "other law": [
        (power_doubled(LogisticDraw), LogisticDraw, on(BinaryRegression(2, 0.1), 3, rdp(100.0), weighting="direct")),
        (power_doubled(LogisticDraw), LogisticDraw, eight_features(rdp(0.3), weighting="concentrated")),
        *(
            (
                power_doubled(LogisticDraw),
                LogisticDraw,
                on(BinaryRegression(d, 0.1), n, rdp(epsilon), weighting="diffused"),
            )
            for d, n in ((1, 4), (2, 3))
            for epsilon in (0.3, 1.0, 3.0)
        ),
        (power_doubled(LogisticOps), LogisticOps, eight_features(PURE)),
        (power_doubled(LogisticOps), LogisticOps, eight_features(Cost("pure", 100.0))),
        (sampler_ignores_the_power, LogisticDraw, eight_features(rdp(0.1), weighting="diffused")),
        (beta_draw_with_twice_the_coefficient, PosteriorDraw, on(BITS, 8, rdp(0.1), weighting="diffused")),
        (beta_draw_with_twice_the_coefficient, PosteriorDraw, on(BITS, 100, rdp(1.0, 15.0), weighting="diffused")),
        (beta_draw_with_twice_the_coefficient, PosteriorDraw, on(UNIFORM, 5, rdp(1.0, 1.5), weighting="diffused")),
        (
            beta_draw_with_twice_the_coefficient,
            PosteriorDraw,
            on(DirichletCategorical((1, 2, 3)), 4, rdp(1.0), weighting="diffused"),
        ),
        (prior_without_its_weight, PosteriorDraw, on(BITS, 100, rdp(0.1), weighting="concentrated")),
        (ops_charge_halved, LogisticOps, eight_features(PURE)),
        *((fault, LogisticOps, SMALLEST) for fault in (ops_charge_halved, tilt_forgotten, power_doubled(LogisticOps))),
        (normal_noise_halved, GaussianMechanism, on(BITS, 8, rdp(0.3))),
        (normal_noise_halved, GaussianMechanism, on(BITS, 8, rdp(0.3), variant="paper")),
        (noise_shared(LaplaceMechanism), LaplaceMechanism, on(CATEGORIES, 4, PURE)),
        (noise_shared(LaplaceMechanism), NetworkLaplace, on(CHAIN, 2, PURE)),
        (noise_shared(GaussianMechanism), GaussianMechanism, on(CATEGORIES, 4, rdp(1.0))),
        (chain_temperature_halved, HiddenMarkovSampler, on(FIELDS, 300, PURE)),
        *(
            (temperature_of_several_states_halved, HiddenMarkovSampler, on(model, 300, PURE, **options))
            for model, options in (
                (EventCounts((2,), (2,), 2), {"iterations": 12}),
                (EventCounts((4,), (2, 3), 3), {"iterations": 8, "seeding": Seeding(2, 4)}),
            )
        ),
        (paid_temperature_halved, PrivateGibbs, on(FIELDS, 300, PURE, iterations=3)),
        (bits_temperature_halved, ExponentialMechanism, on(UNIFORM, 20, PURE, a0=0.2)),
        (scores_of_rows_times_twenty, MapMechanism, on(PAIR, 3, PURE)),
        (noise_of_arrays_divided, RedactedLaplace, on(SHORT, 4, PURE)),
        (coefficients_share_their_noise, FourierMechanism, on(CHAIN, 2, PURE, t=1.0)),
        (
            gamma_data_count_twice,
            GammaDraw,
            on(GammaExponential(2, 2), 4, rdp(0.3), bounds=(0.0, 2.0), weighting="diffused"),
        ),
        (
            gamma_data_count_twice,
            GammaDraw,
            on(GammaExponential(2, 2), 4, rdp(0.3), bounds=(0.0, 2.0), weighting="concentrated"),
        ),
        (noise_on_the_mode_halved, LogisticOutputNoise, eight_features(rdp(1.0))),
        (ball_of_the_draw_doubled, LinearSampler, on(LinearRegression(1, noise_variance=10.0), 3, Cost("pure", 2.0))),
        (every_attribute_has_all_of_epsilon, MapMechanism, on(CHAIN, 3, Cost("pure", 3.0))),
        (noise_shared(LaplaceMechanism), EventCountsLaplace, on(EventCounts((1,), (3,), 1), 4, PURE)),
    ],
    "over target": [
        (stated_power_doubled, LogisticDraw, eight_features(rdp(0.1), weighting="diffused")),
        (calibrated_power_doubled, LogisticDraw, eight_features(rdp(0.1), weighting="diffused")),
        (calibrated_sigma_halved, GaussianMechanism, on(BITS, 8, rdp(0.3))),
        (charged_temperature_halved, HiddenMarkovSampler, on(FIELDS, 300, PURE)),
        (iterations_not_shared, PrivateGibbs, on(FIELDS, 300, PURE, iterations=3)),
        (attribute_forgotten_in_the_interval, RecordSampler, on(CHAIN, 2, PURE)),
    ],
    "violated": [
        (renyi_charge_four_times_too_small, LogisticDraw, eight_features(rdp(8.0), weighting="direct")),
        (renyi_charge_four_times_too_small, LogisticDraw, eight_features(rdp(0.1), weighting="diffused")),
        (renyi_charge_four_times_too_small, LogisticDraw, eight_features(rdp(0.1), weighting="concentrated")),
        (length_of_the_interval, RedactedLaplace, on(SHORT, 4, PURE)),
        (attribute_forgotten_in_counts, NetworkLaplace, on(CHAIN, 2, PURE)),
        (attribute_forgotten_in_a_sampler, RecordSampler, on(PAIR, 3, PURE)),
        (attribute_forgotten_in_coefficients, FourierMechanism, on(CHAIN, 2, PURE, t=1.0)),
    ],
}
CAUGHT = [
    pytest.param(*case, verdict, id=f"{case[0].__name__}-{case[1].__name__}-{number}")
    for verdict, cases in FAULTS.items()
    for number, case in enumerate(cases)
]


@pytest.mark.parametrize("fault, kind, settings, verdict", CAUGHT)
def test_the_audit_catches_a_seeded_fault(fault, kind, settings, verdict, monkeypatch):
    assert judged_as_shipped(kind, **settings) == "within claim"
    fault(monkeypatch)
    assert judge(kind, **settings) == verdict


@pytest.mark.parametrize(
    "fault, mechanism, check, message",
    [
        (
            attribute_forgotten_in_counts,
            NetworkLaplace.examples()[0],
            check_sensitivity,
            "changes between neighbours by up to",
        ),
        (
            attribute_forgotten_in_a_sampler,
            RecordSampler.examples()[0],
            check_sensitivity,
            "changes between neighbours by up to",
        ),
        (
            attribute_forgotten_in_coefficients,
            FourierMechanism.examples()[1],
            check_sensitivity,
            "changes between neighbours by up to",
        ),
        (
            length_of_the_interval,
            RedactedLaplace.examples()[0],
            check_sensitivity,
            "changes between neighbours by up to",
        ),
        (charge_left_out, LaplaceMechanism.examples()[0], check_a_second_release_is_refused, "DID NOT RAISE"),
        (charge_left_out, PosteriorDraw.examples()[0], check_a_second_release_is_refused, "DID NOT RAISE"),
        *(
            (scores_of_rows_times_twenty, example, check_draws_by_row_and_by_number_have_one_law, "differ in law")
            for example in MapMechanism.examples()
        ),
        *(
            (noise_of_arrays_divided, example, check_arrays_of_equal_bounds_change_nothing, "change the release")
            for example in RedactedLaplace.examples()
        ),
        (temperature_of_several_states_halved, TWO_STATES, check_states_and_emissions_follow_enumeration, "posterior"),
        (temperature_of_several_states_halved, TWO_STATES, check_charge_is_twice_the_range, "twice the range"),
        (chain_temperature_halved, HiddenMarkovSampler.examples()[0], check_charge_is_twice_the_range, "twice the"),
        (scans_forgotten, PAID, check_the_whole_chain_costs_at_most_its_charge, "more than its charge"),
        (one_iteration_more, MECHANISM, check_the_states_have_taken_the_steps_that_are_paid, "the paid steps"),
        *(
            (ball_three_times_too_large, example, check_charge_is_twice_the_range, "twice the range")
            for example in LogisticOps.examples()
        ),
    ],
)
def test_a_contract_test_catches_a_seeded_fault(fault, mechanism, check, message, monkeypatch):
    check(mechanism)
    fault(monkeypatch)
    with pytest.raises((AssertionError, pytest.fail.Exception), match=message):
        check(mechanism)
