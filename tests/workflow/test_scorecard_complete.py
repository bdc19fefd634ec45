"""The shipped scorecard scores every claim of the project's list, once all studies of a paper are present.

That it is what the shipped tables give, test_claims_turn.py tests.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from privpost.lab.claims import SEEN
from privpost.report import scorecard

ROOT = Path(__file__).resolve().parents[2]
# Claims of the four papers, and ours on them.
EXPECTED = {
    "foulds2016": [f"F{i}" for i in range(1, 18)],
    "zhang2016": [f"Z{i}" for i in range(1, 17)],
    "geumlek2017": [f"G{i}" for i in range(1, 15)],
    "bernstein2018": [f"B{i}" for i in range(1, 13)],
    "audit": [f"A{i}" for i in range(1, 7) if i != 3],
    "fair_axis": [f"X{i}" for i in range(1, 8) if i not in (2, 4)],
    "noise_aware": [f"N{i}" for i in range(1, 11)],
}


@pytest.fixture(scope="module")
def shipped():
    return scorecard.read(ROOT / "results/scorecard.csv")


@pytest.mark.parametrize("paper", EXPECTED)
def test_every_claim_is_scored(shipped, paper):
    rows = shipped[shipped.paper == paper]
    assert set(EXPECTED[paper]) - {id.split("-")[0] for id in rows.id} == set()


def test_every_claim_says_where_how_and_why(shipped):
    claims = shipped[shipped.id != ""]
    for column in ("place", "statement", "test", "evidence", "variant"):
        assert (claims[column] != "").all()
    assert (claims[~claims.verdict.isin(("holds", "seen"))].reason != "").all()


def test_every_failed_check_has_a_reason_or_is_said_to_have_none(shipped):
    testable = shipped[(shipped.verdict != "not testable") & (shipped.id != "")]
    told = (testable.why != "") | (testable.unexplained != "[]")
    assert testable[told != (testable.failed != "[]")].id.tolist() == []


def test_no_verdict_rests_on_data_that_stand_in_for_the_papers(shipped):
    stand_ins = shipped[shipped.stand_in == "yes"]
    assert set(SEEN) <= set(stand_ins.verdict) <= {*SEEN, "not testable"}
    assert (stand_ins.seen == stand_ins.verdict.where(stand_ins.verdict != "not testable", "")).all()
    # Beside a verdict on the paper's data, what others show is said apart.
    assert (shipped[shipped.stand_in == "in part"].seen != "").all()
    assert (shipped[shipped.stand_in == "no"].seen == "").all()


# Evidence without sampling error: closed forms, exact divergences, counted operations, bounds that carry their own
# confidence, and statistics whose repeats stand in the tables as extremes (diagnostics, margins).
WITHOUT_ERROR = {"F6", "F11", "F12", "Z4", "Z6", "Z7", "G1", "G2", "G3", "G4", "G5", "G9", "G11", "G12", "G21", "B9"}
WITHOUT_ERROR |= {
    "F14",
    "F22",
    "F28",
    "X8",
    "A1",
    "A2",
    "A4",
    "A5",
    "A6",
    "X5",
    "F15",
    "F17",
    "F18",
    "F19",
    "Z9",
    "Z10",
    "Z12",
    "Z13",
    "Z14",
    "Z15",
    "G13",
}
# Tests of uniformity, whose p-values and limits are the evidence; draws that are the same; exact sums.
WITHOUT_ERROR |= {"B1", "B8", "B10", "B13", "B15", "G10", "G16", "G17", "G18", "G19"}
# Closed forms and quadrature.
WITHOUT_ERROR |= {"G22", "G23", "G24", "G27", "Z16", "Z18"}


def test_simulated_evidence_says_how_uncertain_it_is(shipped):
    # Claims on noise-aware inference state their lead in standard errors instead.
    scored = shipped[(shipped.verdict != "not testable") & (shipped.id != "") & (shipped.paper != "noise_aware")]
    certain = ~scored.evidence.str.contains('standard error|"sem"|95 % limit', regex=True)
    assert {id.split("-")[0] for id in scored[certain].id} - WITHOUT_ERROR == set()
