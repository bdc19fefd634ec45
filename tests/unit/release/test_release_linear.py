"""`model: linear_regression`: what is released, its posterior in the columns' units, and what is refused."""

from __future__ import annotations

import json

import numpy as np
import pytest

from privpost.distributions import noise

SPEC = {
    "model": "linear_regression", "n": 400, "epsilon": 10, "posterior": {"draws": 400},
    "columns": {
        "dose": {"low": 0, "high": 10},
        "pressure": {"low": 50, "high": 150, "role": "label"},
        "age": {"low": 20, "high": 80},
    },
}  # fmt: skip


def table(seed=1) -> tuple[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    age, dose = rng.uniform(25, 60, 400).round(1), rng.gamma(4, 0.8, 400).clip(0, 10).round(2)
    pressure = (80 + 0.4 * age - 2 * dose + rng.normal(0, 6, 400)).clip(50, 150).round(1)
    rows = np.column_stack([dose, pressure, age])
    return "dose,pressure,age\n" + "\n".join(",".join(f"{v:g}" for v in row) for row in rows) + "\n", rows


@pytest.mark.parametrize("changes", [{}, {"mechanism": "gaussian", "delta": 1e-6}, {"noise": "simulation", "seed": 1}])
def test_the_weights_are_those_of_least_squares_up_to_the_noise(folder, changes):
    """Independent: numpy's least squares, with an intercept, within the posterior's spread; noise-aware, so wider."""
    text, rows = table()
    folder.specify({**SPEC, **changes})
    folder.data(text)
    status, out, err = folder.run()
    assert status == 0, err
    told = json.loads(out)
    summary = told["posterior"]["summary"]
    assert list(summary) == ["intercept", "dose", "age", "variance"]
    x = np.column_stack([np.ones(400), rows[:, 0], rows[:, 2]])
    weights, residuals, *_ = np.linalg.lstsq(x, rows[:, 1], rcond=None)
    error = np.sqrt(np.diag(np.linalg.inv(x.T @ x)) * residuals[0] / 397)
    for name, exact, sd in zip(summary, weights, error, strict=False):
        assert summary[name]["sd"] > 0.8 * sd
        assert abs(summary[name]["mean"] - exact) < 4 * summary[name]["sd"]
    assert told["posterior"]["converged"]
    assert told["posterior"]["noise_aware"]
    assert told["privacy"]["noise"]["independent_coordinates"] == 9
    if "noise" not in changes:
        assert told["privacy"]["private"]
        assert 0.9 * 10 <= told["privacy"]["epsilon_proved"] <= 10


def test_the_sums_are_those_of_the_scaled_columns(folder, monkeypatch):
    """Without noise: Σ v_i v_j of v = (1, dose, age, pressure), each in [−1, 1]."""
    monkeypatch.setattr(noise, "_variates", lambda measurement, size: np.zeros(size))
    text, rows = table()
    folder.specify({key: value for key, value in SPEC.items() if key != "posterior"})
    folder.data(text)
    status, out, _ = folder.run()
    assert status == 0
    v = np.column_stack([np.ones(400), rows[:, 0] / 5 - 1, (rows[:, 2] - 50) / 30, rows[:, 1] / 50 - 2])
    names = ["1", "dose", "age", "pressure"]
    found = json.loads(out)["statistics"]["second_moments"]
    exact = {f"{names[i]} * {names[j]}": (v.T @ v)[i, j] for i in range(4) for j in range(i, 4) if i + j}
    assert list(found) == list(exact)
    # Each value is rounded to 1/1024.
    assert list(found.values()) == pytest.approx(list(exact.values()), abs=400 / 1024)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"columns": {"a": {"low": 0, "high": 1}, "b": {"low": 0, "high": 1}}}, "0 of 2 columns have role: label"),
        ({"n": 3}, r"n is 3; with these columns it must be in \[4, 2^31\]"),
        ({"columns": {**SPEC["columns"], "intercept": {"low": 0, "high": 1}}}, "the name 'intercept'"),
        ({"columns": {**SPEC["columns"], "age": {"low": 80, "high": 20}}}, "low is 80 and high is 20"),
        ({"synthetic": 3}, "linear_regression has no law of whole records"),
        ({"mechanism": "ops"}, "linear_regression is released with: laplace, gaussian"),
    ],
)
def test_what_is_no_regression_is_refused(folder, changes, message):
    folder.specify({**SPEC, **changes})
    folder.data(table()[0])
    status, out, err = folder.run("--output", "out.json")
    assert (status, out) == (2, "")
    assert message.replace("\\", "") in err


def test_a_value_beyond_the_bounds_is_refused(folder):
    folder.specify(SPEC)
    folder.data(table()[0].replace("\n", "\n1,150.1,30\n", 1))
    assert "row 1, column 'pressure' must hold a number in [50, 150]" in folder.run()[2]
