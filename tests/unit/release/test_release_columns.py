"""`privpost release`: cells without a value, draws in a file of their own, and the summary at the end."""

from __future__ import annotations

import csv
import hashlib
import json
import re
import sys

import numpy as np
import pytest
from release_cases import BITS, SPECS, YES_NO, content, specification

from privpost.distributions import noise
from privpost.release import delivery, table

SUM = content("gamma_exponential")


def diet(**settings) -> dict:
    return content("dirichlet_categorical", n=5, columns={"diet": {"levels": ["a", "b"], **settings}})


CELLS = "diet\na\n\nb\nNA\n \n"


def counted(tmp_path, found: dict, text: str) -> list[float]:
    """The exact statistics that a file has under a specification."""
    spec, kind = specification(tmp_path, found)
    (tmp_path / "data.csv").write_text(text)
    return table.statistics(tmp_path / "data.csv", spec, kind, kind.mechanism(spec, 1.0).model).tolist()


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"missing": "level", "missing_texts": ["NA"]}, [1, 1, 3]),
        ({"missing": {"impute": "b"}, "missing_texts": ["NA"]}, [1, 4]),
        # The empty cell as a level is no missing value; a blank is.
        ({"levels": ["a", "b", "", "NA"], "missing": "level"}, [1, 1, 1, 1, 1]),
        ({"levels": ["a", "b", "NA", "", " "]}, [1, 1, 1, 1, 1]),
    ],
)
def test_cells_without_a_value_count_as_the_specification_says(tmp_path, settings, expected):
    assert counted(tmp_path, diet(**settings), CELLS) == expected


def test_numbers_are_imputed_by_a_public_one(tmp_path):
    column = {"low": 0, "high": 4, "resolution": 0.5, "missing": {"impute": 1.5}, "missing_texts": ["?"]}
    found = content("bounded_sum", n=4, columns={"minutes": column})
    # In steps of 0.5 from the lower bound.
    assert counted(tmp_path, found, "minutes,x\n1,a\n,b\n?,c\n4,d\n") == [2 + 3 + 3 + 8]


def test_the_statement_says_what_missing_values_were_taken_for(folder):
    columns = {"smokes": {"levels": YES_NO, "missing": {"impute": "no"}}}
    folder.specify({**BITS, "columns": columns})
    folder.data("smokes\nyes\n\n\nno\n")
    status, out, _ = folder.run()
    found = json.loads(out)
    assert status == 0
    assert "what cells without a value count as" in found["privacy"]["public"]
    assert "cells of 'smokes' without a value are taken for 'no'" in found["posterior"]["approximations"]
    assert found["specification"]["columns"] == columns


BAD = {
    "an unknown policy": (diet(missing="drop"), r"missing is 'drop', but must be refuse, level or \{impute: VALUE\}"),
    "no policy": (diet(missing={"imput": "a"}), r"but must be refuse, level or \{impute: VALUE\}"),
    "an imputed value that is no level": (
        diet(missing={"impute": "c"}),
        "diet: missing: impute is 'c', but must be one of its levels 'a', 'b'",
    ),
    "an imputed number out of bounds": (
        {**SUM, "columns": {"minutes": {"low": 0, "high": 4, "resolution": 0.5, "missing": {"impute": 5}}}},
        r"minutes: missing: impute is '5', but must be a number in \[0, 4\]",
    ),
    "a level of numbers": (
        {**SUM, "columns": {"minutes": {"low": 0, "high": 4, "resolution": 0.5, "missing": "level"}}},
        "missing is 'level', but the column has no levels",
    ),
    "a level that is there": (diet(levels=["a", "missing"], missing="level"), "levels has 'missing', which missing"),
    "a third level of a bit": (
        {**BITS, "columns": {"smokes": {"levels": YES_NO, "missing": "level"}}},
        "levels has 3 entries; beta_bernoulli needs 2",
    ),
    "a missing text that is a level": (diet(missing_texts=["a"]), "missing_texts has 'a', which is a value"),
    "refused": (diet(), "row 2, column 'diet' is empty, .*the column's setting missing says what else"),
}


@pytest.mark.parametrize("name", BAD)
def test_what_cannot_be_is_refused_before_anything_is_drawn(folder, name, monkeypatch):
    found, message = BAD[name]
    folder.specify(found)
    folder.data(CELLS)
    monkeypatch.setattr(noise, "_variates", None)
    before = folder.files()
    status, out, err = folder.run("--output", "out.json")
    assert (status, out) == (2, "")
    assert re.search(message, err), err
    assert folder.files() == before


def test_draws_go_to_a_file_of_their_own(folder):
    """With the same seed the file holds what the statement would, to the last bit."""
    folder.specify(content("naive_bayes", noise="simulation", seed=5, posterior={"draws": 7}))
    inside = json.loads(folder.run()[1])["posterior"]
    status, out, _ = folder.run("--output", "out.json", "--draws", "draws.csv")
    found = json.loads((folder.path / "out.json").read_text())["posterior"]
    path = folder.path / "draws.csv"
    assert status == 0
    assert found["draws"] == {"file": "draws.csv", "rows": 7, "sha256": hashlib.sha256(path.read_bytes()).hexdigest()}
    assert "draws.csv, 7 rows" in out
    assert found["summary"] == inside["summary"]
    with path.open(newline="", encoding="utf-8") as handle:
        names, *rows = csv.reader(handle)
    assert dict(zip(names, np.array(rows, float).T.tolist(), strict=True)) == inside["draws"]


@pytest.mark.parametrize("model", ["naive_bayes", "bayesian_network"])
def test_draws_go_to_netcdf(folder, model):
    """With the same seed the file holds what the statement would, to the last bit, and what its draws are."""
    arviz = pytest.importorskip("arviz")
    folder.specify(content(model, noise="simulation", seed=5, posterior={"draws": 16}))
    inside = json.loads(folder.run()[1])
    assert folder.run("--output", "out.json", "--draws", "draws.nc")[0] == 0
    found, path = json.loads((folder.path / "out.json").read_text()), folder.path / "draws.nc"
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    assert found["posterior"]["draws"] == {"file": "draws.nc", "rows": 16, "sha256": digest}
    read = arviz.from_netcdf(path)
    theta = read.posterior.theta
    # Chains on counts give their draws in turn.
    assert theta.sizes["chain"] == (8 if model == "bayesian_network" else 1)
    pooled = theta.transpose("draw", "chain", "parameter").values.reshape(16, -1)
    assert dict(zip(theta.parameter.values.tolist(), pooled.T.tolist(), strict=True)) == inside["posterior"]["draws"]
    assert read.observed_data.release.values.tolist() == found["release"]
    attributes = read.posterior.attrs
    assert (attributes["private"], attributes["noise_aware"], attributes["epsilon"]) == ("false", "true", 1.0)
    assert attributes["method"] == found["posterior"]["method"]
    again = folder.run("--again", "out.json", "--output", "new.json", "--draws", "new.nc")
    assert again[0] == 0
    assert (folder.path / "new.nc").read_bytes() == path.read_bytes()


def test_netcdf_that_cannot_be_written_loses_nothing(folder, monkeypatch):
    arviz = pytest.importorskip("arviz")

    def full(self, path):
        raise RuntimeError("can't write: no space\nand so on")

    monkeypatch.setattr(arviz.InferenceData, "to_netcdf", full)
    folder.specify(content("beta_bernoulli"))
    assert folder.run("--output", "out.json", "--draws", "draws.nc")[0] == 1
    found = json.loads((folder.path / "out.json").read_text())
    assert found["posterior"]["failed"].startswith("draws.nc cannot be written: can't write: no space; draw it again")
    assert folder.files() == {"spec.yaml", "data.csv", "out.json"}


def test_netcdf_without_arviz_is_refused_before_the_charge(folder, monkeypatch):
    monkeypatch.setitem(sys.modules, "arviz", None)
    folder.specify({**BITS, "budget": {"ledger": "ledger.jsonl", "epsilon": 2}})
    status, out, err = folder.run("--output", "out.json", "--draws", "draws.nc")
    assert (status, out, err.count("\n")) == (2, "", 1)
    assert re.search(r"draws.nc: InferenceData and netCDF need the package arviz\. .*'\.\[arviz\]'", err)
    assert folder.files() == {"spec.yaml", "data.csv"}


@pytest.mark.parametrize(
    ("model", "name", "message"),
    [
        ("beta_bernoulli", "draws.parquet", "draws.parquet must end in .csv, or in .nc for netCDF"),
        ("beta_bernoulli", "data.csv", "data.csv exists; name a new file"),
        ("beta_bernoulli", "no/draws.csv", "there is no folder no"),
        ("bounded_sum", "draws.csv", "asks for no posterior draws"),
        # The statement could not name it.
        ("beta_bernoulli", "\udcff.csv", "is no text in UTF-8"),
    ],
)
def test_a_file_of_draws_that_cannot_be_is_refused_before_the_charge(folder, model, name, message):
    folder.specify(content(model, budget={"ledger": "ledger.jsonl", "epsilon": 2}))
    before = folder.files()
    status, out, err = folder.run("--output", "out.json", "--draws", name)
    assert (status, out) == (2, "")
    assert re.search(message, err), err
    assert folder.files() == before


def test_draws_that_cannot_be_written_lose_nothing(folder, monkeypatch):
    """The statement says so, and --again draws them again at no cost."""
    folder.specify({**BITS, "budget": {"ledger": "ledger.jsonl", "epsilon": 2}})
    writing = delivery.write_draws

    def full(path, found, content):
        raise OSError(28, "No space left on device", str(path))

    monkeypatch.setattr(delivery, "write_draws", full)
    status, out, _ = folder.run("--output", "out.json", "--draws", "draws.csv")
    found = json.loads((folder.path / "out.json").read_text())
    assert status == 1
    assert found["posterior"]["failed"].startswith("draws.csv cannot be written: No space left")
    assert "draws.csv cannot be written" in out
    monkeypatch.setattr(delivery, "write_draws", writing)
    status, out, _ = folder.run("--again", "out.json", "--output", "new.json", "--draws", "draws.csv")
    assert status == 0
    assert "left after it   epsilon 1 of 2" in out
    assert json.loads((folder.path / "new.json").read_text())["release"] == found["release"]
    assert len((folder.path / "draws.csv").read_text().splitlines()) == 4


@pytest.mark.parametrize("model", SPECS)
def test_a_summary_ends_a_release_into_a_file(folder, model):
    """File, ε of this release and left, estimates, R-hat where there are chains."""
    folder.specify(content(model, epsilon=0.25, budget={"ledger": "ledger.jsonl", "epsilon": 2}))
    folder.run("--output", "first.json")
    status, out, _ = folder.run("--output", "out.json")
    found = json.loads((folder.path / "out.json").read_text())
    assert status == 0
    first, *rest = out.splitlines()
    assert first == "out.json: pure epsilon-DP"
    assert rest[:2] == ["  this release    epsilon 0.25", "  left after it   epsilon 1.5 of 2"]
    posterior = found.get("posterior", {})
    assert ("R-hat" in out) is (posterior.get("rhat_max") is not None)
    if "summary" in posterior:
        name, numbers = next(iter(posterior["summary"].items()))
        assert f"{name}" in out
        assert f"{numbers['0.5']:.4g}  [{numbers['0.025']:.4g}, {numbers['0.975']:.4g}]" in out
    else:
        assert f"sum of minutes  {found['statistics']['sums']['minutes']:.12g}" in out


def test_a_release_without_a_posterior_says_how_to_have_one(folder):
    bare = {key: value for key, value in BITS.items() if key != "posterior"}
    folder.specify(bare)
    assert "a posterior     costs nothing more: --again out.json" in folder.run("--output", "out.json")[1]
    folder.specify({**bare, "posterior": {"draws": 4000}})
    status, out, _ = folder.run("--again", "out.json", "--output", "new.json")
    assert status == 0 and "posterior median" in out and "costs nothing" not in out


def test_cells_are_separated_by_what_the_specification_says(folder):
    folder.data((folder.path / "data.csv").read_text().replace(",", ";"))
    folder.specify(BITS)
    assert "no column 'smokes'. It has ';' in it: is that the setting delimiter?" in folder.run()[2]
    folder.specify({**BITS, "delimiter": ";"})
    assert folder.run()[0] == 0
    folder.specify({**BITS, "delimiter": "x"})
    assert "delimiter is 'x'" in folder.run()[2]
