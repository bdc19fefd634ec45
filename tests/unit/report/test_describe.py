"""What `describe` says about a study without running it: sources of settings, validity, neighbours, captions, times."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pandas as pd
import pytest

from privpost import discovery
from privpost.lab import grid
from privpost.lab.study import Study
from privpost.report import captions, describe, page

ROOT = Path(__file__).resolve().parents[3]
STUDIES = sorted(
    str(path.relative_to(ROOT / "conf/study").with_suffix("")) for path in ROOT.glob("conf/study/*/*.yaml")
)


@pytest.fixture(autouse=True)
def _in_checkout(checkout):
    pass


def test_settings_carry_their_sources(tmp_path):
    path = tmp_path / "x.yaml"
    path.write_text(
        textwrap.dedent(
            """\
            # @package _global_
            # privpost -m study=a/x
            title: T
            alpha: 6 # paper: eta0
            beta: 12
            # ours: a long
            # comment above
            bounds:
              - 1
              - 2
            gamma: 3
            epsilon: 1
            sweep:
              # reconstructed: from the axis
              - epsilon: [1, 2] # paper
                method: [a]
              - epsilon: [3] # beyond
              # ours
              - {epsilon: [4], method: [b]} # paper; method: author code
              # ours: all
              - epsilon: [5] # beyond
              - epsilon: [6]
            within:
              # paper: above it
              n: [1]
              order: {start: 1, stop: 2, num: 3} # author code: their script
            rev: 1
            """
        )
    )

    class Stub(Study):
        file = property(lambda self: str(path))

    assert [tuple(setting) for setting in describe.settings(Stub("a/x"))] == [
        ("setting", "alpha", "6", "paper", "eta0"),
        ("setting", "beta", "12", "", ""),
        ("setting", "bounds", "- 1 - 2", "ours", "a long comment above"),
        ("setting", "gamma", "3", "", ""),
        ("sweep 1", "epsilon", "[1, 2]", "paper", ""),
        ("sweep 1", "method", "[a]", "reconstructed", "from the axis"),
        ("sweep 2", "epsilon", "[3]", "reconstructed", "beyond"),
        ("sweep 3", "epsilon", "[4]", "paper", "method: author code"),
        ("sweep 3", "method", "[b]", "author code", "method: author code"),
        ("sweep 4", "epsilon", "[5]", "ours", "beyond"),
        ("sweep 5", "epsilon", "[6]", "ours", "all"),
        ("within", "n", "[1]", "paper", "above it"),
        ("within", "order", "{start: 1, stop: 2, num: 3}", "author code", "their script"),
    ]


@pytest.mark.parametrize("name", STUDIES)
def test_every_value_has_a_source(name):
    found = describe.settings(grid.load_study(name))
    lacking = [f"{setting.section} {setting.name}: {setting.value}" for setting in found if not setting.source]
    assert lacking == [], f"say in a comment where each comes from, one of {', '.join(describe.SOURCES)}"


@pytest.mark.parametrize("name", STUDIES)
def test_every_figure_says_what_it_shows(name):
    study = grid.load_study(name)
    shown = captions.of_study(study)
    assert set(shown) == set(study.figures)
    # Alternative text: a sentence on what it is, and one on how to read it.
    assert [stem for stem, caption in shown.items() if min(map(len, caption)) <= 20] == []


def test_a_caption_is_its_first_sentence_and_the_rest():
    text = "Error (Foulds et al. 2016,\n`figure 2`). Bands are 95 % intervals. Dotted: limits."
    caption = captions.split(text, "x")
    assert caption == ("Error (Foulds et al. 2016, `figure 2`).", "Bands are 95 % intervals. Dotted: limits.")
    assert "`" not in caption.alternative
    with pytest.raises(ValueError, match="a/b: the docstring of a figure's function is its caption"):
        captions.split(" ", "a/b")


def test_validity_notes_read_tables_and_imports():
    chains, exact = grid.load_study("geumlek2017/logistic"), grid.load_study("geumlek2017/tradeoff")
    table = pd.DataFrame(
        {"variant": ["paper", "corrected"], "uses_private_metadata": [True, False], "rhat_max": ["1.02", "none"]}
    )
    notes = " ".join(describe.validity_notes(chains, {"t": table}, []))
    assert "Markov chains" in notes and "Largest R-hat in the tables: 1.020" in notes
    assert "variant paper" in notes and "variant corrected" not in notes
    assert any("exact" in note for note in describe.validity_notes(exact, {"t": pd.DataFrame({"x": [1]})}, []))
    mixed = {"t": pd.DataFrame({"sampling": ["exact", "mcmc", "exact"]})}
    notes = " ".join(describe.validity_notes(exact, mixed, []))
    assert "exact" not in notes and "in 1 of 3 rows" in notes
    data = [{"title": "Made up", "kind": "stands in for the paper's data"}]
    assert "Made up stands in" in describe.validity_notes(exact, {}, data)[0]


def test_chains_and_neighbours_are_read_from_declarations(monkeypatch):
    assert describe._declares_exact("privpost.samplers.logistic_exact")
    assert not describe._declares_exact("privpost.samplers.noise_aware_gibbs")
    monkeypatch.setattr(describe, "_declares_exact", lambda module: True)
    assert not describe._runs_chains("privpost.experiments.bernstein2018.convergence.study")
    assert describe.neighbours() == "one record substituted, n public"
    (other,) = {kind.mechanism for kind in discovery.kinds() if kind.name == "ConcentratedPosterior"}
    monkeypatch.setattr(other, "neighbours", "add/remove")
    assert "one record added or removed (concentrated, diffused, direct)" in describe.neighbours()
    monkeypatch.setattr(other, "neighbours", "bounded")
    with pytest.raises(ValueError, match="neighbours is 'bounded'; known: substitution, add/remove"):
        describe.neighbours()


def test_run_times_are_summed_by_study(tmp_path):
    names = ["bernstein2018/calibration", "audit/audit", "zhang2016/bounds"]
    studies = [grid.load_study(name) for name in names]
    assert page.run_times(studies, tmp_path / "times.csv").empty
    rows = ["study,cell,wall_seconds,peak_mib", *(f"{name},{c},1.25,{c}00" for name in names[:2] for c in (1, 2))]
    (tmp_path / "times.csv").write_text("\n".join(rows))
    times = page.run_times(studies, tmp_path / "times.csv")
    assert times.study.tolist() == names[:2]
    assert times.iloc[0].tolist() == ["bernstein2018/calibration", 2, 2.5, 1.2, 200]
