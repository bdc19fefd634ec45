"""`privpost release`: nothing but noisy statistics gets out, and a ledger stops releases."""

from __future__ import annotations

import json
import re
import tracemalloc

import numpy as np
import pytest
from release_cases import BITS, HEADER, SPECS, content, discrete, specification

from privpost.distributions import noise
from privpost.release import command, models, table


@pytest.mark.parametrize("model", SPECS)
def test_the_output_depends_on_the_records_through_the_release_alone(folder, model, monkeypatch):
    """Two files of which the mechanism is made to release the same give the same bytes."""
    folder.specify(content(model))
    generator = np.random.default_rng
    monkeypatch.setattr(np.random, "default_rng", lambda seed=None: generator(11))
    # What is compiled once is said once.
    folder.run()
    released = []
    monkeypatch.setattr(
        noise, "add", lambda exact, variates, source: (released.append(exact), np.full(np.shape(exact), 2.0))[1]
    )
    first = folder.run()
    folder.data("\n".join(map(",".join, [HEADER, *([["no", "a", "yes", "2.5"]] * 4)])) + "\n")
    second = folder.run()
    assert first[0] == 0
    assert first == second
    # Each release has a rehearsal before it.
    assert not np.array_equal(*released[1::2])


def test_a_statement_names_its_terms(folder):
    folder.specify(content("gamma_exponential", epsilon=0.25))
    status, out, err = folder.run()
    found = json.loads(out)
    assert status == 0
    # Noise without a seed: chains on an unlucky release may not converge, and then the user is told.
    assert ("have not converged" in err) is not found["posterior"]["converged"]
    privacy = found["privacy"]
    assert privacy["private"] is True
    assert privacy["notion"] == "pure epsilon-DP"
    assert (privacy["epsilon"], privacy["delta"]) == (0.25, 0.0)
    assert privacy["neighbours"].startswith("substitution: data sets of 4 records")
    assert privacy["sensitivity"] == {"norm": "l1", "value": 4.0}
    assert privacy["noise"]["scale"] == pytest.approx(16.0)
    assert privacy["noise"]["support"] == "multiples of 0.5"
    # Of the discrete law, in minutes.
    k = np.arange(-4000, 4001)
    assert privacy["noise"]["mean_absolute_deviation"] == pytest.approx(0.5 * discrete("laplace", 32, 4000) @ np.abs(k))
    (promise,) = privacy["covers"]
    assert "more than exp(epsilon) = 1.285 times as likely. " in promise
    assert any("rounded to multiples of 0.5" in text for text in found["posterior"]["approximations"])
    assert {"opendp", "privpost", "numpy", "python"} <= set(found["versions"])
    assert "data.csv" not in out
    assert found["statistics"]["sums"]["minutes"] % 0.5 == 0


def test_simulated_noise_has_a_seed_and_says_that_it_is_not_private(folder):
    folder.specify(content("beta_bernoulli", noise="simulation", seed=5))
    first, second = folder.run(), folder.run()
    assert first == second
    privacy = json.loads(first[1])["privacy"]
    assert privacy["private"] is False
    assert privacy["epsilon_proved"] is None
    assert "NOT A PRIVATE RELEASE" in privacy["covers"][0]


@pytest.mark.parametrize(("law", "scale"), [("laplace", 0.01), ("laplace", 0.5), ("normal", 0.3), ("normal", 12.0)])
def test_the_spread_of_the_noise_is_that_of_its_discrete_law(law, scale):
    """At small scales it is far from the scale: nearly all noise is 0."""
    k = np.arange(-400, 401)
    expected = discrete(law, scale, 400) @ np.abs(k) if law == "laplace" else np.sqrt(discrete(law, scale, 400) @ k**2)
    assert noise.spread(scale, law == "laplace") == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(("epsilon", "factor"), [(0.1, "1.106"), (10.0, r"2.203e\+04"), (800.0, None)])
def test_the_promise_depends_on_epsilon(folder, epsilon, factor):
    """exp(0.1) = 1.1052 is rounded up; above 10 nothing is called private."""
    folder.specify({**BITS, "epsilon": epsilon, "allow_large_epsilon": True})
    privacy = json.loads(folder.run("--dry-run")[1])["privacy"]
    assert privacy["private"] is (epsilon <= 10)
    (promise,) = privacy["covers"]
    assert promise.startswith("NOT A PRIVATE RELEASE") is (epsilon > 10)
    assert re.search(f"exp\\(epsilon\\) = {factor} times" if factor else r"exp\(epsilon\) times", promise)


def test_the_promise_of_gaussian_noise_excepts_delta(folder):
    folder.specify({**BITS, "epsilon": 1, "delta": 1e-6, "mechanism": "gaussian"})
    privacy = json.loads(folder.run("--dry-run")[1])["privacy"]
    assert privacy["covers"][0].endswith("2.719 times as likely, but for an additional probability delta = 1e-06.")
    assert privacy["noise"]["standard_deviation"] == pytest.approx(privacy["noise"]["scale"], rel=1e-9)


def test_coarse_values_raise_the_rate_as_the_posterior_says(tmp_path):
    """A vague prior lets a coarse resolution pass; what rounding did to the rate stands beside the draws.

    Rounded to multiples of 4, records of rate 1 have the mean 2/sinh(2) = 0.551: a rate of 1.81, which is 81 % more.
    """
    rounded = 4 * np.rint(np.random.default_rng(1).exponential(size=200_000) / 4)
    # A standard error is below 0.003.
    assert rounded.mean() == pytest.approx(2 / np.sinh(2), abs=0.012)
    assert "raises the rate by about 81 %" in models.KINDS["gamma_exponential"].rounding(
        4.0, np.full(5, np.sinh(2) / 2)
    )
    assert "by about 0 %" in models.KINDS["gamma_exponential"].rounding(1e-9, np.ones(5))
    found, kind = specification(
        tmp_path,
        content(
            "gamma_exponential",
            n=2000,
            columns={"minutes": {"low": 0, "high": 40, "resolution": 4}},
            prior={"shape": 1, "rate": 100},
        ),
    )
    assert kind.coarsest(found) > 4


@pytest.mark.parametrize("mechanism", ["laplace", "ops", "diffused"])
def test_a_dry_run_comes_to_no_sampler(folder, mechanism, monkeypatch):
    """It is as quick as its checks, whatever is to be drawn."""
    found = content("beta_bernoulli", mechanism=mechanism)
    if mechanism == "laplace":
        found["posterior"] = {"draws": 100_000}
    else:
        del found["posterior"]
        found |= {"a0": 0.1} if mechanism == "ops" else {"delta": 1e-6}
    folder.specify(found)
    for module, name in ((command, "_drawn"), (command, "_posterior"), (table, "statistics")):
        monkeypatch.setattr(module, name, None)
    status, out, err = folder.run("--dry-run")
    assert (status, err) == (0, "")
    assert json.loads(out)["privacy"]["mechanism"] == mechanism


def test_a_dry_run_reads_no_data_and_draws_no_noise(folder, monkeypatch):
    folder.specify(content("beta_bernoulli"))
    (folder.path / "data.csv").unlink()
    monkeypatch.setattr(noise, "_variates", None)
    status, out, _ = folder.run("--dry-run", "--output", "out.json")
    assert status == 0
    assert "statistics" not in json.loads(out)
    assert folder.files() == {"spec.yaml"}


def test_records_are_summed_in_parts(folder, monkeypatch):
    monkeypatch.setattr(table, "CHUNK", 3)
    monkeypatch.setattr(noise.SecureNoise, "laplace", lambda self, loc, scale, size: np.zeros(size))
    folder.specify(content("dirichlet_categorical"))
    assert json.loads(folder.run()[1])["statistics"]["counts"]["diet"] == {"a": 1, "b": 1, "c": 2}


def test_many_counts_need_little_memory(tmp_path):
    """Ten classes and thirty attributes of a hundred levels: one 0 or 1 per record and count would need 150 MB."""
    levels = list(range(100))
    columns = {"smokes": {"levels": levels[:10], "role": "class"}, **{f"x{i}": {"levels": levels} for i in range(30)}}
    found, kind = specification(tmp_path, content("naive_bayes", columns=columns))
    mechanism, _ = command.calibrate(found, kind)
    data = np.random.default_rng(1).integers(0, 10, (5000, 31))
    tracemalloc.start()
    counts = mechanism.model.sufficient_statistics(data)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    # A few copies of 155,000 whole numbers of 8 bytes.
    assert peak < 10e6
    assert counts.shape == (30_000,)
    assert counts.sum() == data[:, 1:].size
    assert counts.reshape(10, 30, 100)[3, 7, 5] == np.sum((data[:, 0] == 3) & (data[:, 8] == 5))
    assert np.array_equal(mechanism.model.sufficient_statistics(data.reshape(2, 2500, 31)).sum(axis=0), counts)


def test_a_refused_budget_leaves_no_ledger(folder):
    folder.specify({**BITS, "budget": {"ledger": "ledger.jsonl", "epsilon": 0.5}})
    status, out, err = folder.run()
    assert (status, out) == (2, "")
    assert "this one, epsilon 1, delta 0, would exceed epsilon 0.5" in err
    assert folder.files() == {"spec.yaml", "data.csv"}


def test_releases_stop_where_the_budget_is_spent(folder):
    budget = {"ledger": "ledger.jsonl", "epsilon": 2.5}
    folder.specify({**BITS, "budget": budget})
    assert [folder.run("--output", f"{i}.json")[0] for i in range(3)] == [0, 0, 2]
    _, *lines = [json.loads(line) for line in (folder.path / "ledger.jsonl").read_text().splitlines()]
    assert [line["epsilon"] for line in lines] == [1.0, 1.0]
    assert folder.files() == {"spec.yaml", "data.csv", "ledger.jsonl", "0.json", "1.json"}
    _, out, err = folder.run()
    assert out == ""
    assert "2 earlier releases cost epsilon 2, delta 0; this one, epsilon 1, delta 0, would exceed epsilon 2.5" in err
    # A cheaper one still fits, and data that are refused cost nothing.
    folder.specify({**BITS, "epsilon": 0.5, "budget": budget})
    folder.data("nothing\n")
    assert folder.run()[0] == 2
    assert len((folder.path / "ledger.jsonl").read_text().splitlines()) == 3


def test_a_ledger_that_is_none_is_refused(folder):
    folder.specify({**BITS, "budget": {"ledger": "ledger.jsonl", "epsilon": 2.5}})
    (folder.path / "ledger.jsonl").write_text('{"epsilon": 1}\n')
    status, out, err = folder.run()
    assert (status, out) == (2, "")
    assert "line 1 is no entry of a ledger" in err
