"""Tables that are not what today's settings, code and files give: what says so, and what refuses them."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from dispatched import build, privpost

from privpost.commands import publish, reproduce
from privpost.lab import grid, provenance, published, tables

ROOT = Path(__file__).resolve().parents[3]
TABLE = Path("results/toy/curve.csv")
LEDGER = Path("results/toy/curve.ledger.json")
CARD = "paper,study,id,verdict\ntoy,toy/curve,T1,{}\n"


@pytest.fixture
def rebuilt(toy, monkeypatch):
    """A built toy that was published as it is; Snakemake finds nothing to do."""
    build(toy)
    shutil.copytree("build/results", "results")
    Path("results/scorecard.csv").write_text(CARD.format("holds"))
    published.write_sums()
    monkeypatch.setattr(reproduce, "_snakemake", lambda *given: 0)
    monkeypatch.setattr(reproduce, "PROFILES", ROOT / "profiles")
    return toy


def other_code(monkeypatch) -> None:
    monkeypatch.setattr(provenance, "source_digest", lambda *modules: "other")


def alter(path: Path) -> None:
    path.write_text(path.read_text().replace("1", "7", 1))


@pytest.mark.parametrize("path", [TABLE, LEDGER])
def test_built_files_that_were_altered_are_told_and_not_published(rebuilt, capsys, path):
    assert tables.outdated(rebuilt.study()) == ""
    alter("build" / path)
    assert tables.outdated(rebuilt.study()) == "altered"
    before = path.read_bytes()
    assert privpost("publish", "toy/curve") == 1
    assert "toy/curve stays as it is: its built tables are altered (make reproduce)" in capsys.readouterr().out
    assert path.read_bytes() == before


def test_tables_that_other_code_made_are_made_again_though_snakemake_remembers_nothing(rebuilt, monkeypatch, capsys):
    other_code(monkeypatch)
    assert tables.outdated(rebuilt.study()) == "of other code"
    assert privpost("publish", "toy/curve") == 1
    assert privpost("reproduce") == 1
    assert "Not built:" in capsys.readouterr().out
    assert not ("build" / TABLE).exists()
    assert privpost("build", "toy/curve") == 0
    assert tables.outdated(rebuilt.study()) == ""


def test_claims_of_built_tables_say_when_these_are_of_other_settings(rebuilt, capsys):
    assert privpost("claims", "toy/curve", "--built") == 0
    assert "built tables" not in capsys.readouterr().err
    rebuilt.edit("note: n", "note: m")
    assert privpost("claims", "toy/curve", "--built") == 0
    said = "privpost: toy/curve: its built tables are of other settings (make reproduce)\n"
    assert capsys.readouterr().err == said


def test_a_rebuild_says_on_the_terminal_which_cells_other_code_computed(rebuilt, monkeypatch, capsys):
    assert privpost("reproduce") == 0
    assert "other code" not in capsys.readouterr().err
    versions = {"python": "3.11.0", "numpy": "9", "scipy": "9"}
    monkeypatch.setattr(provenance, "versions", lambda: versions)
    assert privpost("reproduce") == 0
    assert "toy/curve: 4 of 4 cells were computed by other code (numpy" in capsys.readouterr().err


def test_another_verdict_does_not_agree(rebuilt, capsys):
    Path("results/scorecard.csv").write_text(CARD.format("does not hold"))
    published.write_sums()
    assert privpost("reproduce") == 1
    assert "T1: was does not hold, now holds" in capsys.readouterr().out
    Path("results/scorecard.csv").write_text(CARD.format("holds").replace("T1", ""))
    published.write_sums()
    assert privpost("reproduce") == 0
    assert "T1: new, holds" in capsys.readouterr().out


def test_a_claim_that_is_gone_does_not_agree(rebuilt, capsys):
    (rebuilt.package / "curve/claims.py").write_text("")
    assert privpost("reproduce") == 1
    assert "T1: was holds, is not scored any more" in capsys.readouterr().out


def test_another_ledger_does_not_agree_and_its_last_digit_does_not_matter(rebuilt, capsys):
    content = json.loads(LEDGER.read_text())
    content["accounts"] = [{"epsilon": [0.100001, 1.0]}]
    for path, number in ((LEDGER, 0.100001), ("build" / LEDGER, 0.100002)):
        path.write_text(json.dumps({**content, "accounts": [{"epsilon": [number, 1.0]}]}))
    study = rebuilt.study()
    published.write_sums()
    assert reproduce.compare.beside(study) == []
    alter("build" / LEDGER)
    assert reproduce.compare.beside(study) == [str(LEDGER)]
    assert not reproduce._compare(reproduce.Plan("paper", Path("build")))
    assert f"Not as published: {LEDGER}" in capsys.readouterr().out


def test_a_document_that_todays_code_writes_otherwise_does_not_agree(rebuilt, capsys):
    code = "def documents(tables):\n    return {'curve.md': f'{len(tables[\"curve\"])} rows\\n'}\n"
    (rebuilt.package / "curve/documents.py").write_text(code)
    assert privpost("build", "toy/curve") == 0
    document = Path("results/toy/curve.md")
    shutil.copy("build" / document, document)
    published.write_sums()
    assert privpost("reproduce") == 0
    document.write_text("other words\n")
    published.write_sums()
    capsys.readouterr()
    assert privpost("reproduce") == 1
    assert f"Not as published: {document}" in capsys.readouterr().out


def test_a_published_table_that_is_gone_does_not_agree(rebuilt, capsys):
    TABLE.unlink()
    assert privpost("reproduce") == 1
    assert f"{TABLE} is not there, but {published.SUMS} names it" in capsys.readouterr().out


@pytest.mark.parametrize("sums", ["there", "gone"])
def test_publishing_one_study_does_not_sign_what_was_altered_of_another(rebuilt, monkeypatch, capsys, sums):
    other = Path("results/other/table.csv")
    other.parent.mkdir()
    other.write_text("a\n1\n")
    published.write_sums()
    monkeypatch.setattr(publish, "_overall", lambda drawn: published.write_sums())
    assert privpost("publish", "toy/curve") == 0
    alter(TABLE)
    assert privpost("publish", "toy/curve") == 0
    alter(other)
    if sums == "gone":
        published.SUMS.unlink()
    capsys.readouterr()
    assert privpost("publish", "toy/curve") == 2
    assert f"{other} does not have the sha256" in capsys.readouterr().err


def test_publishing_that_is_interrupted_leaves_no_scorecard_of_other_tables(rebuilt, monkeypatch):
    def stop(*given):
        raise KeyboardInterrupt

    monkeypatch.setattr("privpost.report.build.score", stop)
    assert privpost("publish", "toy/curve") == 130
    assert not Path("results/scorecard.csv").exists()


def test_what_no_study_names_any_more_is_removed_from_what_is_published(rebuilt, capsys):
    renamed = [TABLE.with_name("old.csv"), TABLE.with_name("old.ledger.json"), Path("figures/toy/old.svg")]
    for path in renamed:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    publish._remove_unnamed(grid.load_studies())
    assert not any(path.exists() for path in renamed)
    assert TABLE.is_file() and LEDGER.is_file()
    assert f"{renamed[0]} is removed: no study names it" in capsys.readouterr().out


def test_a_study_file_that_is_no_yaml_is_named(rebuilt, capsys):
    rebuilt.edit("title: A toy", "title: [")
    for command in ("reproduce", "list"):
        assert privpost(command) == 2
        assert "privpost: conf/study/toy/curve.yaml cannot be read: " in capsys.readouterr().err


def test_status_names_three_files_of_many_that_were_altered(rebuilt, capsys):
    published.SUMS.unlink()
    for name in "abc":
        Path(f"results/toy/{name}.md").touch()
    capsys.readouterr()
    privpost("status")
    line = "6 published files altered by hand: results/scorecard.csv, results/toy/a.md, results/toy/b.md and 3 more"
    assert line in capsys.readouterr().out


def test_steps_of_a_first_build_have_its_times_to_quote(toy):
    """Documents and the report quote build/results/times.csv, which a first rebuild gathers only at its end."""
    build(toy)
    privpost("scorecard", "--built")
    rows = published.read_times(Path("build/results/times.csv"))
    assert [row["study"] for row in rows] == ["toy/curve"] * 4
    assert list(rows[0]) == list(published.COLUMNS)
