"""The record of a whole rebuild: kept when the results are complete, whatever becomes of the pages that quote it."""

from __future__ import annotations

import json

import pytest

from privpost.commands import rebuild
from privpost.lab import cells, runner, tables, times
from privpost.lab.plan import Plan
from privpost.report import build, documents, numbers, page, record

RECORD = "results/timing/run_reproduce.json"


def pages(monkeypatch, error=None):
    """Replace what draws and writes pages, the documents by one that raises an error."""

    def fail(plan):
        if error is not None:
            raise error

    for module, name in ((build, "draw"), (page, "write")):
        monkeypatch.setattr(module, name, lambda plan: [])
    monkeypatch.setattr(documents, "write", fail)


def rebuilt(toy, monkeypatch, count=4, code=0, failures=()) -> int:
    """Rebuild the toy with a Snakemake that computes some cells, and the tables when it has all."""

    def snakemake(arguments):
        for cell in toy.cells()[:count]:
            cells.compute(toy.study(), cell)
        if count == 4:
            tables.tabulate(toy.study())
        return code, list(failures)

    profile = toy.folder / "profiles/default/config.yaml"
    profile.parent.mkdir(parents=True, exist_ok=True)
    profile.touch()
    monkeypatch.setattr(runner, "snakemake", snakemake)
    return rebuild.main([])


def test_a_complete_rebuild_is_recorded(toy, monkeypatch):
    pages(monkeypatch)
    assert rebuilt(toy, monkeypatch) == 0
    assert json.loads((toy.folder / RECORD).read_text())["cores"] == 2
    # Nothing had to be computed, so this run's time says nothing.
    (toy.folder / RECORD).unlink()
    assert rebuilt(toy, monkeypatch) == 0
    assert not (toy.folder / RECORD).exists()


def test_a_failing_page_costs_no_record(toy, monkeypatch, capsys):
    pages(monkeypatch, ValueError("no number of that name"))
    assert rebuilt(toy, monkeypatch, code=1, failures=[rebuild.Failure("render_readme")]) == 1
    assert (toy.folder / RECORD).is_file()
    assert "The time of this run is kept, but not quoted everywhere yet: no number of" in capsys.readouterr().out


def test_a_rebuild_without_some_cells_is_not_recorded(toy, monkeypatch):
    pages(monkeypatch)
    assert rebuilt(toy, monkeypatch, count=3, code=1) == 1
    assert not (toy.folder / RECORD).exists()


def test_an_error_after_a_rebuild_that_went_well_is_not_hidden(toy, monkeypatch):
    pages(monkeypatch, ValueError("no number of that name"))
    with pytest.raises(ValueError, match="no number"):
        rebuilt(toy, monkeypatch)


def test_the_timeline_stays_that_of_the_recorded_rebuild(toy, monkeypatch):
    import pandas as pd

    pages(monkeypatch)
    monkeypatch.setenv(times.RECORD, "1")
    rebuilt(toy, monkeypatch)
    started = pd.read_csv(toy.study().timing_path())
    record.record(Plan(), "reproduce", started=float(started.started.min()) - 1, seconds=60, cores=2)
    before = pd.read_csv(toy.folder / "results" / build.TIMELINE)
    assert before.cell.tolist() == [cell.slug for cell in toy.cells()]
    # A cell that is computed again, long after: the picture of the rebuild is the same.
    started.loc[1, "started"] += 10_000
    started.to_csv(toy.study().timing_path(), index=False)
    assert len(numbers.timeline([toy.study()], toy.folder / "results/timing")) == 3
    build.write_scores(Plan())
    pd.testing.assert_frame_equal(pd.read_csv(toy.folder / "results" / build.TIMELINE), before)


def shipped(toy) -> dict[str, bytes]:
    """The files that a repository would hold."""
    return {
        str(path.relative_to(toy.folder)): path.read_bytes()
        for folder in ("results", "figures")
        for path in (toy.folder / folder).rglob("*")
        if path.is_file() and "cells" not in path.parts
    }


def test_times_of_this_machine_change_shipped_files_on_request_only(toy, monkeypatch):
    """A second rebuild from nothing: its times go to build/, and to results/ when they are to be recorded."""
    monkeypatch.setattr(documents, "write", lambda plan: [])
    monkeypatch.setattr(page, "write", lambda plan: toy.folder / "build/report.html")
    rebuilt(toy, monkeypatch)
    before = shipped(toy)
    names = {"results/timing/toy_curve.csv", RECORD, "results/timing/timeline.csv", "figures/measured/timeline.svg"}
    assert names <= set(before)
    for again in ("", "1"):
        monkeypatch.setenv(times.RECORD, again)
        for cell in toy.cells():
            cell.path.unlink()
        rebuilt(toy, monkeypatch)
        after = shipped(toy)
        here = (toy.folder / "build/timing/toy_curve.csv").read_bytes()
        assert (here == after["results/timing/toy_curve.csv"]) == bool(again)
        if again:
            # The toy's timeline may come out as it was, to a hundredth of a second.
            assert all(before[name] != after[name] for name in ("results/timing/toy_curve.csv", RECORD))
        else:
            assert after == before
    assert (toy.folder / "build/figures/measured/timeline.svg").is_file()
