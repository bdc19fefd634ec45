"""Methods of the benchmark: their laws, a user's own method, refusals and times."""

from __future__ import annotations

import math
import re
import time
from pathlib import Path

import numpy as np
import pytest
from benchmark_laws import CLAMPED, check_draws, moments

from privpost.inference_benchmark import methods, metrics, scoring
from privpost.inference_benchmark.base import Budget, Refused
from privpost.inference_benchmark.tasks import known, made
from privpost.lab.schema import SettingError

BUDGET = Budget(4, 500, 200)


# What law a method has, exact or not, at n = 5 and ε = 1, by task: distance of its draws, which those of an exact law
# exceed by chance alone, at about 1.4/√ess.
EXACT = {
    "binomial": ("exact", "data_augmentation", "simulation", "abc_smc"),
    "binomial gaussian": ("exact", "data_augmentation", "simulation", "abc_smc"),
    "binomial discrete_gaussian": ("exact", "data_augmentation", "simulation"),
    "multinomial": ("data_augmentation", "simulation", "abc_smc"),
    "multinomial geometric": ("exact", "data_augmentation", "abc_smc"),
    "private_n_multinomial": ("exact", "simulation", "abc_smc"),
    "randomised_response": ("exact", "data_augmentation"),
    "regression": ("exact", "simulation"),
    "poisson": ("exact", "data_augmentation", "simulation"),
    "normal_unknown_variance": ("exact", "data_augmentation", "simulation"),
    "collider": ("exact", "data_augmentation", "simulation", "abc_smc", "records", "table"),
    "log_linear": ("exact", "data_augmentation", "simulation", "abc_smc"),
}
WIDE = {"binomial": [1, 1], "multinomial": [1, 1, 1], "private_n_multinomial": [1, 1, 1], "log_linear": [1, 1]}


def released(task, size: int = 6):
    rng = np.random.default_rng(6)
    return task.mechanism.perturb(task.data(task.prior(size, rng), rng), rng)


def excesses(task, *names: str) -> dict[str, float]:
    """Return by methods the distance over what as many independent draws have, of chains that move."""
    releases, ratios = released(task), {}
    references = [metrics.Reference.of(draws) for draws in task.reference(releases, 4000, np.random.default_rng(8))]
    for name in names:
        inferred = methods.method(name)(task, releases, np.random.default_rng(7), BUDGET)
        pooled = inferred.draws.reshape(len(releases), -1, task.size)
        ess = metrics.effective(inferred).mean()
        assert ess > 60, (name, ess)
        far = [np.abs(one.quantiles(draws) - one.slices).mean() for one, draws in zip(references, pooled, strict=True)]
        ratios[name] = np.mean(far) / (1.288 * math.sqrt(1 / ess + 1 / 4000))
    return ratios


@pytest.mark.parametrize("name", EXACT)
def test_exact_methods_have_the_reference_s_law(name):
    """The excess is 1 on average; over six releases it varies by about 15 %, and effective sizes by as much."""
    which, _, noise = name.partition(" ")
    task = made(which, WIDE.get(which), 5, 1.0, noise or None)
    ratios = excesses(task, *EXACT[name])
    assert all(ratio < 1.6 for ratio in ratios.values()), ratios


def test_approximations_are_near_where_records_are_many():
    """A normal law of the sum of 300 records and little noise: posterior sd 3 % of θ, so that 5 % would be seen."""
    for task, *names in (
        (made("poisson", [30, 10], 300, 10.0), "quadrature", "noise_calibrated", "gibbs"),
        (made(*CLAMPED, 300, 3.0), "quadrature", "gibbs"),
        (made("regression", None, 1000, 10.0), "gibbs"),
    ):
        ratios = excesses(task, *names)
        assert all(ratio < 1.8 for ratio in ratios.values()), (task.name, ratios)


def test_normal_laws_of_counts_are_near_where_records_are_many():
    """NAPSU-MQ's law where noise is Gaussian or little, in logits of probabilities or against the last category."""
    for task in (
        made("binomial", None, 300, 1.0, "gaussian"),
        made("multinomial", None, 300, 1.0, "gaussian"),
        made("naive_bayes", [20, 20], 200, 20.0),
    ):
        assert excesses(task, "napsu_mq")["napsu_mq"] < 1.8, task.name


def test_the_normal_likelihood_has_the_variance_of_the_noise():
    """Bits by a grid of our own: N(y; nθ, nθ(1 − θ) + 2b²) at b = 10, where the noise is most of it."""
    task = made("binomial", [10, 10], 50, 0.1)
    theta = np.linspace(0, 1, 4001)[1:-1]
    for release in (10.0, 30.0, 70.0):
        variance = 50 * theta * (1 - theta) + 200
        weight = (theta * (1 - theta)) ** 9 * np.exp(-((release - 50 * theta) ** 2) / 2 / variance) / np.sqrt(variance)
        found = methods.method("noise_calibrated")(
            task, np.array([[release]]), np.random.default_rng(9), Budget(4, 5000, 0)
        )
        check_draws(found.draws, *moments(theta, weight))


GUIDE = Path(__file__).resolve().parents[3] / "CONTRIBUTING.md"
OWN = re.search(r"^`rejection.py`\n\n```python\n(.*?)^```$", GUIDE.read_text(), re.M | re.S)[1]


def test_a_user_s_method_is_one_file(tmp_path, monkeypatch):
    """It is found, runs beside the others, and one that fails or gives a wrong shape costs its own rows only."""
    (tmp_path / "rejection.py").write_text(OWN)
    (tmp_path / "broken.py").write_text("def infer(task, releases, rng, budget):\n    raise ZeroDivisionError('no')\n")
    (tmp_path / "odd.py").write_text(OWN.replace("[:, None]", "[:, :, 0]"))
    monkeypatch.setattr(methods, "__path__", [*methods.__path__, str(tmp_path)])
    assert {"rejection", "broken", "odd", "gibbs"} <= methods.names()
    task, budget = made("binomial", [1, 1], 5, 1.0), Budget(2, 40, 5)
    releases = released(task, 2)
    found, broken, odd = (
        scoring.run(methods.method(name), task, releases, np.random.default_rng(0), budget)
        for name in ("rejection", "broken", "odd")
    )
    assert found.inferred.draws.shape == (2, 1, 80, 1) and found.seconds >= 0 and found.status == ""
    assert (broken.status, broken.reason) == ("failed", "ZeroDivisionError: no (broken.py:2)")
    assert odd.status == "failed" and "the shape must be (2, chains, draws, 1)" in odd.reason


def test_what_the_reference_has_prepared_counts_as_the_method_s_time():
    """Two tenths of a second of preparation, once for all calls: within the time of `exact`, and not of others."""
    task, calls = made("binomial", [1, 1], 5, 1.0), []
    laws = task.laws

    def slow(releases):
        calls.append(len(releases))
        start = time.process_time()
        while time.process_time() < start + 0.2:
            pass
        return laws(releases)

    task.laws = slow
    releases, rng = released(task, 3), np.random.default_rng(0)
    task.reference(releases, 1000, rng)
    seconds = {
        name: scoring.run(methods.method(name), task, releases, rng, Budget(1, 50, 0)).seconds
        for name in ("exact", "naive")
    }
    assert calls == [3] and seconds["naive"] < 0.15 and 0.2 <= seconds["exact"] < 0.35


def test_refusals_are_one_line_and_no_method_of_the_project_fails():
    for name in known():
        task = made(name, None, 5, 1.0)
        releases = released(task, 1)
        for method in sorted(methods.names()):
            rng, budget = np.random.default_rng(0), Budget(2, 10, 2)
            outcome = scoring.run(methods.method(method), task, releases, rng, budget)
            assert outcome.status != "failed" and "\n" not in outcome.reason, (method, name, outcome.reason)
    with pytest.raises(Refused, match="redacted sums"):
        methods.method("gibbs_independent")(made("binomial", [1, 1], 5, 1.0), np.zeros((1, 1)), None, BUDGET)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("collider", [1, 1], 101, 1.0), "n is 101, but must be at most 100"),
        (("collider", [1], 5, 1.0), "it needs 2 positive numbers"),
        (("binomal", [1, 1], 5, 1.0), "Did you mean 'binomial'"),
    ],
)
def test_bad_tasks_are_refused(arguments, message):
    with pytest.raises(SettingError, match=message):
        made(*arguments)
