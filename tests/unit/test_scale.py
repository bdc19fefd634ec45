"""What docs/cluster.md quotes is worked out from the measurements; the measured sweep is what it says."""

from __future__ import annotations

import importlib.util
import shutil
import subprocess

import pandas as pd
import pytest

from privpost.lab import grid, request
from privpost.report.documents import cluster


@pytest.fixture
def scale(checkout):
    """The benchmark's module."""
    specification = importlib.util.spec_from_file_location("scale", checkout / "benchmarks/scale.py")
    module = importlib.util.module_from_spec(specification)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(checkout / "benchmarks"))
        specification.loader.exec_module(module)
    return module


def measurements() -> pd.DataFrame:
    rows = [
        ("plan a sweep", 1000, 0, 1.0, 60.0),
        ("plan a sweep", 11_000, 0, 2.0, 70.0),
        ("Snakemake's dry run", 1000, 1000, 3.0, 100.0),
        ("Snakemake's dry run", 2000, 2000, 5.0, 101.0),
        ("Snakemake's dry run", 2000, 20, 4.0, 90.0),
        ("compute a cell by itself", 1, 1, 1.5, 60.0),
        ("compute a shard", 1000, 1, 6.0, 61.0),
        ("gather a sweep: table and figure", 2000, 1, 9.0, 180.0),
    ]
    table = pd.DataFrame(rows, columns=["what", "cells", "jobs", "cpu_seconds", "peak_mib"])
    return table.assign(wall_seconds=table.cpu_seconds, machine="one core")


def test_costs_follow_from_the_measurements():
    found = cluster.of_scale(measurements())
    expected = {"plan_ms": 0.1, "dag_ms": 2, "dag_kib": 1.024, "batched_ms": 2, "shard_ms": 6, "gather_ms": 4.5}
    expected["single_ms"] = 1500
    assert {name: found[f"cluster/{name}"] for name in expected} == pytest.approx(expected)
    assert "| plan a sweep | 11,000 |  | 2 | 2 | 70 |" in found["cluster/table"]


def test_a_measurement_that_lacks_is_named():
    table = measurements()
    with pytest.raises(ValueError, match="no row 'compute a shard'"):
        cluster.of_scale(table[table.what != "compute a shard"])


@pytest.mark.parametrize("cells", [1000, 3000])
def test_the_measured_sweep_has_as_many_cells_as_it_says(scale, cells):
    assert len(request.understand(scale.sweep(cells)).cells) == cells


def test_the_measured_grid_has_as_many_cells_as_it_says(scale, tmp_path, monkeypatch):
    if shutil.which("git") is None or not (scale.Path.cwd() / ".git").exists():
        pytest.skip("not a git checkout")
    subprocess.run(["git", "clone", "--quiet", ".", str(tmp_path)], check=True)
    monkeypatch.chdir(tmp_path)
    scale.enlarge(tmp_path, 1000)
    assert len(grid.expand(grid.load_study(scale.STUDY))) == 1000
