"""The study of the benchmark: its claims turn with what methods are told, and what fails costs its own rows only."""

from __future__ import annotations

import dataclasses
import inspect
import math

import numpy as np
import pandas as pd
import pytest
from benchmark_laws import CLAMPED, check_draws, moments
from scipy.integrate import quad
from scipy.stats import binom, norm

from privpost.experiments.noise_aware.rivals import claims
from privpost.inference_benchmark import methods, metrics
from privpost.inference_benchmark.methods import prior

# A method of the project, as a user writes one.
OWN = inspect.getsource(prior)


def test_the_distance_of_independent_draws_is_the_integral_over_a_normal_law_s_quantiles():
    """E|F_m − F| = √(2/π) √(F(1 − F)/m) for large m; 1.2884 by quadrature, and 1.25 to 1.29 in simulations."""
    integral = quad(lambda x: math.sqrt(norm.cdf(x) * norm.sf(x)), -12, 12)[0]
    assert pytest.approx(math.sqrt(2 / math.pi) * integral, abs=5e-4) == claims.NORMAL


def test_references_are_stored_with_their_releases():
    """For bits, by the sum over counts on a grid: mean and sd of each release's draws, and the stored summaries."""
    from recomputed import run

    made = run("noise_aware/rivals", 4, 2, methods=["naive"], epsilon=[0.3, 3.0], n=8, reference_draws=3000)
    drawn, releases = made.arrays["reference"], made.arrays["releases"]
    assert (drawn.shape, releases.shape, drawn.dtype) == ((2, 4, 1000, 1), (2, 4, 1), np.float32)
    theta, count = np.linspace(0, 1, 2001)[1:-1], np.arange(9)
    for i, epsilon in enumerate(made.config.epsilon):
        assert releases[i].ravel() == pytest.approx(made.ledger.released(f"epsilon={epsilon:g}").ravel())
        for k, release in enumerate(releases[i, :, 0]):
            noise = np.exp(-np.abs(release - count) * epsilon)
            weight = (binom.pmf(count, 8, theta[:, None]) * noise).sum(axis=1) * theta**9 * (1 - theta) ** 9
            check_draws(drawn[i, k], *moments(theta, weight))
            told = made.arrays["reference_mean"][i, k, 0], made.arrays["reference_sd"][i, k, 0]
            # Of 3,000 draws, a third of which are stored: four standard errors of what the others add.
            sd = float(drawn[i, k].std())
            assert told == pytest.approx((float(drawn[i, k].mean()), sd), abs=4 * sd / 1000**0.5)


def verdicts_of(function, monkeypatch, task: str, prior, sizes, names, factors) -> dict[float, dict]:
    """Return the checks of a claim, by a factor of the noise scale that all methods are told, on one run of cells.

    There each method takes part once for each factor. The claims read no score of a classifier or a kernel.
    """
    from recomputed import run

    real = methods.method

    def told_wrong(label):
        name, _, factor = label.partition(" told ")

        def infer(task, *given):
            with pytest.MonkeyPatch.context() as patch:
                if factor:
                    other = dataclasses.replace(task.mechanism, epsilon=task.mechanism.epsilon / float(factor))
                    patch.setattr(task, "mechanism", other)
                return real(name)(task, *given)

        return infer

    monkeypatch.setattr(methods, "method", told_wrong)
    for score in ("c2st", "mmd2"):
        monkeypatch.setattr(metrics, score, lambda *_: 0.5)
    labels = [f"{name} told {factor}" for name in names for factor in factors]
    settings = {"task": task, "prior": prior, "methods": labels, "epsilon": [0.3, 1.0], "reference_draws": 4000}
    # Errors of a mean sd are then a third of its limit.
    cells = [run("noise_aware/rivals", 40, 40, **settings, n=n, chains=4, draws=500, burn_in=100) for n in sizes]
    table = pd.concat([made.tables["rivals"] for made in cells])
    name, _, told = (table.method.str.partition(" told ")[k] for k in range(3))
    checks = {}
    for factor in factors:
        parts = list(function(table.assign(method=name)[told == str(factor)]))
        checks[factor] = {part.name: part.value for part in parts if part.kind == "check"}
    return checks


def test_the_claim_on_exact_laws_turns_with_the_scale_that_methods_are_told(monkeypatch):
    """By the width of the posterior: distances alone stay below their limit at such errors."""
    which, factors = ["abc_smc", "data_augmentation", "simulation"], (0.8, 1.0, 1.25)
    for told, checks in verdicts_of(claims.exact_laws, monkeypatch, "binomial", [1, 1], [30], which, factors).items():
        names = [name.replace("_", " ") for name in which]
        assert [checks[f"{name} has the posterior's width"] for name in names] == 3 * [told == 1], told


def test_the_claim_on_exact_laws_turns_with_the_scale_told_for_two_unknowns(monkeypatch):
    factors = (0.8, 1.0, 1.25)
    for told, checks in verdicts_of(claims.exact_laws, monkeypatch, *CLAMPED, [20], ["simulation"], factors).items():
        assert checks["simulation has the posterior's width"] == (told == 1), told


def test_the_claim_on_quadrature_turns_with_the_scale_that_it_is_told(monkeypatch):
    given = "poisson", [30, 10], [10, 300], ["quadrature"], (0.7, 1.0)
    for told, checks in verdicts_of(claims.normal_sums, monkeypatch, *given).items():
        assert checks["of the exact width at n = 300"] is (told == 1), told


def test_what_fails_at_one_epsilon_is_left_out_there_and_draws_without_numbers_are_counted(tmp_path, monkeypatch):
    from recomputed import run

    body = "import numpy as np\n" + OWN.replace("    drawn =", "    {}\n    drawn =")
    (tmp_path / "moody.py").write_text(body.format("assert task.scale < 5, 'too noisy'"))
    (tmp_path / "empty.py").write_text(OWN.replace("return Inferred(", "return Inferred(float('nan') * "))
    monkeypatch.setattr(methods, "__path__", [*methods.__path__, str(tmp_path)])
    names = ["empty", "exact", "moody"]
    made = run("noise_aware/rivals", trials=2, block=1, methods=names, epsilon=[0.1, 1.0], n=5)
    table = made.tables["rivals"].set_index(["method", "epsilon"])
    assert set(table.index) == {("empty", 0.1), ("empty", 1.0), ("exact", 0.1), ("exact", 1.0), ("moody", 1.0)}
    assert made.tables["rivals_refused"].to_dict("list") == {
        "task": ["binomial"], "noise": ["laplace"], "method": ["moody"], "status": ["failed"],
        "reason": ["AssertionError: too noisy (moody.py:9)"],
    }  # fmt: skip
    assert table.failed.to_dict() == {key: 2 * (key[0] == "empty") for key in table.index}
    assert np.isnan(table.distance["empty", 1.0]) and table.n_releases["moody", 1.0] == 2
