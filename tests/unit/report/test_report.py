"""Scorecard, quoted numbers, templates and descriptions: what the report is made of."""

from __future__ import annotations

import importlib
import json
import re
import textwrap
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from typed_numbers import bare_numbers

from privpost import discovery
from privpost.evaluation.claims import VERDICTS, Claim
from privpost.lab import grid, ledgers, manifest, store
from privpost.lab.grid import Study
from privpost.lab.schema import Real, Schema
from privpost.mechanisms.posterior_sampling import PosteriorDraw
from privpost.models.beta_bernoulli import BetaBernoulli
from privpost.privacy.accounting import Cost
from privpost.privacy.ledger import Ledger
from privpost.report import describe, documents, numbers, page, scorecard, templates
from privpost.report.scorecard import Scored

ROOT = Path(__file__).resolve().parents[3]
STUDIES = sorted(
    str(path.relative_to(ROOT / "conf/study").with_suffix("")) for path in ROOT.glob("conf/study/*/*.yaml")
)


@pytest.fixture(autouse=True)
def _in_checkout(monkeypatch):
    monkeypatch.chdir(ROOT)


def claim(id="G1", verdict="holds", **fields):
    fields.setdefault("reason", "" if verdict == "holds" else "because")
    return Claim(id, "section 1", "It is so.", "a test", verdict, **fields)


# Scorecard


def test_one_row_per_claim_in_the_order_of_papers_and_numbers():
    card = scorecard.table(
        [
            Scored("bernstein2018/calibration", [claim("B1")]),
            Scored("foulds2016/efficiency", [claim("F10"), claim("F4")]),
            Scored("zhang2016/bounds", [claim("Z6", "holds in part", stand_in=True)]),
        ]
    )
    assert list(card.id) == ["F4", "F10", "Z6", "B1"]
    assert list(card.columns) == list(scorecard.COLUMNS)
    assert card.set_index("id").loc["Z6", ["verdict", "stand_in", "paper"]].tolist() == [
        "holds in part", "yes", "zhang2016",
    ]  # fmt: skip


def test_a_claim_of_two_studies_is_an_error_that_names_both():
    twice = [Scored("a2016/one", [claim("G1")]), Scored("a2016/two", [claim("G1")])]
    with pytest.raises(ValueError, match="G1 is scored by a2016/one and by a2016/two"):
        scorecard.table(twice)
    with pytest.raises(ValueError, match="G1 is scored by a2016/one and by a2016/one"):
        scorecard.table([Scored("a2016/one", [claim("G1"), claim("G1")])])


def test_a_study_without_tables_has_a_row_that_says_so(tmp_path):
    study = grid.load_study("geumlek2017/tradeoff", overrides=[f"root={tmp_path}"])
    card = scorecard.table(scorecard.score([study]))
    assert card.verdict.tolist() == ["not scored"]
    assert "limits.csv" in card.reason[0] or "tradeoff.csv" in card.reason[0]
    assert scorecard.counts(card) == dict.fromkeys(VERDICTS, 0)


def test_verdicts_come_from_the_tables(tmp_path):
    """The same study scored from its shipped table and from one with its methods exchanged."""
    source = ROOT / "results/geumlek2017/rdp_curves.csv"
    study = grid.load_study("geumlek2017/rdp_curves", overrides=[f"root={tmp_path}"])
    path = study.table_path("rdp_curves")
    table = pd.read_csv(source)
    verdicts = []
    for order in (table.order, 21 - table.order):
        text = table.assign(order=order).to_csv(index=False)
        store.write_texts({study.grid_path(): manifest.describe(study, [], {path: text}), path: text})
        verdicts.append(dict(scorecard.table(scorecard.score([study]))[["id", "verdict"]].to_numpy()))
    assert verdicts[0]["G1"] == "holds"
    assert verdicts[1]["G1"] != "holds"


def test_the_file_gives_back_the_table(tmp_path):
    scored = [Scored("a2016/one", [claim("G1", evidence={"NA": 1.0, "text": "NA"}, reason="")])]
    scorecard.write(scored, tmp_path / "scorecard.csv")
    pd.testing.assert_frame_equal(
        scorecard.read(tmp_path / "scorecard.csv").astype(object), scorecard.table(scored), check_dtype=False
    )
    with pytest.raises(FileNotFoundError, match="snakemake scorecard"):
        scorecard.read(tmp_path / "none.csv")


def test_evidence_is_json_with_six_digits():
    import numpy as np

    evidence = {"a": np.float64(1 / 3), "b": np.int64(7), "c": float("inf"), "d": np.array([1.0, 2.0]), "e": np.True_}
    card = scorecard.table([Scored("a2016/one", [claim(evidence=evidence | {"f": float("nan")})])])
    assert json.loads(card.evidence[0]) == {
        "a": 0.333333, "b": 7, "c": "inf", "d": [1.0, 2.0], "e": True, "f": "not a number",
    }  # fmt: skip
    with pytest.raises(ValueError, match="set"):
        scorecard.table([Scored("a2016/one", [claim(evidence={"a": {1, 2}})])])


def test_changes_name_what_moved():
    before = scorecard.table(
        [Scored("a2016/one", [claim("G1"), claim("G2"), claim("G3")]), Scored("b2016/x", [claim("X1")])]
    )
    after = scorecard.table([Scored("a2016/one", [claim("G1"), claim("G2", "does not hold"), claim("G4")])])
    assert scorecard.changes(before, after) == [
        "G2: was holds, now does not hold",
        "G3: was holds, is not scored any more",
        "G4: new, holds",
    ]
    assert scorecard.changes(after, after) == []


# Numbers and templates


def test_numbers_collect_verdicts_evidence_and_offers(tmp_path, monkeypatch):
    study = grid.load_study("geumlek2017/rdp_curves")
    monkeypatch.setattr(study.module(), "numbers", lambda tables: {"rows": len(tables["rdp_curves"])}, raising=False)
    card = scorecard.table([Scored(study.name, [claim("G1", evidence={"least": {"paper": 0.25}})])])
    found = numbers.of_results({study.name: study}, {study.name: grid.expand(study)}, card)
    assert found["claims"] == found["claims/holds"] == found["claims/geumlek2017/holds"] == 1
    assert found["G1/verdict"] == "holds"
    assert found["G1/least/paper"] == 0.25
    assert found["geumlek2017/rdp_curves/rows"] == len(pd.read_csv(study.table_path("rdp_curves")))
    assert found["cells"] == len(grid.expand(study))


# A study of a paper, one that stands with a paper but is ours, and one in a folder without a year.
STUDIES = {"bernstein2018/calibration": False, "bernstein2018/truncation": True, "audit/audit": True}


def test_times_are_read_from_the_records(tmp_path):
    study = grid.load_study("geumlek2017/tradeoff", overrides=[f"root={tmp_path}"])
    assert numbers.measured([study]).empty
    study.timing_path().parent.mkdir(parents=True)
    study.timing_path().write_text("cell,wall_seconds,peak_mib\na,1.5,100.0\nb,2.5,300.0\n")
    times = numbers.measured([study])
    assert times.iloc[0].tolist() == ["geumlek2017/tradeoff", False, 2, 4.0, 2.5, 300.0]
    numbers.record_run(tmp_path / "timing", "reproduce", seconds=90, cores=2)
    found = numbers.of_timing(times, tmp_path / "timing")
    assert found["time/cells"] == 4.0
    assert found["memory/peak"] == 300.0
    assert found["reproduce/seconds"] == 90
    assert (found["time/papers/cells"], found["time/beyond/studies"]) == (4.0, 0)


def test_the_timeline_shows_the_cells_of_the_recorded_rebuild(tmp_path):
    study = grid.load_study("geumlek2017/tradeoff", overrides=[f"root={tmp_path}"])
    folder = tmp_path / "timing"
    folder.mkdir()
    # `late` was computed after the rebuild, `old` before starts were recorded; `c` begins when `a` has ended.
    study.timing_path().write_text(
        "cell,wall_seconds,peak_mib,started\n"
        "b,30.0,1.0,1005.0\na,10.0,1.0,1001.0\nc,5.0,1.0,1011.5\nlate,1.0,1.0,2000.0\nold,1.0,1.0,\n"
    )
    assert numbers.timeline([study], folder).empty
    numbers.record_run(folder, "reproduce", started=1000.0, seconds=60, cores=2)
    found = numbers.timeline([study], folder)
    assert found.cell.tolist() == ["a", "b", "c"]
    assert found.core.tolist() == [0, 1, 0]
    assert found.start.tolist() == [1.0, 5.0, 11.5] and found.end.tolist() == [11.0, 35.0, 16.5]


def test_benchmarks_of_an_earlier_layout_are_no_error(tmp_path):
    from privpost.report.documents import performance

    path = tmp_path / "benchmarks.csv"
    path.write_text("what,against,ratio,bar,met,machine,note\nMMD,double sum,30,>= 20,True,m,n\n")
    assert performance.benchmarks(path) == (
        f"{path} is of an earlier layout, without ours, theirs, unit: `make bench` writes it anew."
    )


def test_a_study_beyond_the_papers_says_so():
    flags = {name: grid.load_study(name).beyond_papers for name in STUDIES}
    assert flags == STUDIES


def test_one_name_in_both_files_is_an_error(tmp_path):
    for file in numbers.FILES:
        numbers.write(tmp_path / file, {"time": 1})
    with pytest.raises(ValueError, match="time"):
        numbers.read(tmp_path)


@pytest.mark.parametrize(
    ("value", "form", "text"),
    [
        (0.123456, None, "0.1235"),
        (12, None, "12"),
        (0.123456, ".2f", "0.12"),
        (75.0, "duration", "75 s"),
        (150.0, "duration", "2 min"),
        (7200.0, "duration", "2.0 h"),
        (200.0, "memory", "200 MiB"),
        (2048.0, "memory", "2.0 GiB"),
        (0.5, "percent", "50 %"),
    ],
)
def test_formats(value, form, text):
    assert templates.formatted(value, form) == text


def test_a_placeholder_is_filled_once_and_must_be_known():
    text = "{{ a }} and {{a|.1f}}, {{ G4/KL, (paper) | .2f }}"
    values = {"a": 2.0, "G4/KL, (paper)": 0.25}
    assert templates.render(text, values) == "2 and 2.0, 0.25"
    # What is filled in is not looked at again.
    assert templates.render("{{ a }}", {"a": "{{ b }}"}) == "{{ b }}"
    with pytest.raises(ValueError, match=r"no number 'cels'\. Did you mean 'cells'"):
        templates.render("{{ cels }}", {"cells": 1})
    with pytest.raises(ValueError, match="G1/verdict"):
        templates.render("{{ G1/verdict | .2f }}", {"G1/verdict": "holds"})


@pytest.mark.parametrize(
    "text",
    ["took 12 s", "in 3.5 minutes", "falls by 20 %", "20% of", "a ratio of 0.31", "13 claims", "4 MB", "2,784 rows"]
    + [f"{number} {what}" for number in (3, 5000) for what in ("draws", "releases", "splits", "trials", "data sets")],
)
def test_bare_numbers_are_found(text):
    assert bare_numbers(text)


@pytest.mark.parametrize(
    "text",
    [
        "`sleep 3 s`",
        "{{ time/cells | duration }}",
        "Mironov 2012",
        "[x](fig3.5.png)",
        "```\n3.5 s\n```",
        "Beta(6, 12)",
        "two claims",
    ],
)
def test_other_numbers_are_left_alone(text):
    assert bare_numbers(text) == []


# What is known about a study


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
            within:
              order: {start: 1, stop: 2, num: 3} # author code: their script
            rev: 1
            """
        )
    )

    class Stub(Study):
        file = property(lambda self: str(path))

    sweep = [
        {"epsilon": [1, 2], "method": ["a"]},
        {"epsilon": [3]},
        {"epsilon": [4], "method": ["b"]},
        {"epsilon": [5]},
    ]
    config = {"within": {"order": []}, "sweep": sweep}
    found = describe.settings(Stub("a/x", config, Schema(alpha=Real())))
    assert [tuple(setting) for setting in found] == [
        ("setting", "alpha", "6", "paper", "eta0"),
        ("setting", "beta", "12", "", ""),
        ("setting", "bounds", "- 1 - 2", "ours", "a long comment above"),
        ("setting", "gamma", "3", "", ""),
        ("sweep 1", "epsilon", "[1, 2]", "paper", ""),
        ("sweep 1", "method", "[a]", "reconstructed", "from the axis"),
        ("sweep 2", "epsilon", "[3]", "", "beyond"),
        ("sweep 3", "epsilon", "[4]", "paper", "method: author code"),
        ("sweep 3", "method", "[b]", "author code", "method: author code"),
        ("sweep 4", "epsilon", "[5]", "ours", "beyond"),
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
    for stem in study.figures:
        caption = describe.figure_caption(study, stem)
        # Alternative text: a sentence on what it is, and one on how to read it.
        assert len(caption.title) > 20
        assert len(caption.text) > 20


def test_validity_notes_read_tables_and_imports():
    chains = grid.load_study("geumlek2017/logistic")
    table = pd.DataFrame(
        {
            "variant": ["paper", "corrected"],
            "uses_private_metadata": [True, False],
            "rhat_max": ["1.02", "not assessed"],
        }
    )
    notes = " ".join(describe.validity_notes(chains, {"t": table}, []))
    assert "Markov chains" in notes
    assert "Largest R-hat in the tables: 1.020" in notes
    assert "variant paper" in notes
    assert "variant corrected" not in notes
    exact = describe.validity_notes(grid.load_study("geumlek2017/tradeoff"), {"t": pd.DataFrame({"x": [1]})}, [])
    assert any("exact" in note for note in exact)
    mixed = {"t": pd.DataFrame({"sampling": ["exact", "mcmc", "exact"]})}
    notes = " ".join(describe.validity_notes(grid.load_study("geumlek2017/tradeoff"), mixed, []))
    assert "exact" not in notes and "in 1 of 3 rows" in notes
    data = [{"title": "Made up", "kind": "stands in for the paper's data"}]
    assert "Made up stands in" in describe.validity_notes(grid.load_study("geumlek2017/tradeoff"), {}, data)[0]


def test_chains_and_neighbours_are_read_from_declarations(monkeypatch):

    exact = {
        name: describe._declares_exact(f"privpost.{name}")
        for name in ("samplers.logistic_exact", "samplers.noise_aware_gibbs")
    }
    assert list(exact.values()) == [True, False]
    monkeypatch.setattr(describe, "_declares_exact", lambda module: True)
    assert not describe._runs_chains("privpost.experiments.bernstein2018.oracle.study")
    study = grid.load_study("geumlek2017/tradeoff")
    assert describe.neighbours(study) == "one record substituted, n public"
    other = next(
        kind.mechanism for kind in discovery.mechanisms()["concentrated"] if kind.name == "ConcentratedPosterior"
    )
    monkeypatch.setattr(other, "neighbours", "add/remove")
    assert "one record added or removed (concentrated, diffused, direct)" in describe.neighbours(study)
    assert "one record added or removed (concentrated, diffused, direct)" in describe.all_neighbours()
    monkeypatch.setattr(other, "neighbours", "bounded")
    with pytest.raises(ValueError, match="neighbours is 'bounded'; known: substitution, add/remove"):
        describe.neighbours(study)


# Ledger


def ledger_row(account, epsilon, budget, releases=1, order=None, data=None):
    notion = "pure" if order is None else "rdp"
    cost = {"notion": notion, "order": order, "delta": None}
    return {
        "account": account, "mechanism": None, "settings": None, **cost, "epsilon": epsilon, "releases": releases,
        "repeats": 1, "accounting": "stated", "data": data,
        "published": {**cost, "epsilon": 3 * releases * float(epsilon)},
        "spent": {**cost, "epsilon": releases * epsilon}, "budget": {**cost, "epsilon": budget},
    }  # fmt: skip


def test_the_ledger_is_gathered_by_kind_and_notion(tmp_path):
    study = grid.load_study("geumlek2017/tradeoff", overrides=[f"root={tmp_path}"])
    cells = [
        [ledger_row("ops/a", 0.5, 1.0), ledger_row("ops/b", 0.1, 2.0, releases=10, data="adult")],
        [ledger_row("ops/a", 0.25, 1.0), ledger_row("gaussian", "inf", "inf", order=2.0)],
    ]
    results = [SimpleNamespace(record={"ledger": rows, "digest": str(i)}) for i, rows in enumerate(cells)]
    assert ledgers.read(study) is None
    ledgers.path_of(study).parent.mkdir(parents=True)
    ledgers.path_of(study).write_text(ledgers.describe(study, results))
    gaussian, ops = ledgers.read(study)
    assert ops["accounts"] == 3
    assert ops["epsilon"] == [0.1, 0.5]
    assert ops["releases"] == [1, 10]
    assert ops["budget_epsilon"] == [1.0, 2.0]
    assert ops["largest_share_spent"] == 0.5
    assert (ops["data"], ops["published_epsilon"]) == (["adult"], [0.75, 3.0])
    assert gaussian["data"] == []
    assert gaussian["epsilon"] == ["inf", "inf"]
    assert (gaussian["notion"], gaussian["order"]) == ("rdp", 2.0)
    assert ledgers.read(study, "mechanisms") == []


def test_the_shipped_ledger_names_mechanisms_that_can_be_made_again(tmp_path):
    study = grid.load_study("geumlek2017/tradeoff", overrides=[f"root={tmp_path}"])
    ledger, used = (
        Ledger(),
        [PosteriorDraw(BetaBernoulli(6, 12), 8, 2.0, r / 7, weighting="diffused") for r in range(1, 6)],
    )
    for number, mechanism in enumerate(used):
        ledger.open(f"diffused/{number}", mechanism.cost(), mechanism)
        ledger.release(f"diffused/{number}", mechanism, np.array([3.0, 5.0]), np.random.default_rng(1))
    record = {"ledger": ledger.record(), "mechanisms": ledger.mechanisms(), "digest": "1"}
    ledgers.path_of(study).parent.mkdir(parents=True)
    ledgers.path_of(study).write_text(ledgers.describe(study, [SimpleNamespace(record=record)]))
    (row,) = ledgers.read(study, "mechanisms")
    assert [discovery.rebuild(each["mechanism"]) for each in ledgers.unfolded(row)] == used
    rows = ledgers.contents([study])[study.name]["mechanisms"]
    assert [discovery.rebuild(row["mechanism"]) for row in rows] == used[::2]
    assert all(discovery.rebuild(each["mechanism"]).cost().within(Cost(**each["budget"])) for each in rows[0]["alike"])


# Page


def test_a_figure_is_inline(tmp_path):
    caption = describe.Caption("A <title>.", "Bars are one standard error.")
    assert page.figure(tmp_path / "fig", caption)["source"] is None
    (tmp_path / "fig.png").write_bytes(b"png")
    assert page.figure(tmp_path / "fig", caption)["source"].startswith("data:image/png;base64,")
    (tmp_path / "fig.svg").write_text("<svg/>")
    assert page.figure(tmp_path / "fig", caption)["source"].startswith("data:image/svg+xml;base64,")


def test_the_page_escapes_what_tables_and_claims_say(tmp_path):
    """Markup in an id, a statement, a table's cell or its name reaches the page as text only."""
    mark = "</script><!--<script><b>&"
    study = grid.load_study("geumlek2017/rdp_curves", overrides=[f"root={tmp_path}"])
    path = study.table_path("rdp_curves")
    path.parent.mkdir(parents=True)
    path.write_text(f"{mark}\n{mark}\n")
    tables = page.Tables()
    tables.add(path)
    card = scorecard.table([Scored(study.name, [claim(f"G1{mark}", evidence={mark: mark}, verdict="not testable")])])
    card = card.assign(paper=mark, study=f"{mark}/claims")
    assert mark not in documents.verdict_table(card)
    values = {"severity": [], "failing": {}, "papers": [], "workflow": {"path": path, "rows": None}, "times": []}
    fixed = {"css": "", "js": "", "number": {"studies": 1, "papers": 1, "cells": 1}, "counts": {}, "data": []}
    empty = {name: {"path": path, "source": None} for name in ("scorecard", "run_times", "timeline", "workflow")}
    text = page.environment().get_template("report.html.in").render(
        **values, **fixed, claims=list(card.itertuples()), overview=empty, tables=tables.kept, neighbours=mark,
        versions={mark: mark}, moment=page._moment(),
    )  # fmt: skip
    assert mark not in text
    assert text.count("&lt;/script&gt;&lt;!--&lt;script&gt;&lt;b&gt;&amp;") >= 5
    assert json.loads(re.search(r'id="table-0">(.*?)</script>', text)[1])["columns"] == [mark]
    # A comment in a script would swallow its end, and with it the page's own scripts.
    assert "<!--" not in text


def test_a_claim_function_that_fails_is_named(monkeypatch):
    study = grid.load_study("geumlek2017/rdp_curves")
    module = importlib.import_module(study.claims_target)
    monkeypatch.setattr(module, "claims", lambda tables: tables["none"])
    with pytest.raises(ValueError, match=r"geumlek2017/rdp_curves: its claims cannot be scored.*KeyError: 'none'"):
        scorecard.score([study])


def test_counts_of_verdicts_are_said_in_words():
    found = {"holds": 1, "holds in part": 3, "does not hold": 2, "not testable": 0}
    assert scorecard.in_words(found) == "1 holds, 3 hold in part, 2 do not hold"
    assert scorecard.in_words({}) == "none scored"
