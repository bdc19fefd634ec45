"""`privpost reproduce`: Snakemake with an estimate first, progress on one line, and a summary at the end."""

from __future__ import annotations

import argparse
import csv
import fcntl
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from privpost.pipeline import grid, project
from privpost.pipeline.plan import Plan

LOG = project.LOGS / "reproduce.log"
# A cell whose time no earlier run recorded counts as this long.
DEFAULT_SECONDS = 5.0
# What a job costs beside its work: starting Python, imports, Snakemake's own bookkeeping.
JOB_SECONDS = 1.5

_STEPS = re.compile(r"^(\d+) of (\d+) steps")
_ERROR = re.compile(r"^Error in rule (\S+):")


def main(argv: list[str]) -> int:
    """Rebuild all studies, or the named ones; returns Snakemake's exit status."""
    parser = argparse.ArgumentParser(prog="privpost reproduce", description="Rebuild studies from raw data to figures.")
    parser.add_argument("study", nargs="*", help="<paper>/<study>; all studies when none is named")
    parser.add_argument("--scale", default="paper", help="paper (default) or smoke")
    parser.add_argument("--root", help="where results go, when not the scale's own folder")
    parser.add_argument("--cores", type=int, default=2)
    options = parser.parse_args(argv)
    plan = Plan(options.scale, options.root, options.study or None)
    with _only_one():
        missing = _announce(plan, options.cores)
        before = _shipped_scorecard()
        start = time.perf_counter()
        status, failures = _snakemake(_arguments(options))
        seconds = time.perf_counter() - start
        _summarise(plan, status, failures, seconds)
        _tell_claims(plan, before)
        if not options.study:
            _tell_report(plan, status)
        whole = not options.study and missing == sum(map(len, plan.cells.values()))
        if whole and not status and plan.root == Path("results"):
            _record(plan, seconds, options.cores)
    return status


def _arguments(options: argparse.Namespace) -> list[str]:
    config = [f"scale={options.scale}"]
    config += [f"root={options.root}"] * (options.root is not None)
    config += [f"studies={','.join(options.study)}"] * bool(options.study)
    return ["--cores", str(options.cores), "--config", *config]


@contextmanager
def _only_one() -> Iterator[None]:
    """Hold the checkout's lock; a Snakemake lock found while we hold it was left by a killed run, and is removed.

    Raises SystemExit with a message when another rebuild is running.
    """
    path = project.STATE / "lock"
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise SystemExit("privpost: another rebuild is running in this checkout; wait for it, or stop it") from None
        locks = Path(".snakemake/locks")
        if locks.is_dir() and any(locks.iterdir()):
            print("A former run was killed and left its lock; the lock is removed, finished results are kept.")
            shutil.rmtree(locks)
        yield


def _announce(plan: Plan, cores: int) -> int:
    """Say what is to be done and how long it takes; returns the number of cells that are missing."""
    missing = [cell for cells in plan.cells.values() for cell in cells if not cell.path.exists()]
    total = sum(len(cells) for cells in plan.cells.values())
    known = {}
    for study in plan.studies.values():
        recorded = Path("results") / "timing" / f"{study.identifier}.csv"
        if study.config["scale"] == "paper" and recorded.is_file():
            with recorded.open() as handle:
                known.update({(study.name, row["cell"]): float(row["wall_seconds"]) for row in csv.DictReader(handle)})
    seconds = [known.get((cell.study, cell.slug), DEFAULT_SECONDS) + JOB_SECONDS for cell in missing]
    seconds += [JOB_SECONDS * 2] * len(plan.studies)
    disk = sum(file.bytes for dataset in plan.datasets.values() for file in dataset.files) * 5
    print(
        f"{len(plan.studies)} studies, {total} cells, {total - len(missing)} of them in the store already. "
        f"About {_minutes(sum(seconds) / cores)} on {cores} cores; "
        f"data and results take up to {disk / 1e6 + 50:.0f} MB."
    )
    return len(missing)


def _minutes(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 90 else f"{seconds / 60:.1f} min"


def _snakemake(arguments: list[str]) -> tuple[int, list[str]]:
    """Run Snakemake with its output in the log; progress and errors also here. Returns status and failed rules."""
    LOG.parent.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-m", "snakemake", *arguments]
    failures: list[str] = []
    show = False
    progress = _Progress()
    with (
        LOG.open("w") as log,
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, bufsize=1) as process,
    ):
        try:
            for line in process.stdout:
                log.write(line)
                if steps := _STEPS.match(line):
                    progress.update(int(steps[1]), int(steps[2]))
                if error := _ERROR.match(line):
                    failures.append(error[1])
                    progress.clear()
                # An error's block and the failed job's log reach the terminal; the rest stays in the log.
                if error or line.startswith(("Logfile ", "WorkflowError", "LockException", "MissingInput")):
                    show = True
                elif line.startswith("[") or steps:
                    show = False
                if show:
                    print(line, end="")
        except KeyboardInterrupt:
            # The terminal sent the interrupt to Snakemake too: let it stop its jobs.
            process.wait()
            progress.clear()
            print("Stopped. Finished cells are kept: the same command goes on from here.")
            return 130, failures
    progress.clear()
    return process.returncode, failures


class _Progress:
    """Jobs done of all, and the time left, on one line of a terminal or as sparse lines elsewhere."""

    def __init__(self):
        self._start = time.perf_counter()
        self._shown = 0.0
        self._terminal = sys.stdout.isatty()

    def update(self, done: int, total: int) -> None:
        elapsed = time.perf_counter() - self._start
        left = elapsed / done * (total - done)
        text = f"{done} of {total} jobs done, {_minutes(elapsed)} so far, about {_minutes(left)} left"
        if self._terminal:
            print(f"\r{text:<78}", end="", flush=True)
        elif elapsed - self._shown > 15 or done == total:
            self._shown = elapsed
            print(text, flush=True)

    def clear(self) -> None:
        if self._terminal:
            print(f"\r{'':<78}\r", end="", flush=True)


def _summarise(plan: Plan, status: int, failures: list[str], seconds: float) -> None:
    built, lacking = [], []
    for name, study in plan.studies.items():
        path = study.grid_path()
        current = path.is_file() and path.read_text() == grid.describe(study, plan.cells[name])
        cells = sum(cell.path.exists() for cell in plan.cells[name])
        drawn = all(path.exists() for path in study.figure_paths())
        if current and drawn and cells == len(plan.cells[name]):
            built.append(name)
        else:
            lacking.append(f"  {name}: {cells} of {len(plan.cells[name])} cells")
    print(f"Built in {_minutes(seconds)}: {', '.join(built) or 'nothing'}.")
    if lacking:
        print("Not built:", *lacking, sep="\n")
    if failures:
        print(f"Failed jobs: {', '.join(sorted(set(failures)))}.")
    if status:
        print(f"The whole log is in {LOG}.")
    else:
        root = next(iter(plan.studies.values())).config
        print(f"Tables are in {root['root']}/, figures in {root['figure_root']}/.")


def _shipped_scorecard():
    """Return the scorecard as it was before the run, or None."""
    from privpost.report import scorecard

    path = Path("results/scorecard.csv")
    return scorecard.read(path) if path.is_file() else None


def _tell_claims(plan: Plan, before) -> None:
    """Print how many claims hold, and those whose verdict is not the shipped one."""
    from privpost.report import scorecard

    after = scorecard.table(scorecard.score(plan.studies.values()))
    counts = ", ".join(f"{count} {verdict}" for verdict, count in scorecard.counts(after).items() if count)
    print(f"Claims: {counts or 'none scored'}.")
    if plan.scale != "paper":
        print(f"(Verdicts at scale {plan.scale} say that the code runs, not what the papers' experiments give.)")
    elif before is not None:
        changed = scorecard.changes(before, after)
        print("Verdicts are those of the shipped scorecard." if not changed else "Verdicts that changed:")
        for line in changed:
            print(f"  {line}")


def _tell_report(plan: Plan, status: int) -> None:
    """Print where the report is; after a failure it is written from what there is."""
    from privpost.report import build, page

    path = build.report_file(plan.root)
    if status:
        try:
            path = page.write(plan)
        except FileNotFoundError as error:
            print(f"No report: {error}")
            return
        print("The report is written from what there is:", end=" ")
    else:
        print("Report:", end=" ")
    print(path.resolve().as_uri())


def _record(plan: Plan, seconds: float, cores: int) -> None:
    """Keep how long the whole rebuild took, and bring the README that quotes it up to date."""
    from privpost.report import build, numbers, readme

    numbers.record_run(plan.root / "timing", "reproduce", seconds=round(seconds), cores=cores)
    build.write_scores(plan)
    readme.write(plan)
