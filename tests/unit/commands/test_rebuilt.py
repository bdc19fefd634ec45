"""Tables that are not what today's settings, code and files give: what says so, and what refuses them."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

import pytest
from dispatched import build, privpost

from privpost.commands import publish, reproduce
from privpost.lab import cells, grid, plan, provenance, published, tables
from privpost.lab.schema import SettingError
from privpost.report import documents, page, scorecard
from privpost.report.quotes import Quotes

BUILT = Path("build/paper")
TABLE = Path("results/toy/curve/curve.csv")
LEDGER = Path("results/toy/curve/ledger.json")
CLAIM = """
from privpost.lab.claims import check, claim


@claim("{}", "ours", "Toy.", "rows")
def has_rows(curve):
    yield {}
"""
CARD = "paper,study,id,verdict\ntoy,toy/curve,T1,{}\n"


@pytest.fixture
def rebuilt(toy, monkeypatch):
    """A built toy that was published as it is; Snakemake finds nothing to do."""
    build(toy)
    shutil.copytree("build/paper/results", "results")
    Path("results/scorecard.csv").write_text(CARD.format("holds"))
    published.write_sums()
    monkeypatch.setattr(reproduce, "_snakemake", lambda *given: 0)
    return toy


def other_code(monkeypatch) -> None:
    monkeypatch.setattr(provenance, "source_digest", lambda *modules: "other")


def alter(path: Path) -> None:
    path.write_text(path.read_text().replace("1", "7", 1))


@pytest.mark.parametrize("path", [TABLE, LEDGER])
def test_built_files_that_were_altered_are_told_and_not_published(rebuilt, capsys, path):
    assert tables.outdated(rebuilt.study()) == ""
    alter(BUILT / path)
    assert tables.outdated(rebuilt.study()) == "altered"
    before = path.read_bytes()
    assert privpost("publish", "toy/curve") == 1
    assert "toy/curve stays as it is: its built tables were altered (make reproduce)" in capsys.readouterr().out
    assert path.read_bytes() == before


def test_tables_that_other_code_made_are_made_again_though_snakemake_remembers_nothing(rebuilt, monkeypatch, capsys):
    other_code(monkeypatch)
    assert tables.outdated(rebuilt.study()) == "made by other code than today's"
    assert privpost("publish", "toy/curve") == 1
    assert privpost("reproduce") == 1
    assert "Not built:" in capsys.readouterr().out
    assert not (BUILT / TABLE).exists()
    assert privpost("build", "toy/curve") == 0
    assert tables.outdated(rebuilt.study()) == ""


def test_claims_name_what_fails_what_is_seen_and_those_over_several_studies(rebuilt, capsys):
    """The terminal counts the same claims as the scorecard, and a check on stand-in data beside the verdict."""
    folder = rebuilt.package
    (folder / "curve/claims.py").write_text(
        CLAIM.format("T1", 'check("long", False)\n    yield check("made up", True, stand_in=True)')
    )
    (folder / "claims.py").write_text(CLAIM.format("T2", 'check("short", True)'))
    sys.modules.pop("privpost.experiments.toy.curve.claims", None)
    assert privpost("claims", "toy", "--evidence") == 0
    said = capsys.readouterr().out
    assert "T1  does not hold, seen  Toy." in said and "T2  holds" in said
    assert "1 of 2 checks pass; fails: long\n" in said
    assert "scored by toy/curve: src/privpost/experiments/toy/curve/claims.py" in " ".join(said.split())
    assert said.endswith("2 claims: 1 holds, 1 does not hold; on stand-in data 1 seen\n")
    assert privpost("claims", "T1") == 0
    said = capsys.readouterr().out
    assert "scored by toy/curve" in said and said.endswith("1 claim: 1 does not hold; on stand-in data 1 seen\n")
    assert privpost("claims", "T99") == 2
    assert "there is no claim T99." in capsys.readouterr().err
    assert privpost("claims", "T1", "toy/curve") == 2
    assert "name claims or studies, not both" in capsys.readouterr().err


def test_a_second_rebuild_in_a_checkout_is_refused_also_without_snakemakes_locks(rebuilt, monkeypatch, capsys):
    seen = []

    def second(*given):
        seen.append(privpost("reproduce", "toy/curve"))
        return 0

    monkeypatch.setattr(reproduce, "_snakemake", second)
    privpost("reproduce", "toy/curve")
    assert seen == [2] and "Snakemake is running in this checkout" in capsys.readouterr().err
    seen.clear()
    privpost("reproduce", "toy/curve")
    assert seen == [2]


@pytest.mark.parametrize("command", ["build", "publish"])
def test_a_build_names_columns_without_a_meaning(rebuilt, monkeypatch, capsys, command):
    monkeypatch.setattr(publish, "_overall", lambda studies, drawn: None)
    assert privpost(command, "toy/curve") == 0
    assert "No meaning for curve.level: give it in TABLES of privpost/experiments/toy/curve" in capsys.readouterr().out


SWEPT = """
from privpost.lab.claims import check, claim, number


@claim("T1", "ours", "Toy.", "rows")
def levels(curve):
    yield check("levels are compared", curve.level.nunique() == 2)
    yield check("it is precise", (curve["sem"] < 0.25 * curve.level).all())


@claim("T2", "ours", "Toy.", "rows")
def row(curve):
    yield check("b has rows", len(curve.set_index("method").loc["b"]))


@claim("T3", "ours", "Toy.", "rows")
def empty(curve):
    rows = curve[curve.method == "b"]
    yield check("b is finite", (rows["mean"] < 9).all())
    yield from number("mean of b", rows["mean"].mean())
"""


def test_claims_of_a_sweep_are_scored_on_its_cells_beside_the_published_verdicts(rebuilt, capsys):
    """Cells along an axis are compared, other settings are points; claims without rows have no verdict."""
    (rebuilt.package / "curve/claims.py").write_text(SWEPT)
    sys.modules.pop("privpost.experiments.toy.curve.claims", None)
    assert privpost("-m", "study=toy/curve", "level=1,2", "trials=10,20") == 0
    command = capsys.readouterr().out.splitlines()[-1].removeprefix("To see which verdicts change: privpost ")
    assert privpost(*command.split()) == 0
    one, other = capsys.readouterr().out.split("toy/curve trials=20")
    head, verdict, *_ = one.splitlines()
    assert head == "toy/curve trials=10; without the published rows of method = b"
    assert verdict == "T1  holds → holds in part  Toy." and "1 of 2 checks pass; fails: it is precise" in one
    assert "1 claim: 1 holds in part; 1 turned\n" in one and "T1  holds  Toy." in other and "; 0 turned\n" in other
    lacking = "not scored, since they need rows that the sweep lacks: "
    assert f"{lacking}T2, T3\n" in one
    assert privpost(*command.split(), "--evidence") == 0
    said = capsys.readouterr().out
    assert "  T2: KeyError: 'b'\n" in said and "  T3: mean of b is not a number\n" in said
    # With one level of two the published tables do not give the published verdict either: nothing has turned it.
    assert privpost("study=toy/curve", "level=1", "trials=10") == 0
    assert privpost(*capsys.readouterr().out.splitlines()[-1].split(": privpost ")[1].split()) == 0
    assert f"{lacking}T1, T2, T3\n" in capsys.readouterr().out
    shutil.rmtree("build/paper/cells")
    assert privpost(*command.split()) == 2
    assert "is not in the store; run the sweep again." in capsys.readouterr().err


def test_claims_of_what_was_built_leave_out_what_was_not(rebuilt, capsys):
    """After building one study all its claims are of use, though no other study has tables."""
    (rebuilt.package / "curve/claims.py").write_text(CLAIM.format("T1", 'check("long", True)'))
    sys.modules.pop("privpost.experiments.toy.curve.claims", None)
    rebuilt.add("other", rebuilt.package.joinpath("curve/study.py").read_text())
    rebuilt.yaml.with_name("other.yaml").write_text(rebuilt.yaml.read_text().replace("toy/curve", "toy/other"))
    assert privpost("claims", "--built") == 0
    said = capsys.readouterr()
    assert said.out.startswith("T1  holds") and "left out, as their tables are missing: toy/other\n" in said.err
    assert privpost("claims", "toy/other", "--built") == 2
    assert "does not exist; make it with: privpost reproduce toy/other\n" in capsys.readouterr().err
    assert privpost("claims", "toy/other", "--built", "--scale", "smoke") == 2
    assert "make it with: privpost reproduce toy/other --scale smoke\n" in capsys.readouterr().err


def test_claims_of_built_tables_say_when_these_are_of_other_settings(rebuilt, capsys):
    assert privpost("claims", "toy/curve", "--built") == 0
    assert "built tables" not in capsys.readouterr().err
    rebuilt.edit("note: n", "note: m")
    assert privpost("claims", "toy/curve", "--built") == 0
    said = f"privpost: the built tables of toy/curve were {tables.OTHER_SETTINGS}; to renew them: make reproduce\n"
    assert capsys.readouterr().err == said
    assert privpost("draw", "toy/curve", "--built") == 0
    assert capsys.readouterr().err == said


READERS = (("claims", "toy/curve"), ("draw",), ("scorecard",), ("documents",), ("report",))


@pytest.mark.parametrize("words", READERS, ids=lambda words: words[0])
def test_published_tables_of_other_settings_are_told_by_all_that_reads_them(rebuilt, monkeypatch, capsys, words):
    for writer in ("documents.write", "page.write", "figures.draw"):
        monkeypatch.setattr(f"privpost.report.{writer}", lambda *given: [])
    monkeypatch.setattr("privpost.commands.steps._tell", lambda paths: 0)
    tables.gather_times(BUILT)
    shutil.copy("build/paper/results/times.csv", "results")
    assert privpost(*words) == 0
    assert capsys.readouterr().err == ""
    rebuilt.edit("note: n", "note: m")
    assert privpost(*words) == 0
    cure = "make reproduce, then make publish"
    said = f"privpost: the published tables of toy/curve were {tables.OTHER_SETTINGS}; to renew them: {cure}\n"
    assert capsys.readouterr().err == said
    lines = [line.rpartition(",")[0] for line in published.TIMES.read_text().splitlines()]
    published.TIMES.write_text("\n".join(lines) + "\n")
    assert privpost(*words) == 0
    assert capsys.readouterr().err == "", "an old file of times has no digests and tells nothing"


def test_published_tables_of_other_settings_are_marked_on_the_page_and_the_scorecard(rebuilt, monkeypatch):
    tables.gather_times(BUILT)
    shutil.copy("build/paper/results/times.csv", "results")
    rebuilt.edit("note: n", "note: m")
    study = grid.load_study("toy/curve")
    assert page._validity(study, [])[0] == "Its tables were made with other settings than today's: `make reproduce`."
    given = documents.Published({study.name: study}, Path("."))
    monkeypatch.setattr(scorecard, "read", lambda path: None)
    assert documents.names(given, Quotes(Path("results")), "")["outdated"]() == {"toy/curve": []}


def test_a_rebuild_with_other_settings_says_that_it_need_not_agree(rebuilt, capsys):
    tables.gather_times(BUILT)
    shutil.copy("build/paper/results/times.csv", "results")
    reproduce._compare([rebuilt.study()])
    assert "other settings" not in capsys.readouterr().out
    rebuilt.edit("note: n", "note: m")
    reproduce._compare([rebuilt.study()])
    assert "Published with other settings, so not expected to agree: toy/curve\n" in capsys.readouterr().out


def test_publishing_says_what_is_not_built_and_what_is_left_of_other_settings(rebuilt, monkeypatch, capsys):
    monkeypatch.setattr(publish, "_overall", lambda studies, drawn: None)
    tables.gather_times(BUILT)
    shutil.copy("build/paper/results/times.csv", "results")
    shutil.rmtree("build")
    rebuilt.edit("note: n", "note: m")
    assert privpost("publish") == 0
    said = capsys.readouterr()
    assert said.out == "0 studies published; left as they are, since not built (make reproduce): 1 of 1.\n"
    assert "the published tables of toy/curve were made with other settings" in said.err


def test_publishing_says_that_tables_are_published_where_documents_cannot_be_rendered(rebuilt, monkeypatch, capsys):
    def lacking(*given):
        raise SettingError("F1: no reason")

    monkeypatch.setattr("privpost.report.documents.write", lacking)
    monkeypatch.setattr("privpost.report.figures.draw", lambda *given: [])
    assert privpost("publish", "toy/curve") == 2
    said = capsys.readouterr().err
    assert "tables and figures are published, but the documents stay as they were" in said and "F1: no reason" in said


def test_publishing_writes_the_digests_of_the_cells(rebuilt, monkeypatch):
    monkeypatch.setattr(publish, "_overall", lambda studies, drawn: None)
    assert privpost("publish", "toy/curve") == 0
    digests = {row["digest"] for row in published.read_times()}
    assert digests == {cell.digest for cell in rebuilt.cells()}


@pytest.mark.parametrize("name", ["tables", "ledgers"])
def test_tables_are_of_other_code_when_what_writes_them_is_edited_and_cells_are_not(rebuilt, monkeypatch, name):
    edited = Path(f"lab/{name}.py")
    text_of = provenance.text_of
    study = rebuilt.study()
    before = plan.code_of(study)
    monkeypatch.setattr(provenance, "text_of", lambda path: text_of(path) + "\nEDITED = 1\n" * path.match(str(edited)))
    assert tables.outdated(study) == "made by other code than today's"
    assert plan.code_of(study) != before
    assert not cells.look(study, grid.expand(study)).behind


def test_claims_are_scored_again_when_what_scores_them_is_edited(rebuilt, monkeypatch):
    text_of, before = provenance.text_of, plan.overall_digest([rebuilt.study()])
    monkeypatch.setattr(provenance, "text_of", lambda path: text_of(path) + "\n#" * path.match("lab/claims.py"))
    assert plan.overall_digest([rebuilt.study()]) != before


@pytest.mark.parametrize("words", [("build", "toy/curve"), ("-m", "study=toy/curve")], ids=["build", "sweep"])
def test_tables_of_code_that_was_edited_meanwhile_are_of_other_code(rebuilt, monkeypatch, words):
    compute = cells.compute_ready

    def edited_then(*given, **how):
        failed = compute(*given, **how)
        other_code(monkeypatch)
        return failed

    monkeypatch.setattr(cells, "compute_ready", edited_then)
    assert privpost(*words) == 0
    assert tables.outdated(rebuilt.study()) == "made by other code than today's"


def test_a_store_that_cannot_be_emptied_stops_a_fresh_rebuild(rebuilt, capsys):
    folder = rebuilt.study().cells_folder
    folder.rename("elsewhere")
    folder.symlink_to(Path("elsewhere").resolve())
    assert privpost("reproduce", "--fresh") == 1
    assert "symbolic link" in capsys.readouterr().err


def test_no_verdict_is_told_where_nothing_was_compared(rebuilt, capsys):
    for path in (BUILT / TABLE, BUILT / LEDGER):
        path.unlink()
    assert privpost("reproduce") == 1
    said = capsys.readouterr().out
    assert "Nothing was built that could be compared" in said
    assert "0 tables" not in said
    assert "Verdicts" not in said


def test_a_claim_that_fails_is_named_in_one_line_with_its_place(rebuilt, capsys):
    file = rebuilt.package / "curve/claims.py"
    file.write_text(file.read_text().replace("len(curve) > 0", "curve.nothing > 0"))
    sys.modules.pop("privpost.experiments.toy.curve.claims", None)
    assert privpost("claims", "toy/curve") == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert said.startswith("privpost: toy/curve: the claim T1 cannot be scored: AttributeError: ")
    assert said.endswith(f"({file}:7)\n")


def test_publishing_one_study_does_not_sign_a_figure_of_another_that_was_altered(rebuilt, monkeypatch, capsys):
    other = Path("figures/other/one.svg")
    other.parent.mkdir(parents=True)
    other.write_text("<svg/>")
    published.write_sums()
    monkeypatch.setattr(publish, "_overall", lambda studies, drawn: published.write_sums())
    assert privpost("publish", "toy/curve") == 0
    other.write_text("<svg></svg>")
    assert privpost("publish", "toy/curve") == 2
    assert f"{other} does not have the sha256" in capsys.readouterr().err


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
    for path, number in ((LEDGER, 0.100001), (BUILT / LEDGER, 0.100002)):
        path.write_text(json.dumps({**content, "accounts": [{"epsilon": [number, 1.0]}]}))
    study = rebuilt.study()
    published.write_sums()
    assert reproduce.compare.beside(study) == []
    alter(BUILT / LEDGER)
    assert reproduce.compare.beside(study) == [str(LEDGER)]
    assert not reproduce._compare([study])
    assert f"Files that differ from the published ones: {LEDGER}" in capsys.readouterr().out


def test_a_document_that_todays_code_writes_otherwise_does_not_agree(rebuilt, capsys):
    code = "def documents(tables):\n    return {'curve.md': f'{len(tables[\"curve\"])} rows\\n'}\n"
    (rebuilt.package / "curve/documents.py").write_text(code)
    assert privpost("build", "toy/curve") == 0
    document = Path("results/toy/curve/curve.md")
    shutil.copy(BUILT / document, document)
    published.write_sums()
    assert privpost("reproduce") == 0
    document.write_text("other words\n")
    published.write_sums()
    capsys.readouterr()
    assert privpost("reproduce") == 1
    assert f"Files that differ from the published ones: {document}" in capsys.readouterr().out


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
    monkeypatch.setattr(publish, "_overall", lambda studies, drawn: published.write_sums())
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

    monkeypatch.setattr("privpost.report.scorecard.score", stop)
    assert privpost("publish", "toy/curve") == 130
    assert not Path("results/scorecard.csv").exists()


def test_what_no_study_names_any_more_is_removed_from_what_is_published(rebuilt, capsys):
    renamed = [TABLE.with_name("old.csv"), Path("results/toy/old/ledger.json"), Path("figures/toy/curve/old.svg")]
    renamed += [TABLE.parent / "parts/old.csv", Path("figures/toy/curve/parts/old.svg")]
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
    """Documents and the report quote build/paper/results/times.csv, which a first rebuild gathers only at its end."""
    build(toy)
    privpost("scorecard", "--built")
    rows = published.read_times(Path("build/paper/results/times.csv"))
    assert [row["study"] for row in rows] == ["toy/curve"] * 4
    assert list(rows[0]) == list(published.COLUMNS)
