"""What docs/cluster.md shows: how planning and computing grow with the number of cells (results/scale.csv)."""

from collections.abc import Mapping
from pathlib import Path

from privpost.evaluation.rows import markdown
from privpost.lab import tables
from privpost.lab.plan import Plan

# Made by benchmarks/scale.py, and measured: no part of a rebuild.
SCALE = Path("results/scale.csv")
TEN_MILLION = 1e7


def values(plan: Plan) -> Mapping[str, object]:
    """Return the table of measurements and the costs of a cell by their placeholders; times in ms, memory in KiB."""
    return of_scale(tables.read_table(SCALE))


def of_scale(scale) -> dict[str, object]:
    """Return what `values` does from the table of measurements; raises ValueError when it lacks one."""

    def rows(what: str, batched: bool | None = None):
        found = scale[scale.what == what].sort_values("cells")
        if batched is not None:
            found = found[(found.jobs < found.cells) == batched]
        if found.empty:
            raise ValueError(f"{SCALE} has no row {what!r}; make it with benchmarks/scale.py")
        return found

    def growth(found, column: str) -> float:
        """What a cell more costs: from the smallest to the largest number of cells measured."""
        first, last = found.iloc[0], found.iloc[-1]
        return float((last[column] - first[column]) / (last.cells - first.cells))

    gather = rows("gather a sweep: table and figure").iloc[-1]
    shard, single = rows("compute a shard").iloc[0], rows("compute a cell by itself").iloc[0]
    dag, batched = rows("Snakemake's dry run", batched=False), rows("Snakemake's dry run", batched=True).iloc[-1]
    return {
        "cluster/table": as_markdown(scale),
        "cluster/machine": str(scale.machine.iloc[0]),
        "cluster/plan_ms": 1000 * growth(rows("plan a sweep"), "cpu_seconds"),
        "cluster/shard_ms": float(1000 * shard.cpu_seconds / shard.cells),
        "cluster/single_ms": float(1000 * single.cpu_seconds),
        "cluster/gather_mib": float(gather.peak_mib),
        "cluster/gather_cells": f"{gather.cells:,}",
        "cluster/gather_ms": float(1000 * gather.cpu_seconds / gather.cells),
        "cluster/ten_million/plan_gib": TEN_MILLION * growth(rows("plan a sweep"), "peak_mib") / 1024,
        "cluster/ten_million/dag_gib": TEN_MILLION * growth(dag, "peak_mib") / 1024,
        "cluster/ten_million/shard_hours": float(TEN_MILLION * shard.cpu_seconds / shard.cells / 3600),
        "cluster/ten_million/gather_hours": float(TEN_MILLION * gather.cpu_seconds / gather.cells / 3600),
        "cluster/dag_ms": 1000 * growth(dag, "cpu_seconds"),
        "cluster/dag_kib": 1024 * growth(dag, "peak_mib"),
        "cluster/batched_ms": float(1000 * batched.cpu_seconds / batched.cells),
        "cluster/batched_cells": f"{batched.cells:,}",
    }


def as_markdown(scale) -> str:
    """Return the measurements as a table in Markdown."""
    head = ("what", "cells", "jobs", "CPU s", "wall s", "peak memory, MiB")
    rows = scale[["what", "cells", "jobs", "cpu_seconds", "wall_seconds", "peak_mib"]].itertuples(index=False)
    shown = [
        (what, f"{n:,}", f"{j:,}" if j else "", f"{cpu:.3g}", f"{s:.3g}", f"{m:.0f}") for what, n, j, cpu, s, m in rows
    ]
    return markdown(head, shown)
