"""The examples for users run as they are shipped, cell by cell or at once."""

from __future__ import annotations

import json
import re
import runpy
import sys
from pathlib import Path

import nbformat
import pytest

from privpost.privacy.accounting.costs import sequential

ROOT = Path(__file__).resolve().parents[2]

NOTEBOOK = ROOT / "examples" / "own_data.ipynb"
RELEASE = ROOT / "examples" / "release.py"


@pytest.mark.parametrize("arviz", [True, False])
def test_the_notebook_runs_and_stays_within_its_budget(arviz, tmp_path, monkeypatch, capsys):
    """Its code cells, one after the other in one namespace, as a kernel would; with ArviZ the same comes out."""
    if arviz:
        pytest.importorskip("arviz")
    else:
        monkeypatch.setitem(sys.modules, "arviz", None)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "Agg")
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    nbformat.validate(notebook)
    found, printed = {}, []
    for cell in notebook.cells:
        if cell.cell_type == "code":
            exec(compile(cell.source, str(NOTEBOOK), "exec"), found)
            printed.append(capsys.readouterr().out)
            # What is shown in the file is what comes out.
            assert printed[-1] == "".join(output.text for output in cell.outputs if output.output_type == "stream")
    assert any("image/png" in output.get("data", {}) for cell in notebook.cells for output in cell.get("outputs", []))
    assert list(tmp_path.iterdir()) == []
    (account,) = {row["account"] for row in found["ledger"].record()}
    charged = sequential([found[name].cost().to_notion_of(found["budget"]) for name in ("mechanism", "sampler")])
    spent = found["ledger"].spent(account)
    assert spent.epsilon == pytest.approx(charged.epsilon, rel=1e-12)
    assert spent.within(found["budget"])
    # Noise of scale 20 on either of 400 counts more than doubles the posterior's variance.
    assert found["aware"].std() > 1.4 * found["naive"].std()
    assert ("handed" in found) is arviz
    out = "".join(printed)
    assert "noise-aware" in out
    assert "one private draw" in out
    assert f"both releases together: {spent}" in out
    assert "privpost release" in notebook.cells[1].source


def test_the_release_goes_from_a_csv_file_to_a_plot(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "Agg")
    found = runpy.run_path(str(RELEASE))
    assert found["status"] == 0
    files = {path.name for path in (tmp_path / "commute").iterdir()}
    assert files == {"answers.csv", "commute.yaml", "commute.ledger.jsonl", "release.json", "posterior.png"}
    release = found["release"]
    assert release["posterior"]["converged"]
    header, entry = map(json.loads, (tmp_path / "commute/commute.ledger.jsonl").read_text().splitlines())
    assert (header["budget"]["epsilon"], entry["epsilon"]) == (1.0, 0.1)
    # Noise of scale 20 on each count: none is off by more than 500 but in one run of 10^10.
    answers = (tmp_path / "commute/answers.csv").read_text().split()[1:]
    assert abs(found["counts"]["car"] - answers.count("car")) < 500
    assert found["aware"].std(axis=0)[0] > found["naive"].std(axis=0)[0]
    assert "released: {'car':" in capsys.readouterr().out


def test_the_release_is_a_notebook_of_cells():
    text = RELEASE.read_text()
    assert len(re.findall(r"^# %%$", text, re.MULTILINE)) == len(re.findall(r"^# %% \[markdown\]$", text, re.MULTILINE))


def test_what_the_example_imports_is_importable_by_name():
    from privpost import discovery, mechanisms, models

    for kind in discovery.kinds():
        assert getattr(mechanisms, kind.mechanism.__name__) is kind.mechanism
    for model in discovery.models().values():
        assert getattr(models, model.__name__) is model
