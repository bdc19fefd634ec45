"""`privpost release` of a logistic regression: a certified optimum with noise, or one exact draw on a ball."""

from __future__ import annotations

import json
import random
import secrets
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from release_cases import YES_NO

from privpost.distributions.exact_draws import ball, flint
from privpost.distributions.noise import SecureNoise, gaussian_epsilon
from privpost.mechanisms.draws.logistic_ball import BallDraw
from privpost.mechanisms.noise import logistic_lattice
from privpost.mechanisms.noise.logistic_lattice import SHIFT, OutputNoise
from privpost.models.regression.logistic import LogisticPosterior, certified_gradient
from privpost.release import posterior_draw
from privpost.samplers.logistic import lattice_ball as logistic_lattice_ball

SPEC = {
    "model": "logistic_regression",
    "mechanism": "gaussian",
    "n": 4,
    "epsilon": 1.0,
    "delta": 1e-6,
    "columns": {"minutes": {"low": 0, "high": 4}, "smokes": {"levels": YES_NO, "role": "label"}},
    "prior": {"precision": 3},
}


DRAW = {key: value for key, value in SPEC.items() if key != "delta"} | {"mechanism": "ops"}


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


@pytest.mark.parametrize("dimension", [2, 3, 7])
def test_the_sensitivity_is_rounded_up(dimension):
    """(2c + 2τ)/(Pγ) + c with c = √d and τ = c/1024 in 50 digits: never above what is stated, nor 2e-12 below."""
    mechanism = OutputNoise(100, dimension, 0.3, 1.0)
    with mpmath.workdps(50):
        c = mpmath.sqrt(dimension)
        exact = (2 * c + c / 512) / (mpmath.mpf(0.3) * mpmath.mpf(mechanism.step)) + c
        assert exact <= mpmath.mpf(mechanism.sensitivity) <= exact * (1 + mpmath.mpf("2e-12"))


def test_noise_is_added_to_whole_lattice_steps_alone():
    """A release less its weights is σ times the generator's own variates; secure noise refuses half a step."""
    mechanism, steps = OutputNoise(4, 2, 3.0, 2.5), np.array([7.0, -3.0])
    released = mechanism.perturb(steps, np.random.default_rng(5))
    assert released == pytest.approx(steps + 2.5 * np.random.default_rng(5).standard_normal(2), rel=1e-12)
    with pytest.raises(ValueError, match="not whole numbers"):
        mechanism.perturb(steps + 0.5, SecureNoise())


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


def test_a_draw_on_the_ball_is_released_under_pure_dp(folder):
    """A point of the stated lattice in the stated ball, charged as ε alone."""
    folder.specify({**DRAW, "budget": {"ledger": "l", "epsilon": 3}})
    status, out, err = folder.run()
    assert (status, err) == (0, "")
    found = json.loads(out)
    privacy, law = found["privacy"], found["privacy"]["sampling"]
    assert (privacy["private"], privacy["notion"], privacy["delta"]) == (True, "pure epsilon-DP", 0.0)
    assert 0.999 < privacy["epsilon_proved"] <= 1.0
    mechanism = BallDraw(4, 2, 3.0, 1.0)
    assert (law["rho"], law["radius"]) == pytest.approx((mechanism.power, mechanism.radius), rel=1e-9)
    assert set(found["draw"]) == {"intercept", "minutes"}
    values = [weight["value"] for weight in found["draw"].values()]
    assert values == [weight["steps"] * law["step"] for weight in found["draw"].values()]
    assert 0 < np.linalg.norm(values) <= law["radius"]
    assert (law["predicts"], law["randomness"]) == ("yes", "the operating system's")
    assert found["ledger"]["spent"] == {"epsilon": 1.0, "delta": 0.0}
    assert not any("bits" in line for line in privacy["public"])
    assert "python-flint" in found["versions"]


def test_the_draw_is_shown_and_a_simulated_one_repeats(folder):
    folder.specify({**DRAW, "noise": "simulation", "seed": 3})
    first, second = folder.run(), folder.run()
    assert first == second
    assert json.loads(first[1])["privacy"]["private"] is False
    _, out, _ = folder.run("--output", "o.json")
    value = json.loads(first[1])["draw"]["minutes"]["value"]
    assert f"minutes    {value:.6g}" in out
    assert "--again: o.json is no release" in folder.run("--again", "o.json", "--output", "p.json")[2]


def test_weights_have_the_mean_and_spread_of_the_continuous_law():
    """300 draws about 2,000 records against the normal law at the mode, far inside the ball, within 5 deviations."""
    rng = np.random.default_rng(7)
    mechanism = BallDraw(2000, 2, 200.0, 2.0)
    records = encoded(rng, 2000, 2)
    records[:, -1] = rng.random(2000) < 1 / (1 + np.exp(-3 * records[:, 0] / 2.0**SHIFT))
    bits = random.Random(3).getrandbits
    drawn = np.array([mechanism.rounded(records, 0, bits) for _ in range(300)]) * mechanism.public.step
    law = LogisticPosterior(*logistic_lattice.design(records), 200.0, mechanism.power)
    mode = law.at_mode().mean
    deviations = np.sqrt(np.diag(np.linalg.inv(law.precision(mode))))
    assert np.linalg.norm(mode) + 5 * deviations.max() < mechanism.radius
    assert np.abs((drawn.mean(axis=0) - mode) / deviations).max() < 5 / np.sqrt(300)
    assert np.abs(drawn.std(axis=0) / deviations - 1).max() < 5 / np.sqrt(600)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"delta": 1e-6}, "delta is 1e-06, but one posterior sample (ops) is epsilon-DP; leave delta out"),
        ({"bits": 8}, "bits is 8, but one posterior sample (ops) has none of logistic_regression; leave it out"),
        ({"a0": 0.1}, "a0 is 0.1, but only ops has one of logistic_regression; leave it out"),
        ({"posterior": {"draws": 3}}, "logistic_regression has no posterior"),
        ({"mechanism": "diffused"}, "logistic_regression is released with: gaussian, ops"),
        (
            {"prior": {"precision": 1e-8}, "epsilon": 10},
            "epsilon is 10 and the prior's precision 1e-08; with n 4 and 2",
        ),
        ({"epsilon": 1e-40}, "epsilon is 1e-40: too small for a draw on a ball"),
    ],
)
def test_a_draw_that_does_not_fit_is_refused_before_the_charge(folder, monkeypatch, changes, message):
    monkeypatch.setattr(secrets, "randbits", None)
    folder.specify({**DRAW, "budget": {"ledger": "l", "epsilon": 30, "delta": 1e-5}, **changes})
    status, out, err = folder.run()
    assert (status, out) == (2, "")
    assert message in err
    assert err.count("\n") == 1
    assert folder.files() == {"spec.yaml", "data.csv"}


def test_a_draw_that_would_take_more_than_a_minute_is_refused(folder, monkeypatch):
    """By its public number of proposals, in a dry run as well."""
    folder.specify({**DRAW, "n": 10**6, "epsilon": 3, "prior": {"precision": 600}})
    status, out, err = folder.run("--dry-run")
    assert (status, out) == (2, "")
    assert "a draw of 2 numbers would take some" in err
    monkeypatch.setattr(posterior_draw, "LONGEST", 1e9)
    assert folder.run("--dry-run")[0] == 0


@pytest.mark.parametrize("labels", ["yes no yes no", "yes yes yes yes", "no no no no"])
def test_what_is_said_and_drawn_does_not_depend_on_the_records(folder, monkeypatch, labels):
    """Bits of the system's randomness, exit status and messages are the same for three files."""
    asked = []
    monkeypatch.setattr(secrets, "randbits", lambda bits, draw=secrets.randbits: asked.append(bits) or draw(bits))
    folder.data("smokes,minutes\n" + "".join(f"{label},4\n" for label in labels.split()))
    folder.specify(DRAW)
    assert folder.run()[::2] == (0, "")
    number = BallDraw(4, 2, 3.0, 1.0).public.proposals(1)
    # The rehearsal and the draw itself.
    assert asked == [64 * 2 * number, 64 * 2 * number, 64 * number] * 2


def test_a_draw_that_cannot_be_made_is_refused_before_the_charge(folder, monkeypatch):
    def fails(*arguments):
        raise ArithmeticError("a log-acceptance is above 0; no draw was made")

    monkeypatch.setattr(logistic_lattice_ball.Proposals, "draw", fails)
    folder.specify({**DRAW, "budget": {"ledger": "l", "epsilon": 3}})
    status, out, err = folder.run()
    assert (status, out) == (2, "")
    assert "nothing was charged: a log-acceptance is above 0" in err
    assert folder.files() == {"spec.yaml", "data.csv"}
