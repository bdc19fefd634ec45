"""`privpost release` of a logistic regression: a certified optimum, and neighbours' optima no further than claimed."""

from __future__ import annotations

import json
from fractions import Fraction

import numpy as np
import pytest
from release_cases import YES_NO

from privpost.distributions.exact_draws import ball, flint
from privpost.distributions.noise import gaussian_epsilon
from privpost.mechanisms import logistic_lattice
from privpost.mechanisms.logistic_lattice import SHIFT, OutputNoise, certified_gradient
from privpost.models.logistic_regression import LogisticPosterior

SPEC = {
    "model": "logistic_regression",
    "mechanism": "gaussian",
    "n": 4,
    "epsilon": 1.0,
    "delta": 1e-6,
    "columns": {"minutes": {"low": 0, "high": 4}, "smokes": {"levels": YES_NO, "role": "label"}},
    "prior": {"precision": 3},
}


def encoded(rng, n: int, d: int) -> np.ndarray:
    """Features at random, many at their bounds, and labels."""
    features = np.clip(rng.normal(size=(n, d - 1)), -1, 1)
    return np.column_stack([np.rint(features * 2**SHIFT), rng.random(n) < 0.4]).astype(np.int64)


@pytest.mark.parametrize(("n", "d", "precision"), [(5, 2, 0.1), (50, 4, 5.0), (300, 3, 0.01)])
def test_optima_of_neighbours_are_as_near_as_the_sensitivity_says(n, d, precision):
    rng = np.random.default_rng(n)
    mechanism = OutputNoise(n, d, precision, 1.0)
    worst = 0.0
    for _ in range(30):
        first = encoded(rng, n, d)
        second = first.copy()
        first[0], second[0] = 2**SHIFT, 2**SHIFT
        first[0, -1], second[0, -1] = 0, 1
        worst = max(worst, np.linalg.norm(mechanism.fit(first) - mechanism.fit(second)))
    assert worst <= mechanism.sensitivity
    # The bound is not idle where the prior dominates: a record moves the optimum by nearly half of it.
    strong = OutputNoise(n, d, 100.0 * n, 1.0)
    moved = np.linalg.norm(strong.fit(first) - strong.fit(second))
    assert moved > 0.4 * strong.sensitivity


def test_the_gradient_is_bounded_by_interval_arithmetic_s_own():
    """Also at a point that is not the optimum; the bound is within 1e-9 of the truth."""
    rng = np.random.default_rng(2)
    records = encoded(rng, 200, 4)
    features = np.concatenate([np.ones((200, 1)), records[:, :-1] / 2.0**SHIFT], axis=1)
    posterior = LogisticPosterior(features, records[:, -1].astype(float), 2.0)
    for weights in (posterior.at_mode().mean, np.array([0.5, -3.0, 2.0, 0.1])):
        with flint().ctx.workprec(200):
            exact = [ball(Fraction(-2.0 * w)) for w in weights]
            for row, label in zip(features, posterior.labels, strict=True):
                score = sum(
                    (ball(Fraction(x) * Fraction(w)) for x, w in zip(row, weights, strict=True)), ball(Fraction(0))
                )
                residual = ball(Fraction(label)) - 1 / (1 + (-score).exp())
                exact = [total + residual * ball(Fraction(x)) for total, x in zip(exact, row, strict=True)]
            norm = float(sum((part * part for part in exact), ball(Fraction(0))).sqrt())
        bound = certified_gradient(posterior, weights)
        assert norm <= bound <= norm + 1e-9


def test_noise_costs_what_the_statement_says(folder):
    folder.specify(SPEC)
    status, out, err = folder.run()
    assert (status, err) == (0, "")
    found = json.loads(out)
    noise, sensitivity = found["privacy"]["noise"], found["privacy"]["sensitivity"]["value"]
    mechanism = OutputNoise(4, 2, 3.0, noise["scale"])
    # (2c + 2τ)/P + γ√d with c = √2.
    assert sensitivity == pytest.approx((2 + 2 / 1024) * 2**0.5 / 3 + mechanism.step * 2**0.5, rel=1e-9)
    assert gaussian_epsilon(noise["scale"], sensitivity, 1e-6) <= 1.0 + 1e-9
    assert set(found["statistics"]["weights"]) == {"intercept", "minutes"}
    assert np.all(np.array(found["release"]) % 1 == 0)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"mechanism": "laplace", "delta": None}, "delta is None"),
        ({"prior": {"precision": 1e-12}}, "prior: precision is 1e-12, but must be in"),
        ({"columns": {"minutes": {"low": 0, "high": 4}}}, "0 of 1 columns have role: label"),
        ({"columns": {**SPEC["columns"], "minutes": {"low": 4, "high": 4}}}, "low must be less"),
        (
            {"columns": {**SPEC["columns"], "minutes": {"low": 0, "high": 2}}},
            "row 2, column 'minutes' must hold a number in",
        ),
        ({"columns": {**SPEC["columns"], "minutes": {"levels": YES_NO}}}, "minutes: low is missing"),
        ({"posterior": {"draws": 3}}, "logistic_regression has no posterior"),
    ],
)
def test_what_does_not_fit_is_refused_before_the_charge(folder, changes, message):
    folder.specify({**SPEC, "budget": {"ledger": "l", "epsilon": 3, "delta": 1e-5}, **changes})
    status, out, err = folder.run()
    assert (status, out) == (2, "")
    assert message in err
    assert folder.files() == {"spec.yaml", "data.csv"}


def test_an_optimum_that_is_not_certified_is_refused_before_the_charge(folder, monkeypatch):
    folder.specify({**SPEC, "budget": {"ledger": "l", "epsilon": 3, "delta": 1e-5}})
    monkeypatch.setattr(logistic_lattice, "certified_gradient", lambda *_: np.nan)
    status, out, err = folder.run()
    assert (status, out) == (2, "")
    assert "no minimum could be certified" in err
    assert folder.files() == {"spec.yaml", "data.csv"}
