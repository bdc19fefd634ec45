"""The rebuild: overhead of starts and scheduling, a run with nothing to do, drawing all figures."""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
from pathlib import Path

from bars import row, run_command

from privpost.lab import grid
from privpost.lab.plan import table_files
from privpost.report import build

NAME = "rebuild"
CORES = 2
# Two studies of a few cells each, whose smoke rebuild shows what a second run does.
QUICK = "geumlek2017/rdp_curves,geumlek2017/dirichlet"


def run() -> list[dict]:
    """Judge the recorded rebuild, and measure the rest."""
    rows = _recorded()
    root = Path(tempfile.mkdtemp(prefix="bench-", dir=_folder()))
    try:
        rows.append(_nothing_to_do(root / "smoke"))
    finally:
        # Snakemake takes a folder away that a failed job left empty.
        shutil.rmtree(root, ignore_errors=True)
    return rows


def _folder() -> Path:
    Path("build").mkdir(exist_ok=True)
    return Path("build")


def _recorded() -> list[dict]:
    """Rows from the last complete rebuild at paper scale and from what the cells of the shipped results recorded."""
    times = build.run_times(grid.load_studies(), Path("results")).set_index("study")
    path = Path("results/timing/run_reproduce.json")
    if not path.is_file():
        print(f"skipped: the overhead of a rebuild ({path} does not exist; make reproduce from nothing writes it)")
        return []
    record = json.loads(path.read_text())
    computing = record.get("cell_seconds", float(times.seconds.sum()))
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


def _nothing_to_do(root: Path) -> dict:
    """Jobs of a second run at smoke scale, after a first one that built two studies."""
    words = ["--cores", str(CORES), "--config", "scale=smoke", f"root={root}", f"studies={QUICK}"]
    built = _snakemake(*words)
    again = _snakemake(*words)
    jobs = 0 if "Nothing to be done" in again.output else again.output.count("\nJob stats:") + 1
    note = f"at smoke scale: {built.wall_seconds:.0f} s, then {again.wall_seconds:.1f} s"
    return row("jobs of a rebuild with nothing to do, two studies", "none", jobs, at_most=0, note=note)


def draw_figures(root: Path) -> None:
    """Draw every study's figures from copies of the shipped tables, as on a clone."""
    root.mkdir()
    for folder in {study.table_path("").parent for study in grid.load_studies()}:
        if folder.is_dir():
            shutil.copytree(folder, root / folder.name)
    copies = grid.load_studies(overrides=[f"root={root}", f"figure_root={root}/figures"])
    shipped = [study for study in copies if all(map(Path.is_file, table_files(study)))]
    files = [str(path) for study in shipped for path in study.figure_paths()]
    # No other rules: where a grid was edited since, its cells are not what is measured here.
    rules = [f"draw_{study.identifier}" for study in shipped]
    drawn = _snakemake(*files, "--cores", str(CORES), "--config", f"root={root}", "--allowed-rules", *rules)
    if not any((root / "figures").rglob("*.svg")):
        raise RuntimeError(f"no figure was drawn from the shipped tables:\n{drawn.output[-2000:]}")
