"""A contract that every study fulfils, with its shipped tables and with those of a smoke rebuild of everything."""

from __future__ import annotations

import importlib
import json
import shutil
from pathlib import Path

import pytest

from privpost.commands import drawing, sweeps
from privpost.lab import grid, store, tables
from privpost.lab.claims import VERDICTS
from privpost.lab.study import figure_module
from privpost.report.scorecard import claims_of

ROOT = Path(__file__).resolve().parents[2]


def _names() -> list[str]:
    folder = ROOT / "conf" / "study"
    return sorted(path.relative_to(folder).with_suffix("").as_posix() for path in folder.glob("*/*.yaml"))


every_study = pytest.mark.parametrize("name", _names())


@pytest.fixture
def built(everything, monkeypatch, name):
    """The study at smoke scale, with the rebuilt clone as working directory; skipped without its data."""
    clone, output = everything
    monkeypatch.chdir(clone.folder)
    study = grid.load_study(name, "smoke")
    if not study.grid_path().is_file() and _lacks_data(study, output):
        pytest.skip(f"{name}: its data cannot be had on this machine")
    assert study.grid_path().is_file(), output
    return study


def _lacks_data(study, output: str) -> bool:
    datasets = {cell.dataset for cell in grid.expand(study)} - {None}
    return any(f"fetch {dataset}: " in output for dataset in datasets)


def _check_columns(study) -> None:
    for name, table in tables.read_tables(study).items():
        assert len(table) > 0, f"{name} has no rows"
        empty = [column for column in table if table[column].isna().all()]
        assert not empty, f"{name}: the columns {empty} are empty"
        assert not any(column.startswith("Unnamed") for column in table)


def _check_claims(study) -> None:
    claims = claims_of(study, tables.read_tables(study))
    assert all(claim.verdict in VERDICTS for claim in claims)
    assert len({claim.id for claim in claims}) == len(claims)
    for claim in claims:
        assert claim.statement
        assert claim.test
        assert claim.place
        json.dumps(claim.evidence)


@every_study
def test_a_study_has_a_complete_schema_and_a_module_for_each_figure(checkout, name):
    for scale in ("paper", "smoke"):
        study = grid.load_study(name, scale)
        cells = grid.expand(study)
        assert cells
        for cell in cells:
            assert set(study.schema.fields) == {*cell.settings, *cell.within}
    assert study.paper == study.config["paper"]
    module = study.module()
    for function in ("simulate", "tabulate"):
        assert callable(getattr(module, function, None)), function
    # Claims read tables alone: they stand apart from the code of cells.
    assert not hasattr(module, "claims")
    for stem in study.figures:
        assert callable(importlib.import_module(figure_module(study.paper, stem)).draw)


@every_study
def test_a_study_is_small_at_smoke_scale(checkout, name):
    """At smoke scale a study has a few cells at most, so that all of them can be rebuilt in every test run."""
    assert len(grid.expand(grid.load_study(name, "smoke"))) <= 12


@every_study
def test_shipped_tables_are_whole_and_their_claims_can_be_scored(checkout, name):
    study = grid.load_study(name)
    if not study.grid_path().is_file():
        pytest.skip(f"{name} ships no tables")
    _check_columns(study)
    _check_claims(study)


@every_study
def test_shipped_figures_are_there(checkout, name):
    study = grid.load_study(name)
    if not study.grid_path().is_file():
        pytest.skip(f"{name} ships no figures")
    for path in study.shipped_figures():
        assert path.stat().st_size > 1000, path
        assert path.suffix != ".svg" or path.stat().st_size <= drawing.SVG_LIMIT


@every_study
def test_a_smoke_rebuild_gives_whole_tables_whose_claims_can_be_scored(built):
    _check_columns(built)
    _check_claims(built)


@every_study
def test_a_smoke_rebuild_draws_every_figure(built):
    for path in built.figure_paths():
        assert path.stat().st_size > 1000, path


@every_study
def test_a_sweep_over_a_part_of_the_grid_ends_with_a_table_and_a_figure(built, tmp_path, monkeypatch):
    monkeypatch.setattr(sweeps, "FOLDER", tmp_path)
    cells = grid.expand(built)[:1]
    paths = sweeps.write(built, cells, [store.read(cell.path) for cell in cells], [], whole=False).paths
    assert {path.suffix for path in paths} == {".csv", ".pdf", ".png"}
    assert all(path.stat().st_size > 0 for path in paths)


def test_the_smoke_rebuild_touches_nothing_that_is_shipped(everything):
    import subprocess

    clone, _ = everything
    assert subprocess.check_output(["git", "status", "--porcelain"], cwd=clone.folder) == b""


# Cheap ones of each kind: closed forms, no figure, Monte Carlo, Markov chains, raw data.
SPREAD = (
    "geumlek2017/rdp_curves", "foulds2016/mechanisms_table", "foulds2016/sampling_error", "bernstein2018/calibration",
    "noise_aware/naive_bayes", "zhang2016/naive_bayes", "foulds2016/war_logs_states",
)  # fmt: skip
AGAIN = """
import os, sys
from pathlib import Path
import privpost.__main__
from privpost.lab import cells, grid, project, tables

os.umask(0o077)
os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
project.enter()
for study in reversed(grid.load_studies(sys.argv[1:] or None, "smoke", ["root=build/again"])):
    if not (Path("build/smoke") / f"{study.name}.grid.json").is_file():
        continue
    for cell in reversed(grid.expand(study)):
        cells.compute(study, cell)
    tables.tabulate(study)
"""


@pytest.mark.parametrize(
    "names", [pytest.param(SPREAD, id="some"), pytest.param((), id="all", marks=pytest.mark.by_hand)]
)
def test_tables_do_not_depend_on_cores_order_hash_seed_locale_time_zone_umask_or_folder(everything, tmp_path, names):
    """Studies again, backwards in one process on one core: tables, grids and ledgers come out byte by byte.

    The shell asks for two BLAS threads, which `privpost` refuses: sums would be rounded in another order.
    """
    import subprocess
    import sys

    clone, _ = everything
    # A locale with other letters and a decimal comma, where one can be made.
    made = shutil.which("localedef") and subprocess.run(
        ["localedef", "-i", "de_DE", "-f", "ISO-8859-1", str(tmp_path / "de_DE.ISO-8859-1")],
        check=False, capture_output=True,
    ).returncode == 0  # fmt: skip
    locale = {"LOCPATH": str(tmp_path), "LC_ALL": "de_DE.ISO-8859-1"} if made else {"LC_ALL": "C"}
    subprocess.run(
        [sys.executable, "-c", AGAIN, *names],
        cwd=clone / "docs", check=True, timeout=1800,
        env=clone.environment(PYTHONHASHSEED="11", TZ="Asia/Kathmandu", OPENBLAS_NUM_THREADS="2", **locale),
    )  # fmt: skip
    again, first = (clone / "build" / name for name in ("again", "smoke"))
    files = [path.relative_to(again) for path in again.rglob("*") if path.suffix in (".csv", ".json", ".md")]
    files = [path for path in files if "timing" not in path.parts]
    # Without its data a study is in neither.
    grids = {str(path.relative_to(first)) for path in first.rglob("*.grid.json")}
    expected = grids & {f"{name}.grid.json" for name in names} if names else grids
    assert expected == {str(path) for path in files if path.name.endswith(".grid.json")}
    assert len(files) >= 3 * len(expected) > 0
    assert [path for path in files if (again / path).read_bytes() != (first / path).read_bytes()] == []
    assert all((again / path).stat().st_mode & 0o777 == 0o644 for path in files)
