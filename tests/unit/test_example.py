"""The example for users of the library runs as it is shipped, cell by cell or at once."""

from __future__ import annotations

import re
import runpy

from conftest import ROOT

EXAMPLE = ROOT / "examples" / "own_data.py"


def test_the_example_runs_and_stays_within_its_budget(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "Agg")
    found = runpy.run_path(str(EXAMPLE))
    assert (tmp_path / "own_data.png").stat().st_size > 10_000
    assert found["mechanism"].cost().epsilon <= found["budget"].epsilon
    # 400 bits and noise of scale 4: the private mean is within 0.1 of the true one but in one run of 10^4.
    model = found["model"]
    assert abs(model.mean(found["private_posterior"]) - model.mean(found["true_posterior"])) < 0.1
    assert "one private draw" in capsys.readouterr().out


def test_the_example_is_a_notebook_of_cells():
    text = EXAMPLE.read_text()
    assert len(re.findall(r"^# %%$", text, re.MULTILINE)) == len(re.findall(r"^# %% \[markdown\]$", text, re.MULTILINE))


def test_what_the_example_imports_is_importable_by_name():
    from privpost import mechanisms, models

    for kinds in mechanisms.discover().values():
        for kind in kinds:
            assert getattr(mechanisms, kind.__name__) is kind
    for model in models.discover().values():
        assert getattr(models, model.__name__) is model
