"""`synthetic: m`: data sets from the posterior predictive law, the size that they need, and what is refused."""

from __future__ import annotations

import csv
import json
from collections import Counter

import numpy as np
import pytest
from release_cases import SPECS, content, specification
from scipy import stats

from privpost import BetaBernoulli, LaplaceMechanism
from privpost.distributions import noise
from privpost.release import synthetic
from privpost.release.models.base import Posterior

PREDICTIVE = [name for name in SPECS if name != "bounded_sum"]


@pytest.mark.parametrize("model", PREDICTIVE)
def test_a_release_has_synthetic_data_beside_it(folder, model):
    found = content(model, posterior={"draws": 5}, synthetic=2)
    folder.specify(found)
    status, out, err = folder.run("--output", "out.json")
    assert status in (0, 1), err
    told = json.loads((folder.path / "out.json").read_text())["synthetic"]
    size = 20 * found["n"]
    assert {key: told[key] for key in ("file", "sets", "records_of_a_set", "needed_records")} == {
        "file": "out.synthetic.csv", "sets": 2, "records_of_a_set": size, "needed_records": size,
    }  # fmt: skip
    assert "mix the posteriors in equal parts" in told["rule"]
    assert f"2 sets of {size} records" in out
    with (folder.path / "out.synthetic.csv").open(newline="") as handle:
        rows = list(csv.DictReader(handle))
    assert Counter(row["synthetic_set"] for row in rows) == {"1": size, "2": size}
    assert set(rows[0]) == {"synthetic_set", *found["columns"]}
    for name, settings in found["columns"].items():
        values = {row[name] for row in rows}
        if "levels" in settings:
            assert values <= set(settings["levels"])
        else:
            assert all(float(value) % settings["resolution"] == 0 for value in values)
    # --again gives the same ones, and an output is never overwritten.
    assert folder.run("--again", "out.json", "--output", "again.json")[0] == status
    again = (folder.path / "again.synthetic.csv").read_bytes()
    assert again == (folder.path / "out.synthetic.csv").read_bytes()
    (folder.path / "third.synthetic.csv").write_text("mine")
    assert "exists; name another output" in folder.run("--again", "out.json", "--output", "third.json")[2]


def test_sets_are_of_draws_far_apart_in_a_chain(tmp_path):
    """Of five draws the first and the last one, which alone is 1."""
    spec, kind = specification(tmp_path, content("beta_bernoulli", posterior={"draws": 5}, synthetic=2))
    drawn = Posterior({"P": np.array([0.0, 0.0, 0.0, 0.0, 1.0])}, True, "", ())
    synthetic.write(spec, kind, drawn, tmp_path / "out.json", np.random.default_rng(1))
    with (tmp_path / "out.synthetic.csv").open(newline="") as handle:
        levels = {row["synthetic_set"]: row["smokes"] for row in csv.DictReader(handle)}
    assert levels == dict(zip("12", content("beta_bernoulli")["columns"]["smokes"]["levels"], strict=True))


@pytest.mark.parametrize("model", PREDICTIVE)
def test_synthetic_records_have_the_law_of_their_parameters(tmp_path, model):
    """Frequencies of 40,000 records at one θ, within 5 standard errors."""
    spec, kind = specification(tmp_path, content(model, posterior={"draws": 5}))
    rng, size = np.random.default_rng(3), 40_000
    names = kind.parameters(spec)
    theta = {
        "beta_bernoulli": [0.3], "dirichlet_categorical": [0.2, 0.5, 0.3], "bayesian_network": [0.6, 0.2, 0.9],
        "naive_bayes": [0.3, 0.7, 0.2, 0.3, 0.5, 0.9, 0.1, 0.1, 0.1, 0.8, 0.25, 0.75],
        "gamma_exponential": [2.0], "normal_known_variance": [1.5],
    }[model]  # fmt: skip
    assert len(theta) == len(names)
    columns = kind.predicted(spec, np.array(theta), size, rng)
    assert [len(column) for column in columns] == [size] * len(spec.columns)
    table = dict(zip(kind.order(spec), map(np.array, columns), strict=True))
    if model == "gamma_exponential":
        # Rounded to halves, which hardly moves a mean of ½.
        assert table["minutes"].astype(float).mean() == pytest.approx(0.5, abs=0.03)
        return
    if model == "normal_known_variance":
        assert table["minutes"].astype(float).mean() == pytest.approx(1.5, abs=0.03)
        return
    for name, chance in zip(names, theta, strict=True):
        event, _, given = name[2:-1].partition(" | ")
        rows = np.ones(size, bool)
        for condition in filter(None, given.split(", ")):
            column, _, level = condition.partition(" = ")
            rows &= table[column] == level
        column, _, level = event.partition(" = ")
        limit = 5 * np.sqrt(chance * (1 - chance) / rows.sum())
        assert abs((table[column][rows] == level).mean() - chance) < limit, name


def coverage(times: float, repeats=300, sets=60, n=200, level=0.8) -> float:
    """Share of 80 % intervals of the mixture of posteriors, from sets of times n bits each, that hold the true θ."""
    rng, hits = np.random.default_rng(8), 0
    mechanism = LaplaceMechanism(BetaBernoulli(1, 1), n, 1.0)
    # A posterior's sd is 0.014 at least, so that a quantile between two of these points errs by little of it.
    grid = np.linspace(0, 1, 401)
    for _ in range(repeats):
        theta = rng.random()
        ones = rng.binomial(n, theta)
        release = mechanism.perturb(np.array([ones, n - ones], float), rng)
        chosen = np.asarray(mechanism.posterior(release, sets, rng))
        drawn = rng.binomial(int(times * n), chosen)
        mixed = stats.beta.cdf(grid[:, None], 1 + drawn, 1 + times * n - drawn).mean(axis=1)
        low, high = np.interp([(1 - level) / 2, (1 + level) / 2], mixed, grid)
        hits += low <= theta <= high
    return hits / repeats


def test_intervals_of_mixed_posteriors_hold_the_truth_as_often_as_they_say():
    """At the size that the file states. Four binomial standard errors of 300 intervals."""
    limit = 4 * np.sqrt(0.8 * 0.2 / 300)
    assert abs(coverage(synthetic.TIMES) - 0.8) < limit
    # Sets of the data's size make intervals too wide by √2: 93 % of them hold the truth.
    assert coverage(1) - 0.8 > limit


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"synthetic": 4}, "synthetic is 4, but each set needs a draw of its own"),
        ({"synthetic": 0}, "synthetic is 0, but must be"),
        ({"synthetic": 3, "n": 100_000}, "would have 6,000,000 in all, but at most 5,000,000"),
        ({"synthetic": 3, "mechanism": "ops", "a0": 0.1}, "posterior"),
    ],
)
def test_what_cannot_be_synthesised_is_refused_before_the_charge(folder, monkeypatch, changes, message):
    monkeypatch.setattr(noise, "_variates", None)
    folder.specify(content("beta_bernoulli", **changes))
    status, out, err = folder.run("--output", "out.json")
    assert (status, out) == (2, "")
    assert message in err
    folder.specify(content("bounded_sum", synthetic=3))
    assert "bounded_sum has no law of whole records" in folder.run("--output", "out.json")[2]
    folder.specify(content("beta_bernoulli", synthetic=3))
    assert "synthetic is 3, which needs --output" in folder.run()[2]
    assert not (folder.path / "out.json").exists()


def test_one_draw_of_a_posterior_has_no_interval(folder):
    folder.specify(content("beta_bernoulli", posterior={"draws": 1}))
    status, out, err = folder.run("--output", "out.json")
    assert status == 0, err
    assert "one draw from the posterior, which has no interval" in out
    assert "[" not in out.partition("interval")[2]
    assert set(json.loads((folder.path / "out.json").read_text())["posterior"]["summary"]["P(smokes = yes)"]) == {
        "draw"
    }
    folder.specify(content("beta_bernoulli", posterior={"draws": 200}))
    assert "posterior median [95 % credible interval]:" in folder.run("--output", "two.json")[1]
