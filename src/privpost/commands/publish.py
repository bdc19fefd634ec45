"""`privpost publish`: copies built files into results/, figures/ and the documents, and prints what changes."""

import sys
from argparse import Namespace
from pathlib import Path

from privpost.commands import drawing, run, steps
from privpost.lab import cells, compare, grid, published, store, tables
from privpost.lab.plan import table_files
from privpost.lab.project import PUBLISHED, built
from privpost.lab.schema import SettingError
from privpost.lab.study import Study
from privpost.progress import counted


def main(given: Namespace) -> int:
    """Publish the named studies, or all studies that are built completely, and return the exit status."""
    asked = grid.load_studies(given.study or None, home=built("paper"))
    ready, refused = [], {}
    for study in asked:
        absent = [path for path in table_files(study) if not Path(path).is_file()]
        reason = (
            f"{absent[0]} is not built" if absent else ", ".join(grid.left_out(study)) and "its data are incomplete"
        )
        if not reason and (outdated := tables.outdated(study)):
            reason = f"its built tables were {outdated} (make reproduce)"
        if reason:
            refused[study.name] = reason
        else:
            ready.append(study)
    unbuilt = [] if given.study else [name for name, reason in refused.items() if reason.endswith("is not built")]
    for name in [name for name in refused if name not in unbuilt]:
        print(f"{name} stays as it is: {refused[name]}")
    if given.study and not ready:
        return 1
    studies = grid.load_studies()
    # Without names all figures are drawn again, since the code that draws may have changed.
    drawn = ready if given.study else studies
    _check_others(ready, drawn)
    changed = {study.name: _take_over(study) for study in ready}
    for study in studies if any(changed.values()) else ():
        # The audit reads ledgers only.
        matters = {"ledger"} if study.text.get("reads") == "all" else {"ledger", "tables"}
        read = [name for name in grid.names_read(study) if matters & changed.get(name, set())]
        if read and study.name not in {other.name for other in ready}:
            print(f"{study.name} reads {', '.join(read)}, which changed: publish {study.name} again, too")
    print("scoring claims, drawing figures, rendering documents", file=sys.stderr, flush=True)
    _overall(studies, drawn)
    beside = f"; left as they are, since not built (make reproduce): {len(unbuilt)} of {len(asked)}" * bool(unbuilt)
    print(f"{counted(len(ready), 'study', 'studies')} published{beside}.")
    steps.tell_outdated(studies)
    return int(bool(given.study and refused))


def _check_others(ready: list[Study], drawn: list[Study]) -> None:
    """Raise SettingError if a published file that is not replaced was altered by hand."""
    replaced = {s.published.results / name for s in ready for name in _files_of(s)}
    replaced |= {s.published.figure_path(stem) for s in drawn for stem in s.figures}
    for path in published.covered():
        # The scorecard and the figures that cover all studies are always made again.
        if path not in replaced and path.parent not in (published.RESULTS, published.FIGURES):
            published.check(path)


def _take_over(study: Study) -> set[str]:
    """Publish a study's tables, ledger and times, and return which of ledger and tables change."""
    grid_cells = grid.expand(study)
    cells.tell_behind(study.name, cells.look(study, grid_cells), len(grid_cells))
    for comparison in (differing := [each for each in compare.compare(study) if each.state != "equal"]):
        print(f"{comparison.table}: {comparison.state}{': ' * bool(comparison.where)}{comparison.where}")
    run.tell_unexplained(study)
    for path in (beside := compare.beside(study)):
        print(f"{path} changes")
    home = study.published
    for source in sorted(study.results.glob("*")):
        if source.is_file() and source.name in _files_of(study):
            store.write_text(home.results / source.name, source.read_text(encoding="utf-8"))
    others = {*grid.study_names()} - {study.name}
    rows = [row for row in published.read_times() if row["study"] in others]
    rows += published.read_times(tables.times_path(study))
    store.write_text(published.TIMES, published.times_text(rows))
    changes = {"ledger": str(home.ledger_path) in beside, "tables": bool(differing)}
    return {part for part, changed in changes.items() if changed}


def _remove_unnamed(studies: list[Study]) -> None:
    """Remove published tables, ledgers and figures that no study names any more."""
    files = ((*map(s.table_path, s.tables), s.ledger_path, *map(s.figure_path, s.figures)) for s in studies)
    found = [path for name in ("*.csv", "ledger.json") for path in published.RESULTS.glob(f"*/*/**/{name}")]
    found += published.FIGURES.glob("*/*/**/*.svg")
    for path in sorted({*found}.difference(*files)):
        path.unlink()
        print(f"{path} is removed: no study names it")


def _files_of(study: Study) -> set[str]:
    documents = study.module("documents").documents(tables.read_tables(study)) if study.has("documents") else {}
    return {*(f"{name}.csv" for name in study.tables), study.ledger_path.name, *documents}


def _overall(studies: list[Study], drawn: list[Study]) -> None:
    """Score all claims, draw figures, render documents and write checksums."""
    from privpost.report import documents, figures, scorecard

    path = published.RESULTS / "scorecard.csv"
    before = scorecard.read(path) if path.is_file() and not published.altered(path) else None
    # The old scorecard is removed, so that an interrupted run does not leave it beside other tables and figures.
    path.unlink(missing_ok=True)
    _remove_unnamed(studies)
    published.write_sums()
    for study in (study.published for study in drawn):
        if all(study.table_path(table).is_file() for table in study.tables):
            drawing.draw(study, PUBLISHED)
    scorecard.write(scorecard.score(studies), path)
    figures.draw(PUBLISHED)
    published.write_sums()
    if before is not None:
        for line in scorecard.changes(before, scorecard.read(path), scored={*before.study}):
            print(f"verdict of {line}")
    try:
        documents.write(studies, PUBLISHED, PUBLISHED)
    except SettingError as error:
        text = "tables and figures are published, but the documents stay as they were; once mended, publish again"
        raise SettingError(f"{text}: {error}") from error
