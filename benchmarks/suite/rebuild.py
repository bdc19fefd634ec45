"""Overhead and memory of the whole rebuild, and the time of a rebuild with nothing to do."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from timing import row, run_command

from privpost.lab import grid
from privpost.report import page

NAME = "rebuild"
CORES = 2
# Two studies of a few cells each, which the benchmark rebuilds twice at smoke scale.
QUICK = "geumlek2017/rdp_curves,geumlek2017/dirichlet"


def run() -> list[dict]:
    """Return rows on the recorded rebuild, and a row on a rebuild with nothing to do."""
    rows = _recorded()
    return [*rows, _nothing_to_do()]


def _recorded() -> list[dict]:
    """Return rows from the last complete rebuild at paper scale, and from the published times of cells."""
    times = page.run_times(grid.load_studies(), Path("results/times.csv")).set_index("study")
    path = Path("build/paper/rebuild.json")
    if not path.is_file():
        print(f"skipped: the overhead of a rebuild ({path} does not exist; make reproduce FRESH=1 writes it)")
        return []
    record = json.loads(path.read_text())
    computing = record["cell_seconds"]
    overhead = record["seconds"] * record["cores"] / computing
    rows = [
        row(
            "whole rebuild at paper scale",
            "wall time of its cells / cores",
            overhead,
            ours=record["seconds"] / 60,
            theirs=computing / record["cores"] / 60,
            unit="min",
            note=f"{record['cores']} cores, as recorded by the last complete make reproduce",
        )
    ]

    peak = float(times.peak_mib.max())
    rows.append(
        row(
            "largest peak memory of a cell", "1 GiB", peak / 1024, ours=peak, theirs=1024, unit="MiB",
            note=f"in {times.peak_mib.idxmax()}",
        )
    )  # fmt: skip
    return rows


def _nothing_to_do() -> dict:
    """Return a row on the time of a second rebuild of two studies, relative to the first rebuild."""
    words = [sys.executable, "-m", "snakemake", "--cores", str(CORES), "--config", "scale=smoke", f"studies={QUICK}"]
    built, again = (run_command(words).wall_seconds for _ in range(2))
    what = "a rebuild of two studies at smoke scale with nothing to do"
    return row(what, "the same when all has to be done", again / built, ours=again, theirs=built, unit="s")
