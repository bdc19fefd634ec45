"""`privpost release`: what it refuses."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from release_cases import BITS, SPECS, YES_NO, Folder, content

from privpost.commands import cli
from privpost.distributions import noise
from privpost.release import delivery

SUM = content("gamma_exponential")


NETWORK = content("bayesian_network")


def without(found: dict, key: str) -> dict:
    return {name: value for name, value in found.items() if name != key}


DRAW = {**without(SUM, "posterior"), "mechanism": "diffused", "delta": 1e-6}


BAD_SPECIFICATIONS = {
    "epsilon zero": ({**BITS, "epsilon": 0}, r"epsilon is 0, but must be a number in \(0, 10\]"),
    "epsilon negative": ({**BITS, "epsilon": -1}, "epsilon is -1, but must be"),
    "epsilon nan": ({**BITS, "epsilon": float("nan")}, "epsilon is nan, but must be"),
    "epsilon infinite": ({**BITS, "epsilon": float("inf")}, "epsilon is inf, but must be"),
    "epsilon text": ({**BITS, "epsilon": "much"}, "epsilon is 'much', but must be a number"),
    "epsilon too small": ({**BITS, "epsilon": 1e-15}, r"epsilon is 1e-15: .*beyond 2\^40"),
    "epsilon too small for Gaussian noise": (
        {**BITS, "epsilon": 1e-13, "delta": 1e-30, "mechanism": "gaussian"},
        r"epsilon is 1e-13: .*beyond 2\^40",
    ),
    "epsilon too large": ({**BITS, "epsilon": 10.5}, r"epsilon is 10.5, .*\(0, 10\].*allow_large_epsilon: true"),
    "epsilon missing": (without(BITS, "epsilon"), "epsilon is missing. Required: model, columns, n, epsilon"),
    "unknown key": ({**BITS, "epsilom": 1}, "no setting 'epsilom'. Did you mean 'epsilon'"),
    "unknown model": ({**BITS, "model": "beta_bernouli"}, "model is 'beta_bernouli'.*Did you mean 'beta_bernoulli'"),
    "unknown mechanism": ({**BITS, "mechanism": "laplce"}, "mechanism is 'laplce'.*Did you mean 'laplace'"),
    "mechanism that cannot": ({**SUM, "mechanism": "gaussian", "delta": 0.01}, "released with: laplace"),
    "delta for laplace": ({**BITS, "delta": 1e-6}, "delta is 1e-06, but Laplace noise is epsilon-DP"),
    "delta missing": ({**BITS, "mechanism": "gaussian"}, "delta is missing"),
    "delta of one": ({**BITS, "mechanism": "gaussian", "delta": 1}, r"delta is 1, but must be a number in \(0, 1\)"),
    "seed": ({**BITS, "seed": 5}, "seed is 5, but secure noise has no seed"),
    "n of another file": ({**BITS, "n": 5}, "n is 5, but data.csv has another number of records"),
    "n zero": ({**BITS, "n": 0}, "n is 0, but must be a whole number of at least 1"),
    "n fraction": ({**BITS, "n": 3.5}, "n is 3.5, but must be a whole number"),
    "n too large": ({**BITS, "n": 10**9}, "n is 1000000000; posterior draws need n <= 10000000"),
    "no columns": ({**BITS, "columns": {}}, "columns is {}, but must be a map"),
    "columns a list": ({**BITS, "columns": ["smokes"]}, "but must be a map from names of columns"),
    "setting of another model": ({**BITS, "columns": NETWORK["columns"]}, "there is no setting 'parents'"),
    "two columns": (
        {**BITS, "columns": {"smokes": {"levels": YES_NO}, "cough": {"levels": YES_NO}}},
        "columns has 2 entries, but beta_bernoulli has exactly 1",
    ),
    "one level": ({**BITS, "columns": {"smokes": {"levels": ["no"]}}}, r"levels is \['no'\], but must be a list"),
    "level twice": (
        {**BITS, "columns": {"smokes": {"levels": ["no", "no"]}}},
        "columns: smokes: levels: level 'no' is given twice",
    ),
    "three levels of a bit": (
        {**BITS, "columns": {"smokes": {"levels": ["no", "yes", "so"]}}},
        "levels has 3 entries; beta_bernoulli needs 2",
    ),
    "levels missing": ({**BITS, "columns": {"smokes": {}}}, "columns: smokes: levels is missing"),
    "bounds the wrong way": (
        {**SUM, "columns": {"minutes": {"low": 4, "high": 0, "resolution": 0.5}}},
        "low is 4 and high is 0; low must be less",
    ),
    "bound off the lattice": (
        {**SUM, "columns": {"minutes": {"low": 0, "high": 4.2, "resolution": 0.5}}},
        "high is 4.2, but must be a multiple of the resolution, 0.5",
    ),
    "resolution missing": ({**SUM, "columns": {"minutes": {"low": 0, "high": 4}}}, "resolution is missing"),
    "resolution zero": (
        {**SUM, "columns": {"minutes": {"low": 0, "high": 4, "resolution": 0}}},
        r"resolution is 0, but must be a number in \(0, inf\)",
    ),
    "resolution too fine": (
        {**SUM, "columns": {"minutes": {"low": 0, "high": 4, "resolution": 1e-18}}},
        r"resolution is 1E-18, too fine: .* at most 2\^50 steps",
    ),
    "resolution too coarse for waiting times": (
        {**SUM, "n": 2000, "columns": {"minutes": {"low": 0, "high": 40, "resolution": 4}}},
        "resolution is 4.0, too coarse for posterior draws: .* must be at most 0.232",
    ),
    "resolution too coarse for one draw of a rate": (
        {**DRAW, "columns": {"minutes": {"low": 0, "high": 40, "resolution": 4}}},
        "resolution is 4.0, too coarse for posterior draws: .* must be at most 1.1",
    ),
    # By hand: (ln 10^6 - ln 1001)/1000 - ln(1001/1000) = 0.00591, what a draw from the prior costs at order 1001.
    "epsilon below what the orders show": (
        {**DRAW, "epsilon": 0.001},
        "epsilon is 0.001, but must be at least 0.00594: less cannot be shown at delta 1e-06",
    ),
    "resolution too coarse for a normal law": (
        content("normal_known_variance", columns={"minutes": {"low": -2, "high": 4, "resolution": 1}}),
        "resolution is 1.0, too coarse for posterior draws: .* must be at most 0.5",
    ),
    "negative waiting time": (
        {**SUM, "columns": {"minutes": {"low": -1, "high": 4, "resolution": 0.5}}},
        "low is -1, but must be at least 0",
    ),
    "prior missing": (without(BITS, "prior"), "prior: alpha is missing"),
    "prior negative": ({**BITS, "prior": {"alpha": -1, "beta": 1}}, "prior: alpha is -1, but must be"),
    "draws of no posterior": (content("bounded_sum", posterior={"draws": 2}), "bounded_sum has no posterior"),
    "draws zero": ({**BITS, "posterior": {"draws": 0}}, "draws is 0, but must be a whole number of at least 1"),
    "parent unknown": (
        {**NETWORK, "columns": {"smokes": {"levels": YES_NO, "parents": ["couhg"]}, "cough": {"levels": YES_NO}}},
        "there is no column 'couhg'. Did you mean 'cough'",
    ),
    "too many parents": (
        {
            **NETWORK,
            "columns": {
                **{f"x{i}": {"levels": YES_NO} for i in range(13)},
                "smokes": {"levels": YES_NO, "parents": [f"x{i}" for i in range(13)]},
            },
        },
        "smokes: parents has 13 entries; at most 12 are supported",
    ),
    "cycle": (
        {
            **NETWORK,
            "columns": {
                "smokes": {"levels": YES_NO, "parents": ["cough"]},
                "cough": {"levels": YES_NO, "parents": ["smokes"]},
            },
        },
        "is in a cycle",
    ),
    "no class": (
        content("naive_bayes", columns={"diet": {"levels": ["a", "b"]}, "smokes": {"levels": YES_NO}}),
        "0 of 2 columns have role: class",
    ),
    "unquoted no and yes": (
        "model: beta_bernoulli\nn: 4\nepsilon: 1\ncolumns:\n  smokes: {levels: [no, yes]}\n",
        "YAML reads an unquoted yes, no, true, false, on or off as False; quote it",
    ),
    "key twice": ("model: beta_bernoulli\nn: 4\nepsilon: 1\nepsilon: 100\n", "line 4: 'epsilon' is given twice"),
    "no YAML": ("model: [beta", "spec.yaml is not valid YAML"),
    "no map": ("just text", "it must hold settings, key: value"),
    "empty": ("", "it must hold settings"),
}


@pytest.mark.parametrize("name", BAD_SPECIFICATIONS)
def test_a_bad_specification_is_refused_and_nothing_is_released(folder, name, monkeypatch):
    found, message = BAD_SPECIFICATIONS[name]
    folder.specify(found)
    before = folder.files()
    monkeypatch.setattr(noise, "_variates", None)
    status, out, err = folder.run("--output", "out.json")
    assert (status, out) == (2, "")
    assert err.startswith("privpost: spec.yaml")
    assert re.search(message, err), err
    assert folder.files() == before


def rows(*changed: str) -> str:
    return "\n".join(changed) + "\n"


BAD_DATA = {
    "column missing": (BITS, rows("smoke,x", "no,1"), r"has no column 'smokes'\.$"),
    "no header": (BITS, rows("secret17", "yes", "no", "yes"), "its first line, the header, has no column 'smokes'"),
    "no header, and a cell near the column's name": (
        {**BITS, "columns": {"secret1": {"levels": YES_NO}}},
        rows("secret17", "yes", "no", "yes"),
        "its first line, the header, has no column 'secret1'",
    ),
    "column twice": (BITS, rows("smokes,smokes", "no,no"), "the column 'smokes' is there 2 times"),
    "another level": (BITS, rows("smokes", "no", "secret17"), r"row 2, column 'smokes' must hold one of its levels"),
    "empty cell": (BITS, rows("smokes,x", "no,1", ",2"), "row 2, column 'smokes' is empty"),
    "not a number": (SUM, rows("minutes", "1", "NaN"), "row 2, column 'minutes' must hold a number in"),
    "infinite": (SUM, rows("minutes", "inf"), "row 1, column 'minutes' must hold a number in"),
    "beyond the bounds": (SUM, rows("minutes", "1", "4.3187"), r"row 2.*must hold a number in \[0, 4\]"),
    "decimal comma": (SUM, rows("minutes", '"1,5"'), "row 1, column 'minutes' must hold a number"),
    "ragged": (BITS, rows("smokes,x", "no,1", "yes"), "row 2 has 1 cells, but the header has 2"),
    "too few rows": (BITS, rows("smokes", "no"), "n is 4, but data.csv has another number of records"),
    "too many rows": (BITS, rows("smokes", *["no"] * 9), "n is 4, but data.csv has another number of records"),
    "empty file": (BITS, "", "its first line, the header, has no column"),
    "stray quote": (BITS, 'smokes\n"no"x\n', "is not a CSV file"),
}


@pytest.mark.parametrize("name", BAD_DATA)
def test_bad_data_are_refused_and_nothing_is_released_or_told(folder, name, monkeypatch):
    found, text, message = BAD_DATA[name]
    folder.specify(found)
    folder.data(text)
    before = folder.files()
    monkeypatch.setattr(noise, "_variates", None)
    status, out, err = folder.run("--output", "out.json")
    assert (status, out) == (2, "")
    assert re.search(message, err), err
    # A message goes to the data holder, and yet holds no cell.
    assert "secret17" not in err
    assert "4.3187" not in err
    assert folder.files() == before


def test_bytes_that_are_no_text_are_refused(folder):
    folder.specify(BITS)
    (folder.path / "data.csv").write_bytes(b"smokes\n\xff\xfe\n")
    assert folder.run()[0] == 2
    (folder.path / "spec.yaml").write_bytes(b"\xff\xfe\x00")
    assert folder.run()[0] == 2


def test_files_that_are_not_there_are_refused(folder, capsys):
    folder.specify(BITS)
    for argv, message in (
        (["release", "spec.yaml", "--data", "other.csv"], "other.csv: there is no such file"),
        (["release", "other.yaml", "--data", "data.csv"], "other.yaml: there is no such file"),
        (["release", "spec.yaml"], "there are no data; give --data FILE"),
        (["release", "spec.yaml", "--data", "data.csv", "--output", "no/out.json"], "there is no folder no"),
        (["release", "spec.yaml", "--data", "."], "cannot be read"),
    ):
        assert cli.main(argv) == 2
        captured = capsys.readouterr()
        assert message in captured.err
        assert captured.out == ""


def test_a_release_is_never_overwritten(folder, monkeypatch):
    folder.specify(BITS)
    assert folder.run("--output", "out.json")[0] == 0
    first = (folder.path / "out.json").read_text()
    status, out, err = folder.run("--output", "out.json")
    assert (status, out) == (2, "")
    assert "out.json exists. Another release costs its epsilon again" in err
    # Also not one that appears while the data are read.
    monkeypatch.setattr(delivery.Delivery, "_check", lambda self: None)
    check_kept_beside(folder, json.loads(first))


def test_a_file_system_without_links_will_do(folder, monkeypatch):
    def refuse(*_):
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", refuse)
    folder.specify(BITS)
    assert folder.run("--output", "out.json")[0] == 0
    first = json.loads((folder.path / "out.json").read_text())
    assert first["privacy"]["private"]
    monkeypatch.setattr(delivery.Delivery, "_check", lambda self: None)
    check_kept_beside(folder, first)


def check_kept_beside(folder: Folder, first: dict) -> None:
    """A release whose name was taken meanwhile is paid for, and kept under another name."""
    status, out, err = folder.run("--output", "out.json")
    assert (status, out) == (1, "")
    assert "out.json cannot be written: File exists; the statement is in " in err
    assert "Epsilon 1 was spent" in err
    assert json.loads((folder.path / "out.json").read_text()) == first
    (kept,) = folder.files() - {"spec.yaml", "data.csv", "out.json"}
    assert json.loads((folder.path / kept).read_text())["privacy"]["private"]


def test_without_opendp_the_message_says_how_to_install_it(folder, monkeypatch):
    folder.specify(BITS)
    noise.opendp.cache_clear()
    monkeypatch.setitem(sys.modules, "opendp", None)
    monkeypatch.setitem(sys.modules, "opendp.prelude", None)
    status, out, err = folder.run("--output", "out.json")
    assert (status, out) == (2, "")
    assert "needs the package opendp. Install it: pip install" in err
    folder.specify({**BITS, "noise": "simulation"})
    assert folder.run()[0] == 0


def test_a_file_that_cannot_be_written_whole_is_not_left(folder, monkeypatch):
    def refuse(*_):
        raise PermissionError(1, "Operation not permitted")

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "link", refuse)
    # The trial before the charge fails first, then the file itself.
    for failing, working, expected in (("fsync", os.fsync, 2), ("replace", os.replace, 1)):
        monkeypatch.setattr(os, failing, full)
        folder.specify(BITS)
        status, out, err = folder.run("--output", "out.json")
        assert (status, out) == (expected, "")
        assert ("was spent" in err) is (expected == 1)
        assert "out.json cannot be written: No space left on device" in err
        # What was paid for is never deleted.
        kept = [json.loads((folder.path / name).read_text()) for name in folder.files() - {"spec.yaml", "data.csv"}]
        assert [one["privacy"]["private"] for one in kept] == [True] * (expected == 1)
        monkeypatch.setattr(os, failing, working)


def test_a_prior_beyond_floating_point_gets_a_proved_draw_or_a_refusal(folder):
    """Where floats say that the largest coefficient costs nothing, the proof lessens it, or gives up."""
    draw = {"mechanism": "concentrated", "delta": 1e-6, "bits": 8}
    for prior in ({"shape": 1e16, "rate": 2}, {"shape": 1e200, "rate": 2}, {"shape": 1e200, "rate": 1e16}):
        folder.specify(without(content("gamma_exponential", prior=prior, **draw), "posterior"))
        check_outcome(folder)


def test_a_budget_that_no_ledger_keeps_is_refused(folder):
    folder.specify(content("beta_bernoulli", budget={"ledger": "ledger.jsonl", "epsilon": 4e-107, "delta": 1e-4}))
    status, _, err = folder.run()
    assert status == 2
    assert err.count("\n") == 1 and "epsilon is 4e-107, but must be a number in [1e-12, 1e+12]" in err


SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=8), st.lists(st.integers(), max_size=3)
)


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    model=st.sampled_from(list(SPECS)),
    draw=st.sampled_from([{}, {"mechanism": "ops", "a0": 0.1}, {"mechanism": "diffused", "delta": 1e-6, "bits": 8}]),
    path=st.lists(st.integers(0, 7), min_size=1, max_size=3),
    value=SCALARS,
)
def test_any_specification_is_released_or_refused(folder, model, draw, path, value):
    """One value somewhere in a valid specification is replaced by anything; a refusal is not charged."""
    found = json.loads(
        json.dumps(content(model, budget={"ledger": "ledger.jsonl", "epsilon": 5, "delta": 1e-4}, **draw))
    )
    if draw:
        found.pop("posterior", None)
    (folder.path / "ledger.jsonl").unlink(missing_ok=True)
    place = found
    for step in path[:-1]:
        inner = [item for item in place.values() if isinstance(item, dict)] if isinstance(place, dict) else []
        place = inner[step % len(inner)] if inner else place
    place[list(place)[path[-1] % len(place)]] = value
    folder.specify(found)
    check_outcome(folder)


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    model=st.sampled_from(["beta_bernoulli", "normal_known_variance", "bounded_sum"]),
    lines=st.lists(st.text(alphabet="smokesminutyno,.\"'0123e-\x00\r é", max_size=12), max_size=5),
)
def test_any_file_is_released_or_refused(folder, model, lines):
    folder.specify(without(content(model), "posterior"))
    header = "minutes" if "minutes" in SPECS[model]["columns"] else "smokes"
    folder.data("\n".join([header, *lines]))
    check_outcome(folder)


def check_outcome(folder: Folder) -> None:
    status, out, err = folder.run()
    if status == 0:
        assert json.loads(out)["privacy"]["private"]
    elif status == 1:
        # Released and charged; of an extreme prior there are no draws, which is said.
        posterior = json.loads(out)["posterior"]
        assert posterior.get("failed") or posterior["converged"] is False
        assert err.startswith("privpost: the statistics were released, but")
    else:
        assert status == 2
        assert out == ""
        assert err.startswith("privpost: ")
        assert "ledger.jsonl" not in folder.files()


def test_the_command_runs_outside_a_checkout(folder):
    """As a user runs it: another folder, another process."""
    folder.specify({**BITS, "data": "data.csv"})
    done = subprocess.run(
        [sys.executable, "-m", "privpost", "release", "spec.yaml", "--output", "out.json"],
        cwd=folder.path,
        env={**os.environ, "PYTHONPATH": str(Path(cli.__file__).parents[2])},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("out.json: pure epsilon-DP\n")
    assert json.loads((folder.path / "out.json").read_text())["statistics"]["counts"]["smokes"].keys() == {"yes"}
    assert folder.files() == {"spec.yaml", "data.csv", "out.json"}


def test_the_command_is_listed_and_suggested(folder, capsys):
    assert cli.main(["--help"]) == 0
    assert "privpost release" in capsys.readouterr().out
    assert cli.main(["relase"]) == 2
    assert "Did you mean 'release'?" in capsys.readouterr().err


BUDGET = {"ledger": "ledger.jsonl", "epsilon": 2.5}


def test_noise_that_is_far_too_large_is_refused_in_one_line_and_at_once(folder):
    start = time.perf_counter()
    folder.specify({**BITS, "budget": BUDGET, "mechanism": "gaussian", "epsilon": 1e-300, "delta": 1e-300})
    status, _, err = folder.run("--dry-run")
    assert (status, err.count("\n"), len(err) < 400) == (2, 1, True)
    assert time.perf_counter() - start < 5


@pytest.mark.parametrize("epsilon", [1e308, 5e-324])
def test_a_budget_is_within_reason(folder, epsilon):
    folder.specify({**BITS, "budget": {**BUDGET, "epsilon": epsilon}})
    assert "epsilon is" in (err := folder.run()[2])
    assert "must be a number in [1e-12, 1e+12]" in err


# What YAML can hold


def test_an_anchor_bomb_is_refused_in_little_time(folder):
    text = "a: &a [x, x, x, x, x, x, x, x, x, x]\n"
    for last, this in zip("abcdefgh", "bcdefghi", strict=True):
        text += f"{this}: &{this} [{', '.join([f'*{last}'] * 10)}]\n"
    folder.specify(text)
    start = time.perf_counter()
    status, out, err = folder.run("--dry-run")
    assert (status, out) == (2, "")
    assert "aliases stand for more than" in err
    assert time.perf_counter() - start < 2
    folder.specify({**BITS, "epsilon": ["x" * 50] * 1000})
    assert len(folder.run()[2]) < 3000


def test_aliases_of_levels_are_read(folder):
    folder.specify(content("bayesian_network", columns={"smokes": {"levels": YES_NO}, "cough": {"levels": YES_NO}}))
    assert "*id" in (folder.path / "spec.yaml").read_text()
    assert folder.run("--dry-run")[0] == 0


def test_many_levels_take_little_time(folder):
    """A scan of all levels for each of them took over two minutes."""
    levels = [f"level {i}" for i in range(20_000)]
    found = content("dirichlet_categorical", n=20_000, columns={"diet": {"levels": levels}})
    del found["posterior"]
    folder.specify(json.dumps(found))
    folder.data("\n".join(["diet", *levels]) + "\n")
    start = time.perf_counter()
    assert folder.run("--output", "out.json")[0] == 0
    # About 2 s on one core.
    assert time.perf_counter() - start < 20


@pytest.mark.parametrize("written", ["010", "12:30", "1_0", "0x10", "0o7"])
def test_numbers_of_yaml_1_1_are_no_numbers(folder, written):
    """They were 8, 750, 10, 16."""
    folder.specify(json.dumps(BITS).replace('"epsilon": 1.0', f'"epsilon": {written}'))
    status, out, err = folder.run()
    assert (status, out) == (2, "")
    assert f"epsilon is '{written}', but must be a number" in err


@pytest.mark.parametrize(("written", "value"), [("1e-1", 0.1), ("+1.5", 1.5), ("1.e0", 1.0), (".5", 0.5), ("2", 2.0)])
def test_numbers_of_yaml_1_2_are(folder, written, value):
    folder.specify(json.dumps(BITS).replace('"epsilon": 1.0', f'"epsilon": {written}'))
    assert json.loads(folder.run("--dry-run")[1])["privacy"]["epsilon"] == value
