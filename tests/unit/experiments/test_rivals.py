"""The rivals of noise-aware inference: references by other sums, scores, and a user's own method."""

from __future__ import annotations

import dataclasses
import itertools
import math
import re
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from recomputed import spied
from scipy.integrate import quad
from scipy.signal import lfilter
from scipy.stats import beta, binom, expon, gamma, geom, norm, poisson

from privpost.evaluation import diagnostics
from privpost.experiments.noise_aware.rivals import claims
from privpost.inference_benchmark import methods, metrics, references, scoring
from privpost.inference_benchmark.base import Budget, Inferred, Refused
from privpost.inference_benchmark.tasks import made
from privpost.inference_benchmark.tasks.networks import NETWORKS
from privpost.lab.schema import SettingError

BUDGET = Budget(4, 500, 200)


def moments(theta, weight) -> tuple[float, float]:
    """Return mean and standard deviation of θ by weights on a grid."""
    mean = np.average(theta, weights=weight)
    return mean, math.sqrt(np.average((theta - mean) ** 2, weights=weight))


def check_draws(drawn, mean: float, sd: float) -> None:
    """Draws have a mean and a standard deviation: within 5 standard errors, 1/√N and about 1/√(2N) of the sd."""
    assert abs(drawn.mean() - mean) < 5 * sd / math.sqrt(drawn.size)
    assert abs(drawn.std() - sd) < 5 * sd / math.sqrt(drawn.size)


def test_the_reference_of_bits_is_a_sum_over_counts():
    task = made("binomial", [10, 10], 8, 1.0)
    theta, count = np.linspace(0, 1, 2001)[1:-1], np.arange(9)
    for release in (-3.0, 2.5, 12.0):
        noise = np.exp(-np.abs(release - count) * 1.0)
        weight = (binom.pmf(count, 8, theta[:, None]) * noise).sum(axis=1) * theta**9 * (1 - theta) ** 9
        drawn = task.reference(np.array([[release]]), 20_000, np.random.default_rng(1))
        check_draws(drawn, *moments(theta, weight))


def test_the_reference_of_counts_on_a_lattice_is_a_sum_over_records():
    """Two Poisson records: every pair, redacted outside the bounds, with the noise's density."""
    task = made("poisson", [30, 10], 2, 1.0)
    low, high = task.mechanism.model.ends
    x = np.arange(40)
    value = np.where((x >= low) & (x <= high), x, 0)
    theta = np.linspace(0.3, 9, 1500)
    law = poisson.pmf(x, theta[:, None])
    for release in (-4.0, 5.0, 20.0):
        noise = np.exp(-np.abs(release - value[:, None] - value) / task.scale)
        weight = np.einsum("ta,tb,ab->t", law, law, noise) * gamma.pdf(theta, 30, scale=0.1)
        drawn = task.reference(np.array([[release]]), 20_000, np.random.default_rng(2))
        check_draws(drawn, *moments(theta, weight))


def test_the_reference_of_waiting_times_is_an_integral_over_records():
    """Two exponential records by a grid of midpoints, fine enough that the mean moves by 1e-3 sd when it is halved."""
    task = made("exponential", [8, 2], 2, 1.0)
    low, high = task.mechanism.model.ends
    x = low + (high - low) * (np.arange(400) + 0.5) / 400
    theta = np.linspace(0.2, 14, 700)
    law = expon.pdf(x, scale=1 / theta[:, None]) * (high - low) / 400
    out = 1 - (expon.cdf(high, scale=1 / theta) - expon.cdf(low, scale=1 / theta))
    for release in (-0.5, 0.6, 3.0):
        one = np.exp(-np.abs(release - x) / task.scale)
        both = np.exp(-np.abs(release - x[:, None] - x) / task.scale)
        likelihood = np.einsum("ta,tb,ab->t", law, law, both) + 2 * out * (law @ one)
        likelihood += out**2 * np.exp(-abs(release) / task.scale)
        weight = likelihood * gamma.pdf(theta, 8, scale=0.5)
        drawn = task.reference(np.array([[release]]), 20_000, np.random.default_rng(3))
        check_draws(drawn, *moments(theta, weight))


@pytest.mark.parametrize(("name", "prior"), [("poisson", [30, 10]), ("geometric", [10, 20])])
@pytest.mark.parametrize("n", [3, 400])
def test_the_reference_of_counts_is_a_convolution(name, prior, n, monkeypatch):
    """The law of n records' sum by n convolutions, at some θ: 1e-10 of their mass, which is rounding in either."""
    task = made(name, prior, n, 2.0)
    # Few frequencies beyond the last that counts.
    monkeypatch.setattr(references, "_BLOCK", 4)
    powers = spied(monkeypatch, references, "power")
    low, high = task.mechanism.model.ends
    releases = n * np.array([1.5, 2.1, 2.7])
    law = references.redacted(task.mechanism, releases)
    middle = (law.width[0, 1:] + law.width[0, :-1]) / 2
    assert np.diff(law.theta[0]) == pytest.approx(middle, rel=1e-9)
    if n == 400:
        # No frequency counts after the last one, and few are summed for nothing.
        largest = np.abs(np.concatenate([call.result for call in powers], axis=1)).max(axis=0)
        assert largest[-1] < 1e-20 < largest[-12]
    some = slice(20, 580, 40)
    theta, x = law.theta[0, some], np.arange(high + 1)
    density = poisson(theta[:, None]) if name == "poisson" else geom(theta[:, None], -1)
    one = density.pmf(x) * ((x >= low) & (x <= high))
    one[:, 0] += 1 - one.sum(axis=1)
    sums = np.ones((len(theta), 1))
    for _ in range(n):
        sums = np.stack([np.convolve(*pair) for pair in zip(sums, one, strict=True)])
    noise = np.exp(-np.abs(releases[:, None] - np.arange(sums.shape[1])) / task.scale)
    density = gamma(30, scale=0.1) if name == "poisson" else beta(10, 20)
    weight = noise @ sums.T * density.pdf(theta) * law.width[0, some]
    mass = law.mass[:, some]
    for one, other in zip(weight, mass, strict=True):
        assert other / other.sum() == pytest.approx(one / one.sum(), abs=1e-10)


def every_data_set(model, n: int, scale: float, release) -> tuple[np.ndarray, np.ndarray]:
    """Return counts and posterior weights over all ordered data sets of n records: integrals of beta laws by lgamma."""
    counts, logs = [], []
    for rows in itertools.product(model.records, repeat=n):
        ones_zeros = model.sufficient_statistics(np.array(rows))
        log = -sum(abs(ones_zeros - release)) / scale
        for a, b in ones_zeros.reshape(-1, 2):
            log += math.lgamma(model.alpha + a) + math.lgamma(model.beta + b)
            log -= math.lgamma(model.alpha + model.beta + a + b)
        counts.append(ones_zeros)
        logs.append(log)
    return np.array(counts), np.exp(np.array(logs) - max(logs))


@pytest.mark.parametrize("name", sorted(NETWORKS))
def test_the_reference_of_networks_is_a_sum_over_data_sets(name):
    task = made(name, [1, 2], 3, 2.0)
    rng = np.random.default_rng(4)
    release = task.mechanism.perturb(task.data(task.prior(1, rng), rng), rng)[0]
    counts, weight = every_data_set(task.model, 3, task.scale, release)
    (draw,) = references.counts(task.model, 3, task.scale, release[None])
    drawn = draw(40_000, rng)
    mean = weight @ counts / weight.sum()
    sd = np.sqrt(weight @ (counts - mean) ** 2 / weight.sum())
    # 5 standard errors of the mean of 40,000 draws.
    assert np.all(np.abs(drawn.mean(axis=0) - mean) < 5 * sd / 200 + 1e-12)
    assert set(map(tuple, np.unique(drawn, axis=0))) <= set(map(tuple, counts))


@pytest.mark.parametrize("name", sorted(NETWORKS))
def test_counts_next_to_no_noise_are_those_released(name):
    """Other counts have weights of exp(−1000) and less, so that no draw may be one of them."""
    task, rng = made(name, [1, 2], 4, 8000.0), np.random.default_rng(5)
    counts = task.data(task.prior(3, rng), rng)
    for draw, told in zip(references.counts(task.model, 4, task.scale, counts), counts, strict=True):
        assert draw(50, rng).tolist() == 50 * [told.tolist()]


CLAMPED = "normal_unknown_variance", [0, 4, 6, 6]


def test_the_reference_of_two_unknowns_is_simulation_weighted_by_the_noise():
    """200,000 data sets from the prior, weighted by the density of their noise, decide: to 5 of their errors."""
    task, rng = made(*CLAMPED, 20, 1.0), np.random.default_rng(21)
    theta = task.prior(200_000, rng)
    x = theta[:, :1] + np.sqrt(theta[:, 1:]) * rng.standard_normal((len(theta), 20))
    low, high = task.mechanism.model.low, task.mechanism.model.high
    r = np.clip(2 * (x - low) / (high - low) - 1, -1, 1)
    exact = np.stack([r.sum(axis=1), (r * r).sum(axis=1)], axis=1)
    for release in ([4.0, 6.0], [-9.0, 12.0]):
        weight = np.exp(-np.abs(release - exact).sum(axis=1) / 2.25)
        drawn = task.reference(np.array([release]), 20_000, np.random.default_rng(1))[0]
        size = weight.sum() ** 2 / (weight @ weight)
        for j in range(2):
            mean, sd = moments(theta[:, j], weight)
            error = sd * math.sqrt(1 / size + 1 / 20_000)
            assert abs(drawn[:, j].mean() - mean) < 5 * error
            # Variances have heavy tails: their deviation has four times the error of a normal law's.
            assert abs(drawn[:, j].std() - sd) < 10 * error


def score(inferred, reference, theta) -> np.ndarray:
    references = [metrics.Reference.of(draws) for draws in reference]
    return metrics.score(inferred, references, theta, np.random.default_rng(3))


def law_of(name: str, task, releases, seed: int = 7, budget: Budget = BUDGET) -> np.ndarray:
    """Return the scores (scores,) of a method's draws, means over releases."""
    rng = np.random.default_rng(seed)
    inferred = methods.method(name)(task, releases, rng, budget)
    reference = task.reference(releases, 4000, np.random.default_rng(8))
    return score(inferred, reference, reference[:, 0]).mean(axis=0)


# What law a method has, exact or not, at n = 5 and ε = 1, by task: distance of its draws, which those of an exact law
# exceed by chance alone, at about 1.4/√ess.
EXACT = {
    "binomial": ("exact", "data_augmentation", "simulation", "abc_smc"),
    "multinomial": ("data_augmentation", "simulation", "abc_smc"),
    "poisson": ("exact", "data_augmentation", "simulation"),
    "normal_unknown_variance": ("exact", "data_augmentation", "simulation"),
    "collider": ("exact", "data_augmentation", "simulation", "abc_smc", "records", "table"),
}


def excess(name: str, task, releases) -> float:
    """Return the distance over what as many independent draws have, of chains that move."""
    distance, *_, ess = law_of(name, task, releases)
    assert ess > 60, (name, ess)
    return distance / (1.288 * math.sqrt(1 / ess + 1 / 4000))


def released(task, size: int = 6):
    rng = np.random.default_rng(6)
    return task.mechanism.perturb(task.data(task.prior(size, rng), rng), rng)


@pytest.mark.parametrize("name", EXACT)
def test_exact_methods_have_the_reference_s_law(name):
    """The excess is 1 on average; over six releases it varies by about 15 %, and effective sizes by as much."""
    priors = {"multinomial": [1, 1, 1], "poisson": [30, 10], CLAMPED[0]: CLAMPED[1]}
    task = made(name, priors.get(name, [1, 1]), 5, 1.0)
    releases = released(task)
    for method in EXACT[name]:
        assert excess(method, task, releases) < 1.6, method


def test_approximations_are_near_where_records_are_many():
    """A normal law of the sum of 300 records and little noise: posterior sd 3 % of θ, so that 5 % would be seen."""
    task = made("poisson", [30, 10], 300, 10.0)
    releases = released(task)
    for method in ("quadrature", "noise_calibrated", "gibbs"):
        assert excess(method, task, releases) < 1.8, method
    two = made(*CLAMPED, 300, 3.0)
    for method in ("quadrature", "gibbs"):
        assert excess(method, two, released(two)) < 1.8, method


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


def test_the_distance_of_independent_draws_is_the_integral_over_a_normal_law_s_quantiles():
    """E|F_m − F| = √(2/π) √(F(1 − F)/m) for large m; 1.2884 by quadrature, and 1.25 to 1.29 in simulations."""
    integral = quad(lambda x: math.sqrt(norm.cdf(x) * norm.sf(x)), -12, 12)[0]
    assert pytest.approx(math.sqrt(2 / math.pi) * integral, abs=5e-4) == claims.NORMAL


def test_chains_are_worth_what_the_diagnostics_say_of_each_release():
    """Autocorrelated chains of two parameters, one constant, and a release without numbers: each by itself decides."""
    rng = np.random.default_rng(1)
    draws = lfilter([1.0], [1.0, -0.9], rng.standard_normal((4, 4, 200, 2)), axis=2)
    draws[1, ..., 1], draws[2, 0, 0, 0] = 0.5, np.nan
    reference = [metrics.Reference.of(rng.standard_normal((500, 2))) for _ in range(4)]
    found = metrics.score(Inferred(draws), reference, np.zeros((4, 2)), rng)[:, -1]
    alone = [diagnostics.diagnose(draws[k].transpose(1, 0, 2))[1] for k in (0, 1, 3)]
    assert found[[0, 1, 3]] == pytest.approx([alone[0].min(), alone[1][0], alone[2].min()])
    assert np.isnan(found[2]) and found[0] < 200


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


def verdict_of(function, monkeypatch, task: str, prior, sizes, names, told: float) -> dict:
    """Return the checks of a claim on cells of a task where all methods but `exact` are told another noise scale."""
    from recomputed import run

    real = methods.method

    def told_wrong(name):
        def infer(task, *given):
            with pytest.MonkeyPatch.context() as patch:
                if name != "exact":
                    other = dataclasses.replace(task.mechanism, epsilon=task.mechanism.epsilon / told)
                    patch.setattr(task, "mechanism", other)
                return real(name)(task, *given)

        return infer

    monkeypatch.setattr(methods, "method", told_wrong)
    settings = {"task": task, "prior": prior, "methods": names, "epsilon": [0.3, 1.0], "reference_draws": 4000}
    # Errors of a mean sd are then a third of its limit.
    cells = [run("noise_aware/rivals", 40, 40, **settings, n=n, chains=4, draws=500, burn_in=100) for n in sizes]
    parts = list(function(pd.concat([made.tables["rivals"] for made in cells])))
    return {part.name: part.value for part in parts if part.kind == "check"}


@pytest.mark.parametrize("told", [0.8, 1.0, 1.25])
def test_the_claim_on_exact_laws_turns_with_the_scale_that_methods_are_told(monkeypatch, told):
    """By the width of the posterior: distances alone stay below their limit at such errors."""
    which = ["abc_smc", "data_augmentation", "exact", "simulation"]
    checks = verdict_of(claims.exact_laws, monkeypatch, "binomial", [1, 1], [30], which, told)
    names = "abc smc", "data augmentation", "simulation"
    assert [checks[f"{name} has the posterior's width"] for name in names] == 3 * [told == 1]


@pytest.mark.parametrize("told", [0.8, 1.0, 1.25])
def test_the_claim_on_exact_laws_turns_with_the_scale_told_for_two_unknowns(monkeypatch, told):
    which = ["exact", "simulation"]
    checks = verdict_of(claims.exact_laws, monkeypatch, *CLAMPED, [20], which, told)
    assert checks["simulation has the posterior's width"] == (told == 1)


@pytest.mark.parametrize("told", [0.7, 1.0])
def test_the_claim_on_quadrature_turns_with_the_scale_that_it_is_told(monkeypatch, told):
    which = ["exact", "quadrature"]
    checks = verdict_of(claims.normal_sums, monkeypatch, "poisson", [30, 10], [10, 300], which, told)
    assert checks["of the exact width at n = 300"] is (told == 1)


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
        "task": ["binomial"], "method": ["moody"], "reason": ["AssertionError: too noisy"],
    }  # fmt: skip
    assert table.failed.to_dict() == {key: 2 * (key[0] == "empty") for key in table.index}
    assert np.isnan(table.distance["empty", 1.0]) and table.n_releases["moody", 1.0] == 2


GUIDE = Path(__file__).resolve().parents[3] / "CONTRIBUTING.md"
OWN = re.search(r"^`src/[^`]*/methods/prior.py`\n\n```python\n(.*?)^```$", GUIDE.read_text(), re.M | re.S)[1]


def test_a_user_s_method_is_one_file(tmp_path, monkeypatch):
    """It is found, runs beside the others, and one that fails or gives a wrong shape costs its own rows only."""
    (tmp_path / "prior_only.py").write_text(OWN)
    (tmp_path / "broken.py").write_text("def infer(task, releases, rng, budget):\n    raise ZeroDivisionError('no')\n")
    (tmp_path / "odd.py").write_text(OWN.replace("(len(releases), 1, budget.total, task.size)", "(len(releases), -1)"))
    monkeypatch.setattr(methods, "__path__", [*methods.__path__, str(tmp_path)])
    assert {"prior_only", "broken", "odd", "gibbs"} <= methods.names()
    task, budget = made("binomial", [1, 1], 5, 1.0), Budget(2, 40, 5)
    releases = released(task, 2)
    found, broken, odd = (
        scoring.run(methods.method(name), task, releases, np.random.default_rng(0), budget)
        for name in ("prior_only", "broken", "odd")
    )
    assert found.inferred.draws.shape == (2, 1, 80, 1) and found.seconds >= 0 and found.status == ""
    assert (broken.status, broken.reason) == ("failed", "ZeroDivisionError: no")
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
    for name, prior in (("binomial", [1, 1]), ("normal", [0, 1, 1]), CLAMPED, ("naive_bayes", [1, 1])):
        task = made(name, prior, 5, 1.0)
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
