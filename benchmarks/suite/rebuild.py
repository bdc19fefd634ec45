"""The rebuild: overhead of starts and scheduling, its parts, parsing, a run with nothing to do, drawing all figures."""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
from pathlib import Path

from bars import row, run_command

from privpost.pipeline import grid
from privpost.pipeline.plan import table_files
from privpost.report import numbers

NAME = "rebuild"
CORES = 2
# Two studies of a few cells each, whose smoke rebuild shows what a second run does.
QUICK = "geumlek2017/rdp_curves,geumlek2017/dirichlet"
LIMITS = {"four papers": 10.0, "beyond": 8.0}
PARTS = {
    "logistic": (4.5, ("geumlek2017/logistic",)),
    "calibration and utility": (1.5, ("bernstein2018/calibration", "bernstein2018/utility")),
    "war_logs_likelihood": (2.0, ("foulds2016/war_logs_likelihood",)),
}
REST = 2.0


def run() -> list[dict]:
    """Judge the recorded rebuild, and measure the rest."""
    rows = _recorded()
    root = Path(tempfile.mkdtemp(prefix="bench-", dir=_folder()))
    try:
        rows += [_parse(), _nothing_to_do(root / "smoke"), _figures(root / "figures")]
    finally:
        # Snakemake takes a folder away that a failed job left empty.
        shutil.rmtree(root, ignore_errors=True)
    return rows


def _folder() -> Path:
    Path("build").mkdir(exist_ok=True)
    return Path("build")


def _recorded() -> list[dict]:
    """Rows from the last complete rebuild at paper scale and from what the cells of the shipped results recorded."""
    times = numbers.measured(grid.load_studies()).set_index("study")
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
            at_most=1.25,
            ours=record["seconds"] / 60,
            theirs=computing / record["cores"] / 60,
            unit="min",
            note=f"{record['cores']} cores, as recorded by the last complete make reproduce",
        )
    ]

    def minutes(what: str, seconds: float, limit: float) -> dict:
        mine = seconds / CORES * overhead / 60
        note = "apportioned: wall time of its cells / cores, times the overhead of the whole rebuild"
        common = {"at_most": 1, "ours": mine, "theirs": limit, "unit": "min", "note": note}
        return row(f"rebuild, {what}, {CORES} cores", f"{limit:g} minutes", mine / limit, **common)

    papers = times[~times.beyond_papers].seconds
    rows.append(minutes("studies of the four papers", papers.sum(), LIMITS["four papers"]))
    for what, (limit, studies) in PARTS.items():
        rows.append(minutes(what, papers[list(studies)].sum(), limit))
        papers = papers.drop(list(studies))
    rows.append(minutes("the other studies of the four papers", papers.sum(), REST))
    rows.append(minutes("studies beyond the papers", times[times.beyond_papers].seconds.sum(), LIMITS["beyond"]))
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


def _parse() -> dict:
    """Parsing the rules of all studies at paper scale, without the start of Snakemake itself."""
    _snakemake("--list-rules")
    # The least of three, so that other jobs on the machine count little.
    whole = min(_snakemake("--list-rules").cpu_seconds for _ in range(3))
    start = min(run_command([sys.executable, "-c", "import snakemake.cli"]).cpu_seconds for _ in range(3))
    return row(
        "parse of the rules of all studies",
        "2 s",
        (whole - start) / 2,
        at_most=1,
        ours=whole - start,
        theirs=2,
        unit="s of CPU",
        note=f"{whole:.2f} s with the start of Python and Snakemake; files were read before, the least of three",
    )


def _nothing_to_do(root: Path) -> dict:
    """Jobs of a second run at smoke scale, after a first one that built two studies."""
    words = ["--cores", str(CORES), "--config", "scale=smoke", f"root={root}", f"studies={QUICK}"]
    built = _snakemake(*words)
    again = _snakemake(*words)
    jobs = 0 if "Nothing to be done" in again.output else again.output.count("\nJob stats:") + 1
    note = f"at smoke scale: {built.wall_seconds:.0f} s, then {again.wall_seconds:.1f} s"
    return row("jobs of a rebuild with nothing to do, two studies", "none", jobs, at_most=0, note=note)


def _figures(root: Path) -> dict:
    """Drawing every study's figures from copies of the shipped tables, as on a clone."""
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
    count = len(list((root / "figures").rglob("*.png")))
    if not count:
        raise RuntimeError(f"no figure was drawn from the shipped tables:\n{drawn.output[-2000:]}")
    return row(
        f"all figures from the shipped tables, {CORES} cores",
        "60 s",
        drawn.wall_seconds / 60,
        at_most=1,
        ours=drawn.wall_seconds,
        theirs=60,
        unit="s",
        note=f"{count} figures in their formats; {drawn.cpu_seconds:.0f} s of CPU",
    )
