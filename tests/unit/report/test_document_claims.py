"""What documents say about claims, and what stops their build."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from privpost import discovery
from privpost.drawing import style
from privpost.lab.claims import check
from privpost.lab.claims import claim as declare
from privpost.lab.schema import SettingError
from privpost.report import documents, figures, scorecard
from privpost.report.documents import claims
from privpost.report.scorecard import Scored

REASONS = """\
## G1

See: docs/a.md#small

Checks: `ahead at *`

Noise has a variance of {{ number["variance"] | fixed(1) }}.
"""


@pytest.fixture
def card(claim, tmp_path, monkeypatch):
    """Return the scorecard of one claim with failed checks, whose paper's reasons are `REASONS`."""
    monkeypatch.setattr(claims.reasons.read, "__defaults__", (tmp_path,))
    (tmp_path / "a2016.md").write_text(REASONS)

    def make(*failed: str, id: str = "G1"):
        fields = {"checks": dict.fromkeys(failed, False) | {"finite": True}, "evidence": {"variance": 2.0}}
        return scorecard.table([Scored("a2016/one", [claim(id, "holds in part", **fields)])])

    return make


def problems(card, tmp_path, listed: str = "") -> list[str]:
    (tmp_path / "unexplained.md").write_text(listed)
    return claims.problems(card, tmp_path, tmp_path / "unexplained.md")


def test_every_failed_check_has_a_reason_or_is_listed(card, tmp_path):
    assert problems(card("ahead at n = 1"), tmp_path) == []
    unexplained = card("ahead at n = 1", "behind [at] n = 2")
    assert problems(unexplained, tmp_path) == ["G1: no reason says why 'behind [at] n = 2' fails"]
    assert problems(unexplained, tmp_path, "- G*: `behind [at] *`\n") == []


def test_a_paper_without_reasons_needs_none(card, tmp_path):
    """Its failed checks are named in place of reasons."""
    failed = card("behind at n = 2")
    assert problems(failed, tmp_path) != []
    (tmp_path / "a2016.md").unlink()
    assert problems(card("behind at n = 2"), tmp_path) == []
    assert claims.failing(failed).endswith("1 of 2 checks fail: behind at n = 2. because")


def test_what_explains_nothing_is_named(card, tmp_path):
    assert problems(card("ahead at n = 1"), tmp_path, "- G1: `behind *`\n")[0].endswith(
        "lists 'behind *', but no such check lacks a reason"
    )
    assert problems(card(), tmp_path) == ["G1: the reason for ahead at * explains no failed check"]
    idle = problems(card("ahead at n = 1", id="G2"), tmp_path)
    assert "G1: the reason for ahead at * explains no failed check" in idle


def test_a_claim_that_fails_has_a_heading_with_tally_and_reason(card):
    text = claims.failing(card("ahead at n = 1"))
    assert text.splitlines()[0] == "### G1: holds in part"
    assert text.endswith("1 of 2 checks fail: ahead at n = 1. Noise has a variance of 2.0. [Details](a.md#small).")
    assert documents.anchor("G1-a_b: holds in part (`x`)") == "g1-a_b-holds-in-part-x"


def test_claims_of_the_papers_are_counted_apart_and_part_is_not_whole(claim):
    """A claim that no data of the paper decide is no verdict, and a claim of ours says nothing of a paper."""
    theirs = [claim("G1"), claim("G2", "holds in part"), claim("G3", "seen", seen="seen"), claim("G4", "not testable")]
    ours = replace(claim("G5", "does not hold"), place="ours")
    words = claims.names(scorecard.table([Scored("geumlek2017/tradeoff", [*theirs, ours])]))
    seen = "; 1 more tried on stand-in data only, 1 seen there; 1 cannot be tested"
    assert words["tally"]("geumlek2017") == "1 of 2 hold, 1 in part" + seen
    assert words["tally_ours"]() == "0 of 1 hold, 1 not"
    assert words["tally"]("zhang2016") == "none testable"


def test_readme_and_strip_count_the_same_claims(checkout):
    """The strip's rows add up to its sum, and the sum is what the README says."""
    card = scorecard.read(Path("results/scorecard.csv"))
    with style.context():
        canvas = figures.strip(card)
        words = [text.get_text() for text in canvas.axes[0].texts]
        style.close(canvas)
    of = [re.fullmatch(r"(\d+) of (\d+) hold", text) for text in words]
    *papers, total, ours = [(int(match[1]), int(match[2])) for match in of if match]
    assert (sum(hold for hold, _ in papers), sum(all_ for _, all_ in papers)) == total
    said = claims.names(card)
    assert said["tally"]().startswith(f"{total[0]} of {total[1]} hold")
    assert said["tally_ours"]().startswith(f"{ours[0]} of {ours[1]} hold")


def test_a_claim_has_one_row_with_the_outcome_on_each_data_set():
    """Of checks that name a data set all, some or none pass; stand-ins have a dagger, whatever the verdict."""

    @declare("G1", "section 1", "It is so.", "a test")
    def several():
        yield check("a", True, of="abalone")
        yield check("b", False, of="adult")
        yield check("c", True, of="adult")
        yield check("d", False, True, "iraq_sigact")
        yield check("e", False, of="some_model")
        yield check("f", True)

    card = scorecard.table([Scored("geumlek2017/tradeoff", [several.claims[0].score({})])])
    assert claims.by(next(card.itertuples())) == "Abalone ●, Adult ◐, Iraq SIGACT (stand-in) ✖†, some model ✖"


def test_what_a_claim_says_of_several_data_sets_is_printed_once(card, claim):
    """The second time it names the first."""
    both = [claim(id, "does not hold", checks={"ahead": False}, evidence={}) for id in ("G7-one", "G7-two")]
    table = scorecard.table([Scored("a2016/one", both)]).assign(statement=["One: it holds.", "Two: it holds."])
    text = claims.failing(table)
    assert text.count("it holds.") == 1
    assert "Two: as G7-one." in text


def test_statements_are_escaped(claim):
    card = scorecard.table([Scored("a/b", [claim(seen="seen")])]).assign(statement="P(x|y) <b>")
    assert claims.statement(next(card.itertuples())) == "P(x\\|y) &lt;b&gt; †"


def test_a_document_that_asks_in_vain_is_named(tmp_path, monkeypatch, claim):
    monkeypatch.setattr(documents, "TEMPLATES", tmp_path)
    (tmp_path / "page.md.in").write_text('{{ verdict("G2") }}')
    scorecard.write([Scored("a/b", [claim()])], tmp_path / "results/scorecard.csv")
    published = documents.Published({}, tmp_path)
    # A SettingError is told on the terminal in a line.
    with pytest.raises(SettingError, match=r"page.md.in: there is no number 'G2/verdict'"):
        documents.text(published, "page", documents.Quotes(tmp_path / "results"))


def test_the_library_page_says_truly_who_knows_a_posterior():
    """Each mechanism without compiled chains is asked for draws."""
    import numpy as np

    from privpost.report.documents import library

    rng, asked = np.random.default_rng(1), 0
    for kind in discovery.kinds():
        example = kind.examples[0]
        if example.releases == "sample" or type(example.model).__name__ in ("EventCounts", "RedactedSum"):
            continue
        statistics = example.model.sufficient_statistics(np.repeat(example.model.records[:1], example.n, axis=0))
        try:
            known = "yes" if len(example.posterior(example.perturb(statistics, rng), 2, rng)) == 2 else "no"
        except ValueError:
            known = "no"
        asked += 1
        assert library._posterior(example) == known, kind.name
    assert asked >= 3
