"""The scorecard: one row per claim, from the tables alone."""

from __future__ import annotations

import importlib
import json
import shutil
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from privpost.lab import grid
from privpost.lab.claims import SEEN, VERDICTS, claim
from privpost.report import scorecard
from privpost.report.scorecard import Scored

TABLES = "results/geumlek2017/rdp_curves"


def test_one_row_per_claim_in_the_order_of_papers_and_numbers(claim):
    card = scorecard.table(
        [
            Scored("bernstein2018/calibration", [claim("B1")]),
            Scored("foulds2016/efficiency", [claim("F10"), claim("F4")]),
            Scored("zhang2016/bounds", [claim("Z6", "holds in part", stand_in=True)]),
        ]
    )
    assert list(card.id) == ["F4", "F10", "Z6", "B1"]
    assert list(card.columns) == list(scorecard.COLUMNS)
    assert card.set_index("id").loc["Z6", ["stand_in", "paper"]].tolist() == ["yes", "zhang2016"]


def test_a_chapter_is_what_the_letter_of_a_claim_says_and_ours_are_told_apart(claim):
    """N9 is scored by a study of Foulds et al.; studies that others add have a chapter of their own."""
    own, theirs = replace(claim("N9"), place="ours, beside section 5"), claim("F7")
    card = scorecard.table(
        [Scored("foulds2016/war_logs_likelihood", [own, theirs]), Scored("a2016/one", [claim("G1")])]
    )
    assert card.set_index("id").paper.to_dict() == {"F7": "foulds2016", "N9": "noise_aware", "G1": "a2016"}
    assert card.set_index("id").whose.to_dict() == {"F7": "paper", "N9": "ours", "G1": "paper"}
    assert scorecard.of_papers(card).id.tolist() == ["F7", "G1"]


def test_a_claim_of_two_studies_is_an_error_that_names_both(claim):
    for other in ("a2016/two", "a2016/one"):
        with pytest.raises(ValueError, match=f"G1 is scored by a2016/one and by {other}"):
            scorecard.table([Scored("a2016/one", [claim("G1")]), Scored(other, [claim("G1")])])


def test_a_study_without_tables_has_a_row_that_says_so(checkout, tmp_path):
    card = scorecard.table(scorecard.score([grid.load_study("geumlek2017/tradeoff", home=tmp_path)]))
    assert card.verdict.tolist() == ["not scored"]
    assert "tradeoff.csv does not exist" in card.reason[0]
    assert scorecard.counts(card) == dict.fromkeys((*VERDICTS, *SEEN), 0)


def test_verdicts_come_from_the_tables(checkout, tmp_path):
    """The same study scored from its published table and from one with its orders turned round."""
    study = grid.load_study("geumlek2017/rdp_curves", home=tmp_path)
    shutil.copytree(TABLES, study.results)
    table, verdicts = pd.read_csv(study.table_path("rdp_curves")), []
    for order in (table.order, 21 - table.order):
        table.assign(order=order).to_csv(study.table_path("rdp_curves"), index=False)
        card = scorecard.table(scorecard.score([study]))
        verdicts.append(dict(zip(card.id, card.verdict, strict=True))["G1"])
    assert verdicts[0] == "holds" != verdicts[1]


def test_the_file_gives_back_the_table(claim, tmp_path):
    scored = [Scored("a2016/one", [claim(evidence={"NA": 1.0, "text": "NA"})])]
    scorecard.write(scored, tmp_path / "scorecard.csv")
    read, made = scorecard.read(tmp_path / "scorecard.csv"), scorecard.table(scored)
    pd.testing.assert_frame_equal(read.astype(object), made, check_dtype=False)
    with pytest.raises(FileNotFoundError, match=r"none\.csv does not exist; make it with: make reproduce"):
        scorecard.read(tmp_path / "none.csv")


def test_evidence_is_json_with_six_digits(claim):
    evidence = {"a": np.float64(1 / 3), "b": np.int64(7), "c": float("inf"), "d": np.array([1.0]), "e": np.True_}
    card = scorecard.table([Scored("a2016/one", [claim(evidence=evidence | {"f": float("nan")})])])
    assert json.loads(card.evidence[0]) == {
        "a": 0.333333, "b": 7, "c": "inf", "d": [1.0], "e": True, "f": "not a number",
    }  # fmt: skip
    with pytest.raises(ValueError, match="set"):
        scorecard.table([Scored("a2016/one", [claim(evidence={"a": {1, 2}})])])


def test_evidence_is_shown_with_its_standard_errors():
    """An error belongs to the value before it; an error of zero, and one without a value, say nothing of it."""
    evidence = {
        "OPS minus Laplace": -0.0213577,
        "its standard error, OPS minus Laplace": 0.00123,
        "exact": 0.5,
        "its standard error": 0.0,
        "at n = 1": {"mean": 12.34, "sem": 1.6},
        "standard errors asked for": 2.8,
        "rows": [1, 0.25],
        "lead, smallest and largest": [-1.0, 0.25],
        "behind at (epsilon, delta)": [],
        "behind (order, log epsilon, by how much, standard error)": [[100, -5.0, 0.01511, 0.0013], [1, -4.0, 0.5, 0.1]],
        "lemma: rows, smallest margin": [80, 1.5],
        "by setting: theorem 4 (1)": [0.5, 1.0],
        "bound": "inf",
    }
    shown = [
        ("OPS minus Laplace", "−0.0214 ± 0.0012"),
        ("exact", "0.5"),
        ("at n = 1: mean", "12.3 ± 1.6"),
        ("standard errors asked for", "2.8"),
        ("rows", "1, 0.25"),
        ("lead, smallest and largest", "−1 to 0.25"),
        ("behind at", "none"),
        ("behind", "order 100, log epsilon −5: 0.0151 ± 0.0013; order 1, log epsilon −4: 0.50 ± 0.10"),
        ("lemma", "rows 80, smallest margin 1.5"),
        ("by setting: theorem 4 (1)", "0.5, 1"),
        ("bound", "inf"),
    ]
    assert scorecard.evidence_rows(evidence) == scorecard.evidence_rows(json.dumps(evidence)) == shown
    assert scorecard.evidence_rows("") == []


def test_changes_name_what_moved(claim):
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


def test_a_change_on_stand_in_data_is_named_beside_the_verdict(claim):
    before, after = (scorecard.table([Scored("a2016/one", [claim("G1", seen=seen)])]) for seen in ("seen", "not seen"))
    assert scorecard.changes(before, after) == ["G1: was holds, seen, now holds, not seen"]


def test_verdicts_of_studies_without_all_their_data_are_not_compared(claim):
    """Where a study was built from a part of its data sets, some of its claims have no rows, and others fewer."""
    before = scorecard.table([Scored("a2016/one", [claim("G1"), claim("G2")]), Scored("b2016/x", [claim("X1")])])
    after = scorecard.table([Scored("a2016/one", [claim("G1", "not testable")]), Scored("b2016/x", [claim("X1")])])
    assert len(scorecard.changes(before, after)) == 2
    assert scorecard.changes(before, after, {"a2016/one"}) == []


def test_a_claim_function_that_fails_is_named(checkout, monkeypatch):
    study = grid.load_study("geumlek2017/rdp_curves")
    module = importlib.import_module(f"{study.package}.claims")

    @claim("X1", "ours", "s", "t")
    def failing(none): ...

    failing.__module__ = module.__name__
    monkeypatch.setattr(module, "asymptotes", failing)
    with pytest.raises(
        ValueError, match=r"geumlek2017/rdp_curves: the claim X1 cannot be scored: KeyError: 'none' \(.*:\d+\)"
    ):
        scorecard.score([study])


def test_counts_of_verdicts_are_said_in_words():
    found = {"holds": 1, "holds in part": 3, "does not hold": 2, "not testable": 0}
    assert scorecard.in_words(found) == "1 holds, 3 hold in part, 2 do not hold"
    assert scorecard.in_words({}) == "none scored"
