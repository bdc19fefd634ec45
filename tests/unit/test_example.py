"""The examples for users run as they are shipped, cell by cell or at once."""

from __future__ import annotations

import json
import re
import runpy
from pathlib import Path

import pytest

from privpost.privacy.accounting import sequential

ROOT = Path(__file__).resolve().parents[2]

EXAMPLE = ROOT / "examples" / "own_data.py"
RELEASE = ROOT / "examples" / "release.py"


def test_the_example_runs_and_stays_within_its_budget(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "Agg")
    found = runpy.run_path(str(EXAMPLE))
    assert (tmp_path / "own_data.png").stat().st_size > 10_000
    (account,) = {row["account"] for row in found["ledger"].record()}
    charged = sequential([found[name].cost().to_notion_of(found["budget"]) for name in ("mechanism", "sampler")])
    spent = found["ledger"].spent(account)
    assert spent.epsilon == pytest.approx(charged.epsilon, rel=1e-12)
    assert spent.within(found["budget"])
    # 400 bits and noise of scale 4: the private mean is within 0.1 of the true one but in one run of 10^4.
    model = found["model"]
    assert abs(model.mean(found["private_posterior"]) - model.mean(found["true_posterior"])) < 0.1
    # Noise of scale 4 on either of 400 counts widens the posterior.
    assert found["aware"].std() > 1.05 * found["naive"].std()
    out = capsys.readouterr().out
    assert "noise-aware" in out
    assert "one private draw" in out
    assert f"both releases together: {spent}" in out
    assert "privpost release" in EXAMPLE.read_text().split("# %% [markdown]\n")[1]


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


@pytest.mark.parametrize("example", [EXAMPLE, RELEASE])
def test_an_example_is_a_notebook_of_cells(example):
    text = example.read_text()
    assert len(re.findall(r"^# %%$", text, re.MULTILINE)) == len(re.findall(r"^# %% \[markdown\]$", text, re.MULTILINE))


def test_what_the_example_imports_is_importable_by_name():
    from privpost import discovery, mechanisms, models

    for kinds in discovery.mechanisms().values():
        for kind in kinds:
            assert getattr(mechanisms, kind.__name__) is kind
    for model in discovery.models().values():
        assert getattr(models, model.__name__) is model
