"""Whole commands against those of an earlier commit (BASELINE), which is checked out too and run in turn."""

from __future__ import annotations

import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from bars import BASELINE, COMMANDS, Command, row, run_command

NAME = "baseline"
REPEATS = 3
STUDY = "geumlek2017/rdp_curves"
SWEEP = ("-m", f"study={STUDY}", "alpha=1,2", "beta=1,2,3", "order=2,3,4", "scale=smoke")
WORDS = {
    "privpost status": ("-m", "privpost", "status"),
    "snakemake -n": ("-m", "snakemake", "-n", "--quiet", "all"),
    "a cell by itself": ("-m", "privpost", f"study={STUDY}", "alpha=1", "beta=1", "order=2", "scale=smoke"),
    "a sweep of 18 cells": ("-m", "privpost", *SWEEP),
}
# Draws all figures from copies of the shipped tables, with the function of the commit itself.
FIGURES = "import pathlib, sys; sys.path[:0] = ['benchmarks', 'benchmarks/suite']; import rebuild; "
FIGURES += "getattr(rebuild, 'draw_figures', getattr(rebuild, '_figures', None))(pathlib.Path(sys.argv[1]))"


def run() -> list[dict]:
    """Return rows of CPU times over the baseline's; drawing has wall times, as another process forks its jobs."""
    with tempfile.TemporaryDirectory(prefix="privpost-baseline-") as scratch:
        folders = [Path(scratch) / name for name in (BASELINE, "present")]
        for folder, commit in zip(folders, (BASELINE, "HEAD"), strict=True):
            subprocess.run(["git", "clone", "--quiet", "--no-checkout", ".", str(folder)], check=True)
            subprocess.run(["git", "checkout", "--quiet", commit], cwd=folder, check=True)
            (folder / "data").symlink_to(Path("data").resolve())
        rows = [_against(folders, what) for what in WORDS]
        theirs, ours = _in_turn(folders, _draw)
        rows.append(_row("all figures from the shipped tables", ours, theirs, "s"))
        draw = ["-m", "privpost", "draw", STUDY]
        one = statistics.median(_run(folders[1], draw).wall_seconds for _ in range(REPEATS))
        what = "figures of one study"
        rows.append(row(what, "all figures", one / ours, at_most=0.05, ours=one, theirs=ours, unit="s"))
        empty, shown = (
            statistics.median(_run(folders[1], words).cpu_seconds for _ in range(REPEATS))
            for words in (["-c", "pass"], ["-m", "privpost", "--help"])
        )
        against = "python -c pass"
        rows.append(row("privpost --help", against, shown / empty, at_most=3, ours=shown, theirs=empty, unit="s"))
    return rows


def _against(folders: list[Path], what: str) -> dict:
    """Time a command in both folders, after a run that fills caches."""

    def seconds(folder: Path, repeat: int) -> float:
        # Cells are computed each time.
        shutil.rmtree(folder / "build/smoke/cells", ignore_errors=True)
        return _run(folder, WORDS[what]).cpu_seconds

    for folder in folders:
        seconds(folder, 0)
    theirs, ours = _in_turn(folders, seconds)
    return _row(what, ours, theirs, "s of CPU")


def _draw(folder: Path, repeat: int) -> float:
    """Return the seconds of drawing all figures into a new place."""
    place = folder.with_name(f"figures-{folder.name}-{repeat}")
    return _run(folder, ["-c", FIGURES, str(place)]).wall_seconds


def _in_turn(folders: list[Path], seconds: Callable[[Path, int], float]) -> list[float]:
    """Return the median of the measurements in each folder, made in alternating order."""
    times: dict[Path, list[float]] = {folder: [] for folder in folders}
    for repeat in range(REPEATS):
        for folder in folders if repeat % 2 else folders[::-1]:
            times[folder].append(seconds(folder, repeat))
    return [statistics.median(times[folder]) for folder in folders]


def _row(what: str, ours: float, theirs: float, unit: str) -> dict:
    against = f"commit {BASELINE}"
    return row(what, against, ours / theirs, at_most=COMMANDS[what], ours=ours, theirs=theirs, unit=unit)


def _run(folder: Path, words: Sequence[str]) -> Command:
    return run_command([sys.executable, *words], folder, PYTHONPATH=str(folder / "src"))
