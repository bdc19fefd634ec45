"""`compose`: laws, costs and mechanisms of others together; and the warning about noise of numpy."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest

import privpost
from privpost import compose
from privpost.distributions import noise
from privpost.privacy.accounting.approximate import gaussian_curve
from privpost.privacy.accounting.losses import Normal, Response

BITS = privpost.BetaBernoulli(1, 1)


def responses_delta(epsilon: float, k: int, at: float) -> float:
    """δ at ε of k randomised responses, by hand: Σ over the number of truths of (P − e^ε Q)⁺."""
    truth = 1 / (1 + math.exp(-epsilon))
    delta = 0.0
    for i in range(k + 1):
        p, q = truth**i * (1 - truth) ** (k - i), (1 - truth) ** i * truth ** (k - i)
        delta += math.comb(k, i) * max(p - math.exp(at) * q, 0.0)
    return delta


@pytest.mark.parametrize(("epsilon", "k", "delta"), [(0.1, 10, 1e-6), (1.0, 5, 1e-3), (0.5, 1, 0.1), (2.0, 3, 1e-9)])
def test_pure_costs_are_composed_exactly(epsilon, k, delta):
    """Independent: the binomial sum. Rounded upwards, by less than 1 %."""
    found = compose([privpost.Cost("pure", epsilon)] * k, delta).epsilon
    assert responses_delta(epsilon, k, found) <= delta * (1 + 1e-6)
    assert responses_delta(epsilon, k, 0.99 * found) > delta or found == 0


@pytest.mark.parametrize("delta", [1e-6, 1e-2])
def test_normal_laws_cost_at_least_their_exact_curve_and_little_more(delta):
    """Independent: k normal laws of shift μ are one of √k μ (Dong, Roth and Su 2022)."""
    found = compose([Normal(0.5)] * 4, delta)
    assert found.delta == delta
    assert gaussian_curve(1.0, found.epsilon) <= delta
    assert gaussian_curve(1.0, 0.8 * found.epsilon) > delta


def test_every_kind_of_release_has_a_law():
    laplace, normal = privpost.LaplaceMechanism(BITS, 50, 0.2), privpost.GaussianMechanism(BITS, 50, 5.0, 2.0)
    draw = privpost.LogisticDraw.examples()[0]
    same = [
        (laplace, Response(0.2)),
        (normal, Normal(0.2)),
        (privpost.Cost("approximate", 0.3, delta=1e-9), Response(0.3, 1e-9)),
        (privpost.Cost("pure", 0.3), Response(0.3)),
        (draw, draw.rdp),
        (lambda orders: orders * 0.02, Normal(0.2)),
    ]
    for release, law in same:
        assert compose([release], 1e-6).epsilon == pytest.approx(compose([law], 1e-6).epsilon, rel=1e-12)
        both = [compose([part, Response(0.1)], 1e-6).epsilon for part in (release, law)]
        assert both[0] == pytest.approx(both[1], rel=1e-12)
    everything = compose([release for release, _ in same], 1e-6).epsilon
    assert everything >= max(compose([release], 1e-6).epsilon for release, _ in same)


@pytest.mark.parametrize(
    ("releases", "delta", "message"),
    [
        ([], 1e-6, "releases is empty"),
        ([Response(0.1)], 0.0, r"delta is 0.0; it must lie in \(0, 1\)"),
        (
            [privpost.Cost("rdp", 1.0, order=2.0)],
            1e-6,
            "a release is .*; it must be a law of privpost.privacy.accounting.losses",
        ),
        ([0.5], 1e-6, "a release is 0.5; it must be a law"),
    ],
)
def test_what_is_no_release_is_refused(releases, delta, message):
    with pytest.raises(ValueError, match=message):
        compose(releases, delta)


@pytest.fixture
def untold(monkeypatch):
    monkeypatch.setattr(noise, "_told", [])


def test_noise_of_numpy_is_warned_of_once(untold):
    mechanism, rng = privpost.LaplaceMechanism(BITS, 10, 1.0), np.random.default_rng(1)
    with pytest.warns(privpost.SimulationNoise, match="protects nobody") as told:
        mechanism.perturb([3, 7], rng)
        mechanism.perturb([3, 7], rng)
        ledger = privpost.Ledger()
        ledger.open("survey", privpost.Cost("pure", 1.0))
        ledger.release("survey", mechanism, np.array([3.0, 7.0]), rng)
    assert len(told) == 1
    assert told[0].filename == __file__


def test_secure_noise_and_studies_are_not_warned_of(untold):
    pytest.importorskip("opendp")
    mechanism = privpost.LaplaceMechanism(BITS, 10, 1.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        mechanism.perturb([3, 7], privpost.SecureNoise())
        with noise.simulation():
            mechanism.perturb([3, 7], np.random.default_rng(1))
    with pytest.warns(privpost.SimulationNoise):
        mechanism.perturb([3, 7], np.random.default_rng(1))
