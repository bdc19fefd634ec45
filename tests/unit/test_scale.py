"""The sweep and the grid that benchmarks/scale.py measures have the sizes that it states."""

from __future__ import annotations

import csv
import importlib.util
import shutil
import subprocess

import pytest

from privpost.lab import grid, request


@pytest.fixture
def scale(checkout):
    """The benchmark's module."""
    specification = importlib.util.spec_from_file_location("scale", checkout / "benchmarks/scale.py")
    module = importlib.util.module_from_spec(specification)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(checkout / "benchmarks"))
        specification.loader.exec_module(module)
    return module


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


def test_the_longest_job_that_waits_is_started_first(scale):
    # Two processes take 3 + 2 + 2 and 3 + 2; the best order would need 6.
    assert scale.simulated(2, [2, 3, 2, 3, 2]) == 7
    assert [scale.simulated(processes, [2, 3, 2, 3, 2]) for processes in (1, 5, 64)] == [12, 3, 3]


def test_every_published_second_is_in_the_simulated_rebuild(scale):
    first, last = scale.jobs_of_rebuild()
    with scale.Path("results/times.csv").open() as file:
        assert sum(first + last) == pytest.approx(sum(float(line["wall_seconds"]) for line in csv.DictReader(file)))
    # The audit alone waits for the others' ledgers.
    assert len(last) == grid.load_study("audit/audit").shards


def test_every_mechanism_releases_many_records(scale, monkeypatch):
    monkeypatch.setattr(scale, "RECORDS", 1000)
    for name in scale.mechanisms():
        scale.release(name)
