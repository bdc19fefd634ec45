"""`privpost reproduce`: runs Snakemake with an estimated time, progress in cells, and a comparison at the end."""

import contextlib
import fcntl
import json
import os
import signal
import subprocess
import sys
import time
from argparse import Namespace
from pathlib import Path

from privpost.commands import run
from privpost.commands.cli import positive
from privpost.lab import cells, compare, forecast, grid, plan, published, tables
from privpost.lab.plan import figure_files, table_files
from privpost.lab.project import LOGS, PUBLISHED, built, remove
from privpost.lab.schema import SettingError
from privpost.lab.study import Study
from privpost.progress import counted, minutes

LOG = LOGS / "reproduce.log"
LOCKS = Path(".snakemake/locks")
LOCK = Path("build/reproduce.lock")
# The largest number of lines of a failed run's log that are shown.
SHOWN = 12


def main(given: Namespace) -> int:
    """Rebuild all studies or the named ones, compare them with the published files, and return the exit status."""
    given.cores = positive("--cores", given.cores)
    # Snakemake's own locks are not enough: when a second Snakemake ends, it removes the locks of the first one.
    LOCK.parent.mkdir(exist_ok=True)
    with LOCK.open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            busy = LOCKS.is_dir() and any(LOCKS.iterdir())
        except BlockingIOError:
            busy = True
        if busy:
            raise SettingError(
                "Snakemake is running in this checkout, or was killed in it: wait until it ends, or, if none runs, "
                "say .venv/bin/snakemake --unlock. Finished results are kept."
            )
        return _rebuild(given)


def _rebuild(given: Namespace) -> int:
    """Rebuild and compare studies while `main` holds the lock, and return the exit status."""
    studies = grid.load_studies(given.study or None, given.scale, built(given.scale))
    plan.bring(*studies)
    possible = plan.possible(studies)
    if given.fresh:
        for study in studies:
            remove(study.cells_folder)
            _forget(study)
    for study in possible:
        for name in study.datasets:
            # A syntax error of a loader is told here rather than in Snakemake's log.
            plan.dataset_digest(name)
        # If settings or code changed, Snakemake itself makes tables again, unless its own records are gone. It does not
        # see that a file within a folder is missing.
        lacking = study.results.exists() and any(not Path(path).is_file() for path in table_files(study))
        if lacking or tables.outdated(study):
            _forget(study)
        if any(not Path(path).is_file() for path in figure_files(study)):
            remove(study.drawings)
    watch = _announce(possible, given)
    start = time.perf_counter()
    code = _snakemake(given, studies, watch)
    if code == 130:
        return code
    seconds = time.perf_counter() - start
    home = built(given.scale)
    complete = _summarise(possible, home, code, seconds)
    same = _compare(studies, all_scored=not code and not given.study) if given.scale == "paper" else True
    if given.fresh and complete and not given.study:
        computing = sum(float(row["wall_seconds"]) for row in published.read_times(home / "results/times.csv"))
        record = {"seconds": round(seconds, 1), "cores": given.cores, "cell_seconds": round(computing, 1)}
        (home / "rebuild.json").write_text(json.dumps(record))
    _tell_missing(studies)
    return int(bool(code) or not complete or not same)


def _forget(study: Study) -> None:
    """Remove a study's tables and the marker files of its parts, so that Snakemake runs the study's jobs again."""
    for folder in (study.results, plan.parts_folder(study)):
        remove(folder)


def _announce(studies: list[Study], given: Namespace) -> forecast.Watch:
    """Print the number of cells and the expected time, and return the watch that shows the progress."""
    jobs, late, cells_known = [], [], 0
    for study in studies:
        grid_cells = grid.expand(study)
        cells.tell_behind(study.name, cells.look(study, grid_cells), len(grid_cells))
        cells_known += len(grid_cells)
        parts = [grid.shard_of(grid_cells, part + 1, study.shards) for part in range(study.shards)]
        # Studies that read ledgers wait for the others.
        late += range(len(jobs), len(jobs) + len(parts)) if study.text.get("reads") else []
        jobs += [[cell for cell in part if not cell.path.exists()] for part in parts]
    waiting = sum(map(len, jobs))
    watch = forecast.Watch(jobs, sys.stdout, given.cores, given.scale, late)
    print(
        f"{counted(len(studies), 'study', 'studies')}, {counted(cells_known, 'cell')}, {cells_known - waiting} of "
        f"them in the store already. About {minutes(watch.left())} on {counted(given.cores, 'core')}.",
        flush=True,
    )
    return watch


def _snakemake(given: Namespace, studies: list[Study], watch: forecast.Watch) -> int:
    """Run Snakemake with its output in the log, show the progress, and return the exit status."""
    LOG.parent.mkdir(parents=True, exist_ok=True)
    config = [f"scale={given.scale}"]
    config += [f"studies={','.join(study.name for study in studies)}"] * bool(given.study)
    command = [sys.executable, "-m", "snakemake", "--cores", str(given.cores), "--config", *config]
    # Snakemake gets a new process group, so that an interrupt reaches Snakemake and its jobs only once, through us.
    with LOG.open("w", encoding="utf-8") as log, subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, start_new_session=True
    ) as process:  # fmt: skip
        try:
            while process.poll() is None:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(forecast.PAUSE)
                watch.look()
        except (KeyboardInterrupt, SystemExit) as error:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGINT)
            process.wait()
            watch.progress.clear()
            print("Stopped. Finished cells are kept: the same command goes on from here.")
            if isinstance(error, SystemExit):
                raise
            return 130
    watch.progress.clear()
    return process.returncode


def _summarise(possible: list[Study], home: Path, code: int, seconds: float) -> bool:
    """Print which studies were built and why others were not, and return whether all were built."""
    lacking = {study.name: reason for study in possible if (reason := _lacking(study))}
    whole = [study.name for study in possible if study.name not in lacking]
    shown = ", ".join(whole) if len(whole) <= 8 else f"{len(whole)} studies"
    print(f"Built in {minutes(seconds)}: {shown or 'nothing'}. Everything is in {home}/.")
    for study in possible:
        if study.name in whole:
            run.tell_unexplained(study)
    if lacking:
        print("Not built:", *(f"  {name}: {reason}" for name, reason in lacking.items()), sep="\n")
    if code:
        if not lacking:
            print(*_lines(LOG)[-SHOWN:], sep="\n")
        print(f"The whole log is in {LOG}.")
    return not lacking


def _lacking(study: Study) -> str:
    """Return, in one line, why a study was not built, or "" if it was built."""
    absent = [path for path in (*table_files(study), *figure_files(study)) if not Path(path).is_file()]
    if not absent:
        return ""
    own = (LOGS / study.scale / study.name).glob("*.log")
    data = [LOGS / "data" / f"{step}_{name}.log" for name in study.datasets for step in ("fetch", "prepare")]
    for log in [*sorted(own, key=lambda path: path.stat().st_mtime, reverse=True), *data]:
        lines = _lines(log)
        said = [line for line in lines if line.startswith(("privpost:", "error:"))]
        if said or (lines and log not in data):
            return f"{(said or lines)[-1].removeprefix('privpost: ').removeprefix('error: ')} ({log})"
    return f"{absent[0]} does not exist"


def _lines(log: Path) -> list[str]:
    text = log.read_text(encoding="utf-8", errors="replace") if log.is_file() else ""
    return [line for line in text.splitlines() if line.strip()]


def _compare(studies: list[Study], *, all_scored: bool = False) -> bool:
    """Compare built studies with the published files, and return whether all differences are within tolerance."""
    from privpost.report import scorecard

    comparisons, beside = [], []
    there = [study for study in studies if all(Path(path).is_file() for path in table_files(study))]
    whole = plan.possible(there)
    for study in whole:
        comparisons += compare.compare(study)
        beside += compare.beside(study)
    if not comparisons:
        print("Nothing was built that could be compared with what is published.")
        return True
    tables.gather_times(studies[0].home)
    outside = [each for each in comparisons if each.state in ("outside tolerance", "with other columns")]
    print(f"Compared with what is published: {compare.sentence(comparisons)}.")
    for comparison in outside:
        print(f"  {comparison.table}: {comparison.where}")
    if others := [study.name for study in whole if tables.outdated(study.published)]:
        print(f"Published with other settings, so not expected to agree: {', '.join(others)}")
    if beside:
        print(f"Files that differ from the published ones: {', '.join(beside)}")
    before = scorecard.read(PUBLISHED / "results/scorecard.csv")
    card = studies[0].home / "results/scorecard.csv"
    after = scorecard.read(card) if all_scored and card.is_file() else scorecard.table(scorecard.score(studies))
    partial = {study.name for study in studies if grid.left_out(study)}
    scored = {study.name for study in whole}
    changed = scorecard.changes(before, after[after.verdict != scorecard.NOT_SCORED], partial, scored)
    print("Verdicts: none changed." if not changed else f"Verdicts: {counted(len(changed), 'change')}.")
    for line in changed:
        print(f"  {line}")
    # A new table or claim counts as a difference, since nothing is published with which it could agree.
    return not outside and not beside and all(": new, " in line for line in changed)


def _tell_missing(studies: list[Study]) -> None:
    """Print which data sets are missing, and which studies were built without them."""
    if not (lines := plan.lacking(*studies)):
        return
    print("Missing data sets:")
    for line in lines:
        print(f"  {line}")
    for study in studies:
        if not plan.possible([study]):
            print(f"  {study.name} has no cells left, and was not built")
    print("Rows on these data sets and verdicts of these studies are neither compared nor published.")
