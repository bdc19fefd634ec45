"""`privpost reproduce`: Snakemake with an estimate first, progress in cells, and a comparison at the end."""

import argparse
import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

from privpost.commands import options
from privpost.datasets import catalogue
from privpost.lab import cells, compare, published, tables
from privpost.lab.grid import expand, without_missing
from privpost.lab.plan import Plan, datasets_of, figure_files, missing_of, table_files
from privpost.lab.project import LOGS, PUBLISHED, built
from privpost.lab.schema import SettingError
from privpost.lab.study import Cell, Study
from privpost.progress import Progress, counted, minutes

PROFILES = Path("profiles")
LOG = LOGS / "reproduce.log"
LOCKS = Path(".snakemake/locks")
# How often the store is looked at, in seconds.
PAUSE = 2.0
# How many lines of a failed run are shown.
SHOWN = 12


def main(argv: list[str]) -> int:
    """Rebuild all studies, or the named ones, and compare with what is published; returns the exit status."""
    text = "Rebuild studies from raw data into build/, then compare with what is published."
    parser = options.parser("reproduce", text, study="any")
    parser.add_argument("--cores", default="2", help="number of processes; default 2")
    parser.add_argument("--profile", default="default", help="how jobs run: a folder of profiles/, default or slurm")
    parser.add_argument("--strict", action="store_true", help="exit with 1 when data that users bring are missing")
    parser.add_argument("--fresh", action="store_true", help="delete the stored cells of these studies first")
    given = parser.parse_args(argv)
    given.cores = options.positive("--cores", given.cores)
    known = sorted(path.parent.name for path in PROFILES.glob("*/config.yaml"))
    if given.profile not in known:
        raise SettingError(f"--profile is {given.profile!r}, but must be one of {', '.join(known)}.")
    if LOCKS.is_dir() and any(LOCKS.iterdir()):
        raise SettingError(
            "Snakemake is running in this checkout, or was killed in it; wait for it or, if there is none: snakemake "
            "--unlock. Finished results are kept."
        )
    plan = Plan(given.scale, built(given.scale), given.study or None)
    if given.fresh:
        for study in plan.studies.values():
            shutil.rmtree(study.cells_folder, ignore_errors=True)
            _forget(study)
    for study in plan.possible:
        # Of other settings and code Snakemake makes them again by itself, unless its own records are gone.
        if tables.outdated(study):
            _forget(study)
    all_cells = [cell for study in plan.possible for cell in _told(without_missing(study))]
    _announce(plan, all_cells, given.cores)
    start = time.perf_counter()
    code = _snakemake(given, plan, all_cells)
    if code == 130:
        return code
    seconds = time.perf_counter() - start
    complete = _summarise(plan, code, seconds)
    same = _compare(plan) if given.scale == "paper" else True
    if given.fresh and complete and not given.study:
        computing = sum(float(row["wall_seconds"]) for row in published.read_times(plan.root / "times.csv"))
        record = {"seconds": round(seconds, 1), "cores": given.cores, "cell_seconds": round(computing, 1)}
        (plan.home / "rebuild.json").write_text(json.dumps(record))
    _tell_missing(plan)
    return int(bool(code) or not complete or not same or (given.strict and bool(plan.missing)))


def _forget(study: Study) -> None:
    """Remove a study's tables, and the marks of its shards, so that its jobs run."""
    for path in (*map(Path, table_files(study)), *study.cells_folder.glob(".shard_*")):
        path.unlink(missing_ok=True)


def _told(study: Study) -> list[Cell]:
    """Return a study's cells, after saying which of them other code than today's computed."""
    grid_cells = expand(study)
    cells.tell_behind(study.name, cells.look(study, grid_cells), len(grid_cells))
    return grid_cells


def _announce(plan: Plan, all_cells: list[Cell], cores: int) -> None:
    missing = [cell for cell in all_cells if not cell.path.exists()]
    seconds = sum(published.expected(missing, plan.scale).values())
    disk = sum(file.bytes for dataset in plan.datasets.values() for file in dataset.files) * 5
    number, there = len(plan.studies), len(all_cells) - len(missing)
    print(
        f"{counted(number, 'study', 'studies')}, {counted(len(all_cells), 'cell')}, {there} of them in the store "
        f"already. About {minutes(_wall(seconds, number, cores))} on {counted(cores, 'core')}; data and results take "
        f"up to {disk / 1e6 + 50:.0f} MB.",
        flush=True,
    )


def _wall(seconds: float, studies: int, cores: int) -> float:
    """Return how long a rebuild takes, from the seconds of its cells; each study adds three."""
    return (seconds + 3 * studies) / cores


def _snakemake(given: argparse.Namespace, plan: Plan, all_cells: list[Cell]) -> int:
    """Run Snakemake with its output in the log, and show how far the store is; returns its exit status."""
    LOG.parent.mkdir(parents=True, exist_ok=True)
    config = [f"scale={given.scale}"] + [f"studies={','.join(plan.studies)}"] * bool(given.study)
    cores = ["--cores", str(given.cores)] if given.profile == "default" else ["--local-cores", str(given.cores)]
    profile = ["--workflow-profile", str(PROFILES / given.profile)]
    command = [sys.executable, "-m", "snakemake", *profile, *cores, "--config", *config]
    missing = [cell for cell in all_cells if not cell.path.exists()]
    expected = published.expected(missing, plan.scale)
    total, done = sum(expected.values()), 0
    progress = Progress(sys.stdout, "cells", _wall(total, len(plan.studies), given.cores))
    # A group of its own: an interrupt reaches Snakemake and its jobs once, through us.
    with LOG.open("w", encoding="utf-8") as log, subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, start_new_session=True
    ) as process:  # fmt: skip
        try:
            while process.poll() is None:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(PAUSE)
                there = [cell for cell in missing if cell.path.exists()]
                # After the last cell only tables and figures are left: say so once.
                if there and (len(there) < len(missing) or done < len(there)):
                    done = len(there)
                    progress.update(len(there), len(missing), sum(expected[cell.digest] for cell in there) / total)
        except (KeyboardInterrupt, SystemExit) as error:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGINT)
            process.wait()
            progress.clear()
            print("Stopped. Finished cells are kept: the same command goes on from here.")
            if isinstance(error, SystemExit):
                raise
            return 130
    progress.clear()
    return process.returncode


def _summarise(plan: Plan, code: int, seconds: float) -> bool:
    """Print what was built, what was not and why; returns whether every study that can be built was."""
    lacking = {study: reason for study in plan.possible if (reason := _lacking(study))}
    whole = [study.name for study in plan.possible if study not in lacking]
    shown = ", ".join(whole) if len(whole) <= 8 else f"{len(whole)} studies"
    print(f"Built in {minutes(seconds)}: {shown or 'nothing'}. Everything is in {plan.home}/.")
    if lacking:
        print("Not built:", *(f"  {study.name}: {reason}" for study, reason in lacking.items()), sep="\n")
    if code:
        if not lacking:
            lines = [line for line in LOG.read_text(encoding="utf-8", errors="replace").splitlines() if line.strip()]
            print(*lines[-SHOWN:], sep="\n")
        print(f"The whole log is in {LOG}.")
    return not lacking


def _lacking(study: Study) -> str:
    """Return why a study was not built, in a line; empty where it was."""
    absent = [path for path in (*table_files(study), *figure_files(study)) if not Path(path).is_file()]
    if not absent:
        return ""
    folder = LOGS / study.scale / study.name
    for log in sorted(folder.glob("*.log"), key=lambda path: path.stat().st_mtime, reverse=True):
        lines = [line for line in log.read_text(encoding="utf-8", errors="replace").splitlines() if line.strip()]
        said = [line for line in lines if line.startswith(("privpost:", "error:"))] or lines[-1:]
        if said:
            return f"{said[-1].removeprefix('privpost: ')} ({log})"
    data = [LOGS / "data" / f"{step}_{name}.log" for name in datasets_of(study) for step in ("fetch", "prepare")]
    for log in data:
        said = [line for line in log.read_text().splitlines() if line.startswith("error:")] if log.is_file() else []
        if said:
            return f"{said[0].removeprefix('error: ')} ({log})"
    return f"{absent[0]} does not exist"


def _compare(plan: Plan) -> bool:
    """Compare what was built with what is published; returns whether all is within tolerance."""
    from privpost.report import scorecard

    comparisons, beside = [], []
    whole = [s for s in map(without_missing, plan.possible) if all(Path(path).is_file() for path in table_files(s))]
    for study in whole:
        comparisons += compare.compare(study)
        beside += compare.beside(study)
    tables.gather_times(plan.home)
    outside = [comparison for comparison in comparisons if comparison.state == "outside tolerance"]
    print(f"Against what is published: {compare.sentence(comparisons)}.")
    for comparison in outside:
        print(f"  {comparison.table}: {comparison.where}")
    if beside:
        print(f"Not as published: {', '.join(beside)}")
    before = scorecard.read(PUBLISHED / "results/scorecard.csv")
    after = scorecard.table(scorecard.score(plan.studies.values(), plan.root))
    partial = {study.name for study in plan.studies.values() if missing_of(study)}
    scored = {study.name for study in whole}
    changed = scorecard.changes(before, after[after.verdict != scorecard.NOT_SCORED], partial, scored)
    print("Verdicts: none changed." if not changed else f"Verdicts: {counted(len(changed), 'change')}.")
    for line in changed:
        print(f"  {line}")
    # What is new has nothing to agree with, be it a table or a claim.
    return not outside and not beside and all(": new, " in line for line in changed)


def _tell_missing(plan: Plan) -> None:
    """Print which data sets that users bring are not there, and which studies were built without them."""
    if not plan.missing:
        return
    print("Missing data sets, which each user has to obtain (see conf/dataset):")
    for name in plan.missing:
        dataset = catalogue.load(name)
        files = ", ".join(file.name for file in dataset.files)
        print(f"  {name}: {files} in data/raw/{name}/ or data/mirror/{dataset.mirror_folder}/; from {dataset.origin}")
    for study in plan.studies.values():
        if names := missing_of(study):
            print(
                f"  {study.name} was {'built' if study in plan.possible else 'not built'}, without {', '.join(names)}"
            )
    print("Rows on these data sets and verdicts of these studies are not compared, and nothing of them is published.")
