"""Measure how the project scales with cells, records and processes, and write results/scale.csv.

    .venv/bin/python benchmarks/scale.py            a quarter of an hour; works in a temporary clone of the last commit

Cells are cheap, so that the cost of the pipeline is measured. To scale records, each mechanism makes one release from a
million records. To scale processes, the wall time of a rebuild is simulated from results/times.csv. Compare CPU
seconds, since other programs may run at the same time.
"""

from __future__ import annotations

import csv
import heapq
import os
import re
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from run import machine

STUDY = "geumlek2017/theorem15"
YAML = Path("conf/study") / f"{STUDY}.yaml"
TABLE = Path("results/scale.csv")
# Other settings of the study's cells, with values that make cells cheap.
POINT = {"coefficient": 0.5, "n": 10, "order": 2}
WORDS = [f"{key}={value}" for key, value in POINT.items()]
SHARD = 1000
GATHERED, AT_ONCE = 100_000, 2
RECORDS = 1_000_000
# When this mechanism is made, it enumerates all counts of n records at a cost of n².
ENUMERATING = {"MapMechanism"}
COLUMNS = ("what", "size", "unit", "processes", "wall_seconds", "cpu_seconds", "peak_mib", "machine")
PROCESSES = (1, 2, 4, 8, 16, 32, 64)


def measure(command: list[str], folder: Path, log: Path) -> dict[str, float]:
    """Run a Python module in a clone, and return seconds and peak MiB. Raise RuntimeError if the module fails."""
    environment = {**os.environ, "PYTHONPATH": f"{folder / 'src'}:{folder / 'benchmarks'}"}
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
    """Return the arguments of a sweep with `cells` cells, which must be a multiple of 100."""
    return ["-m", f"study={STUDY}", f"alpha=range(1,{cells // 100 + 1})", "beta=range(1,101)", *WORDS]


def enlarge(folder: Path, cells: int) -> None:
    """Give a clone's study a grid with `cells` cells, which must be a multiple of 100."""
    text = subprocess.run(
        ["git", "show", f"HEAD:{YAML}"], cwd=folder, check=True, capture_output=True, text=True
    ).stdout
    head, _, tail = text.partition("sweep:\n")
    axes = {"alpha": cells // 100, "beta": 100}
    lines = [f"  {key}: {{start: 1, stop: {count}, num: {count}}}\n" for key, count in axes.items()]
    tail = re.sub(r"(?m)^  (n|order): .*", lambda key: f"  {key[1]}: [{POINT[key[1]]}]", tail[tail.index("within:") :])
    (folder / YAML).write_text(head + "sweep:\n" + "".join(lines) + tail)


def mechanisms() -> dict:
    """Return the first example of each mechanism by name."""
    from privpost import discovery

    return {kind.name: kind.examples[0] for kind in discovery.kinds()}


def release(name: str) -> None:
    """Make one release from a million random records with the named mechanism."""
    from dataclasses import replace

    import numpy as np

    mechanism, rng = replace(mechanisms()[name], n=RECORDS), np.random.default_rng(1)
    records = mechanism.model.records[rng.integers(len(mechanism.model.records), size=RECORDS)]
    mechanism.draw(mechanism.model.sufficient_statistics(records), rng)


def simulated(processes: int, jobs: list[float]) -> float:
    """Return the wall time of some jobs if a free process always starts the longest job that is left."""
    free = [0.0] * processes
    for seconds in sorted(jobs, reverse=True):
        heapq.heappush(free, heapq.heappop(free) + seconds)
    return max(free)


def jobs_of_rebuild() -> tuple[list[float], list[float]]:
    """Return the seconds of jobs in two lists: for studies that read no ledgers, and for studies that do."""
    from privpost.lab import grid

    seconds = defaultdict(list)
    with Path("results/times.csv").open() as file:
        for line in csv.DictReader(file):
            seconds[line["study"]].append(float(line["wall_seconds"]))
    first, last = [], []
    for study in grid.load_studies():
        shards = study.config.get("shards", 1)
        parts = [sum(seconds[study.name][part::shards]) for part in range(shards)]
        (last if grid.names_read(study) else first).extend(parts)
    return first, last


def rows(folder: Path, log: Path):
    """Yield one row of the table per measurement."""

    def row(what: str, size: int, unit: str, processes: int, command: list[str]) -> dict:
        values = {"what": what, "size": size, "unit": unit, "processes": processes, **measure(command, folder, log)}
        print(
            {key: round(value, 2) if isinstance(value, float) else value for key, value in values.items()}, flush=True
        )
        return values

    for cells in (1000, 10_000, 100_000):
        yield row("plan a sweep", cells, "cells", 1, ["privpost", *sweep(cells), "-n"])
    for cells in (1000, 100_000):
        enlarge(folder, cells)
        command = ["snakemake", "-n", "--quiet", "all", "--config", f"studies={STUDY}"]
        yield row("Snakemake's dry run", cells, "cells", 1, command)
    subprocess.run(["git", "checkout", "--quiet", "."], cwd=folder, check=True)
    yield row("compute a cell by itself", 1, "cells", 1, ["privpost", f"study={STUDY}", "alpha=1", "beta=1", *WORDS])
    yield row("compute a shard", SHARD, "cells", 1, ["privpost", *sweep(100_000), "shard=100/100"])
    yield row("find a shard done", SHARD, "cells", 1, ["privpost", *sweep(100_000), "shard=100/100"])
    shards = [["privpost", *sweep(GATHERED), f"shard={part}/{AT_ONCE}"] for part in range(1, AT_ONCE + 1)]
    logs = [log.with_suffix(f".{part}") for part in range(AT_ONCE)]
    with ThreadPoolExecutor(AT_ONCE) as pool:
        list(pool.map(measure, shards, [folder] * AT_ONCE, logs))
    yield row("gather a sweep: table and figure", GATHERED, "cells", 1, ["privpost", *sweep(GATHERED)])
    # Jobs are simulated last, since their imports would count in the peak memory of processes that start later.
    first, last = jobs_of_rebuild()
    for processes in PROCESSES:
        wall = simulated(processes, first) + simulated(processes, last)
        words = "rebuild, simulated from the seconds of its cells"
        yield {"what": words, "size": len(first + last), "unit": "jobs", "processes": processes, "wall_seconds": wall}
    for name in mechanisms():
        if name not in ENUMERATING:
            yield row(f"release by {name}", RECORDS, "records", 1, ["scale", name])


def main() -> int:
    """Measure everything, then replace the table."""
    os.environ |= {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    found = []
    with tempfile.TemporaryDirectory(prefix="privpost-scale-") as scratch:
        folder = Path(scratch) / "clone"
        subprocess.run(["git", "clone", "--quiet", ".", str(folder)], check=True)
        for row in rows(folder, Path(scratch) / "log"):
            found.append({**row, "machine": machine()})
    from privpost.atomic import replacing

    with replacing(TABLE) as temporary, temporary.open("w", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(
            {key: f"{value:.4g}" if isinstance(value, float) else value for key, value in row.items()} for row in found
        )
    return 0


if __name__ == "__main__":
    sys.exit(release(sys.argv[1]) if sys.argv[1:] else main())
