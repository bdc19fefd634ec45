"""The rebuild: overhead of starts and scheduling, a run with nothing to do, drawing all figures."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from bars import row, run_command

from privpost.commands import drawing
from privpost.lab import grid
from privpost.report import page

NAME = "rebuild"
CORES = 2
# Two studies of a few cells each; the benchmark rebuilds them twice at smoke scale.
QUICK = "geumlek2017/rdp_curves,geumlek2017/dirichlet"


def run() -> list[dict]:
    """Evaluate the recorded rebuild, and measure the rest."""
    rows = _recorded()
    return [*rows, _nothing_to_do()]


def _recorded() -> list[dict]:
    """Rows from the last complete rebuild at paper scale and from what the cells of the shipped results recorded."""
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
            at_most=1.1,
            ours=record["seconds"] / 60,
            theirs=computing / record["cores"] / 60,
            unit="min",
            note=f"{record['cores']} cores, as recorded by the last complete make reproduce",
        )
    ]

    peak = float(times.peak_mib.max())
    rows.append(
        row(
            "largest peak memory of a cell", "1 GiB", peak / 1024, at_most=1, ours=peak, theirs=1024, unit="MiB",
            note=f"in {times.peak_mib.idxmax()}",
        )
    )  # fmt: skip
    return rows


def _snakemake(*words: str):
    return run_command([sys.executable, "-m", "snakemake", *words])


def _nothing_to_do() -> dict:
    """Jobs of a second run at smoke scale, after a first one that built two studies."""
    words = ["--cores", str(CORES), "--config", "scale=smoke", f"studies={QUICK}"]
    built = _snakemake(*words)
    again = _snakemake(*words)
    jobs = 0 if "Nothing to be done" in again.output else again.output.count("\nJob stats:") + 1
    note = f"at smoke scale: {built.wall_seconds:.0f} s, then {again.wall_seconds:.1f} s"
    return row("jobs of a rebuild with nothing to do, two studies", "none", jobs, at_most=0, note=note)


def draw_figures(root: Path) -> None:
    """Draw every study's figures from the published tables."""
    for study in grid.load_studies():
        drawing.draw(study, root)
