"""Measure how planning and computing grow with the number of cells; writes results/scale.csv.

    .venv/bin/python benchmarks/scale.py            ten minutes; works in a temporary clone of the last commit

The cells are cheap (RDP curves of one order), so this measures the pipeline's own cost. Each row is one process: wall
and CPU seconds, peak memory. Compare CPU seconds, as other programs may run at the same time.
"""

from __future__ import annotations

import csv
import os
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from run import machine

STUDY = "geumlek2017/rdp_curves"
YAML = Path("conf/study") / f"{STUDY}.yaml"
TABLE = Path("results/scale.csv")
SHARD = 1000
GATHERED, AT_ONCE = 100_000, 2


def measure(command: list[str], folder: Path, log: Path) -> dict[str, float]:
    """Run a Python module in a clone; returns wall and CPU seconds (of its children too) and peak memory in MiB.

    Raises RuntimeError with the end of its output when it fails.
    """
    environment = {**os.environ, "PYTHONPATH": str(folder / "src")}
    start = time.perf_counter()
    with log.open("w") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", *command], cwd=folder, env=environment, stdout=output, stderr=subprocess.STDOUT
        )
        _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise RuntimeError(f"{' '.join(command)} failed: {log.read_text()[-2000:]}")
    return {
        "wall_seconds": time.perf_counter() - start,
        "cpu_seconds": usage.ru_utime + usage.ru_stime,
        "peak_mib": usage.ru_maxrss / 2**10,
    }


def sweep(cells: int) -> list[str]:
    """Return the arguments of an ad hoc sweep of a number of cells, a multiple of 100."""
    return ["-m", f"study={STUDY}", f"alpha=range(1,{cells // 100 + 1})", "beta=range(1,101)", "order=2"]


def enlarge(folder: Path, cells: int) -> None:
    """Give the study of a clone a grid of a number of cells, a multiple of 100."""
    text = subprocess.run(
        ["git", "show", f"HEAD:{YAML}"], cwd=folder, check=True, capture_output=True, text=True
    ).stdout
    head, _, tail = text.partition("sweep:\n")
    axes = {"alpha": cells // 100, "beta": 100}
    lines = [f"  {key}: {{start: 1, stop: {count}, num: {count}}}\n" for key, count in axes.items()]
    tail = tail[tail.index("within:") :].replace("{start: 1.05, stop: 20, num: 380}", "[2]")
    (folder / YAML).write_text(head + "sweep:\n" + "".join(lines) + tail)


def rows(folder: Path, log: Path):
    """Yield one row per measurement."""

    def row(what: str, cells: int, jobs: int, command: list[str]) -> dict:
        found = {"what": what, "cells": cells, "jobs": jobs, **measure(command, folder, log)}
        print({key: round(value, 2) if isinstance(value, float) else value for key, value in found.items()}, flush=True)
        return found

    for cells in (1000, 10_000, 100_000):
        yield row("plan a sweep", cells, 0, ["privpost", *sweep(cells), "-n"])
    for cells in (1000, 100_000):
        enlarge(folder, cells)
        # A study has one job, and another one for its figures.
        command = ["snakemake", "-n", "--quiet", "all", "--config", f"studies={STUDY}"]
        yield row("Snakemake's dry run", cells, 2, command)
    subprocess.run(["git", "checkout", "--quiet", "."], cwd=folder, check=True)
    yield row("compute a cell by itself", 1, 1, ["privpost", f"study={STUDY}", "alpha=1", "beta=1", "order=2"])
    yield row("compute a shard", SHARD, 1, ["privpost", *sweep(100_000), "shard=100/100"])
    yield row("find a shard done", SHARD, 1, ["privpost", *sweep(100_000), "shard=100/100"])
    shards = [["privpost", *sweep(GATHERED), f"shard={part}/{AT_ONCE}"] for part in range(1, AT_ONCE + 1)]
    logs = [log.with_suffix(f".{part}") for part in range(AT_ONCE)]
    with ThreadPoolExecutor(AT_ONCE) as pool:
        list(pool.map(measure, shards, [folder] * AT_ONCE, logs))
    yield row("gather a sweep: table and figure", GATHERED, 1, ["privpost", *sweep(GATHERED)])


def main() -> int:
    """Measure everything, then replace the table: a run that breaks off leaves the former table whole."""
    os.environ |= {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    found = []
    with tempfile.TemporaryDirectory(prefix="privpost-scale-") as scratch:
        folder = Path(scratch) / "clone"
        subprocess.run(["git", "clone", "--quiet", ".", str(folder)], check=True)
        # Without pandas: a process that is measured starts with the memory of this one.
        for row in rows(folder, Path(scratch) / "log"):
            found.append({**row, "machine": machine()})
    from privpost.atomic import replacing

    with replacing(TABLE) as temporary, temporary.open("w", newline="") as file:
        writer = csv.DictWriter(file, found[0], lineterminator="\n")
        writer.writeheader()
        writer.writerows(
            {key: f"{value:.4g}" if isinstance(value, float) else value for key, value in row.items()} for row in found
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
