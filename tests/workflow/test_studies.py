"""A contract that every study fulfils, with its published tables and with those of a smoke rebuild of everything.

No two rows of a table share a key: of the published tables, and of sweeps, point by point, at smoke scale.
"""

from __future__ import annotations

import ast
import contextlib
import functools
import json
import shutil
from pathlib import Path

import pandas as pd
import pytest
from matplotlib.text import Text

from privpost.commands import sweeps
from privpost.drawing import figures, style
from privpost.lab import cells, grid, request, tables
from privpost.lab.claims import Claim
from privpost.lab.study import SIZES
from privpost.report.scorecard import claims_of

ROOT = Path(__file__).resolve().parents[2]
# Numbers along which a table goes, beside its settings.
POSITIONS = {"u", "theta", "power", "steps", "beta", "epsilon", "order", "log_epsilon"}


def _names() -> list[str]:
    folder = ROOT / "conf" / "study"
    return sorted(path.relative_to(folder).with_suffix("").as_posix() for path in folder.glob("*/*.yaml"))


every_study = pytest.mark.parametrize("name", _names())


@functools.cache
def loaded(folder: Path, scale: str = "paper") -> dict[str, grid.Study]:
    """All studies of a folder, loaded together: each is composed once, whichever tests ask for it."""
    with contextlib.chdir(folder):
        return {study.name: study for study in grid.load_studies(None, scale)}


@pytest.fixture
def built(everything, monkeypatch, name):
    """The study at smoke scale, with the rebuilt clone as working directory."""
    clone, output = everything
    monkeypatch.chdir(clone.folder)
    study = loaded(clone.folder, "smoke")[name]
    assert study.ledger_path.is_file(), output
    return study


def _check_columns(study) -> None:
    for name, table in tables.read_tables(study).items():
        assert len(table) > 0, f"{name} has no rows"
        # A chain at toy size is too short for diagnostics.
        short = {"ess_bulk"} if study.scale == "smoke" else set()
        empty = [column for column in table if table[column].isna().all() and column not in short]
        assert not empty, f"{name}: the columns {empty} are empty"
        assert not any(column.startswith("Unnamed") for column in table)


def _check_claims(study) -> None:
    claims = claims_of(study, tables.read_tables(study))
    assert all(isinstance(claim, Claim) for claim in claims)
    assert len({claim.id for claim in claims}) == len(claims)
    for claim in claims:
        assert claim.statement
        assert claim.test
        assert claim.place
        json.dumps(claim.evidence)


@every_study
def test_no_row_is_made_of_the_meanings_of_columns(checkout, name):
    """A meaning more would change or break it."""
    module = ast.parse((loaded(checkout)[name].folder / "study.py").read_text())
    taken = [
        node for node in ast.walk(module) if isinstance(node, ast.Subscript) and ast.unparse(node.value) == "TABLES"
    ]
    assert not taken


def _check_cells(study) -> None:
    found = grid.expand(study)
    assert found
    for cell in found:
        assert set(study.schema.fields) == {*cell.settings, *cell.within}


@every_study
def test_a_study_has_a_complete_schema_and_a_module_for_each_figure(checkout, name):
    study = loaded(checkout)[name]
    _check_cells(study)
    assert study.paper == study.config["paper"]
    module = study.module()
    for function in ("simulate", "tabulate"):
        assert callable(getattr(module, function, None)), function
    # Claims read tables alone: they stand apart from the code of cells.
    assert not hasattr(module, "claims")
    assert (
        {stem for stem in study.figures} == set(figures.functions(study.module("figures"))) if study.figures else True
    )


@every_study
def test_a_study_is_small_at_smoke_scale(built):
    """At smoke scale a study has a few cells at most, so that all of them can be rebuilt in every test run."""
    _check_cells(built)
    assert len(grid.expand(built)) <= 16


@every_study
def test_published_tables_are_whole_and_their_claims_can_be_scored(checkout, name):
    study = loaded(checkout)[name]
    if not study.ledger_path.is_file():
        pytest.skip(f"{name} is not published")
    _check_columns(study)
    _check_claims(study)
    for stem in study.figures:
        path = study.figure_path(stem)
        assert 1000 < path.stat().st_size <= 1_000_000, path


@every_study
def test_a_smoke_rebuild_gives_whole_tables_whose_claims_can_be_scored(built):
    _check_columns(built)
    _check_claims(built)


@every_study
def test_a_smoke_rebuild_draws_every_figure(built):
    for stem in built.figures:
        assert built.figure_path(stem).stat().st_size > 1000, stem


def texts_set(figure, path, dpi=0):
    """Set a figure's texts in place of saving it: a sample of sweeps is drawn in test_sweep_matrix.py."""
    for text in figure.findobj(Text) if path.suffix == ".png" else ():
        text.get_window_extent(figure.canvas.get_renderer())
    path.write_text("none")


@every_study
def test_a_sweep_over_a_part_of_the_grid_ends_with_a_table(built, tmp_path, monkeypatch):
    monkeypatch.setattr(style, "save", texts_set)
    some = grid.expand(built)[:1]
    asked = request.Request(built, some, [], True, None, False, tmp_path)
    paths = sweeps.write(asked, tmp_path, [], some).paths
    assert {".csv", ".json"} <= {path.suffix for path in paths}
    assert all(path.stat().st_size > 0 for path in paths)


def repeated(study, frame) -> pd.DataFrame:
    """Return the rows of a table that share all settings, positions, words and counts with another row."""
    named = {*study.schema.fields, *SIZES, *POSITIONS}
    key = [c for c in frame if c.removesuffix("_setting") in named or not _measured(frame[c])]
    return frame[frame.duplicated(key, keep=False)]


def _measured(column) -> bool:
    # A count with empty entries is a float, too.
    return pd.api.types.is_float_dtype(column) and bool((column.dropna() % 1 != 0).any())


@every_study
def test_no_two_rows_of_a_published_table_share_a_key(checkout, name):
    study = loaded(checkout)[name]
    for table in study.tables:
        frame = tables.read_table(study.table_path(table))
        assert repeated(study, frame).empty, table


@every_study
def test_no_two_rows_of_a_sweeps_tables_share_a_key(built):
    """Every point of the smoke grid is tabulated by itself: rows about several ε do not take the ε of their point."""
    points = [(cell, result) for cell in grid.expand(built) if (result := cells.stored(cell)) is not None]
    assert points
    asked = [key for key in ("seed", "epsilon") if key != "epsilon" or key in built.schema]
    found = tables.of_points(built, *map(list, zip(*points, strict=True)), asked)
    assert found.failed == {}
    for table, frame in found.tables.items():
        assert repeated(built, frame).empty, table
        assert frame.notna().any().all(), table


def test_a_row_that_is_there_twice_is_found():
    study = grid.load_study("zhang2016/naive_bayes")
    rows = pd.DataFrame(
        {"method": ["map", "map", "map"], "epsilon": [1.0, 1.0, None], "difference_mean": [0.1, 0.2, 0.3]}
    )
    assert list(repeated(study, rows).index) == [0, 1]
    # As when a row about all ε takes the ε of its point.
    assert list(repeated(study, rows.fillna({"epsilon": 1.0})).index) == [0, 1, 2]


# Cheap ones of each kind: closed forms, no figure, Monte Carlo, Markov chains, raw data.
SPREAD = (
    "geumlek2017/rdp_curves", "foulds2016/mechanisms_table", "foulds2016/sampling_error", "bernstein2018/calibration",
    "noise_aware/naive_bayes", "zhang2016/naive_bayes", "foulds2016/war_logs_states",
)  # fmt: skip
AGAIN = """
import dataclasses, os, sys
from pathlib import Path
import privpost.__main__
from privpost.lab import cells, grid, project, store, tables

os.umask(0o077)
os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
project.enter()
for study in reversed(grid.load_studies(sys.argv[1:] or None, "smoke")):
    if not study.ledger_path.is_file():
        continue
    study = dataclasses.replace(study, home=Path("build/again"))
    cells_again = [dataclasses.replace(cell, folder="build/again/cells") for cell in grid.expand(study)]
    for cell in reversed(cells_again):
        cells.compute(study, cell)
    tables.write(study, [store.read(cell.path) for cell in cells_again], tables.code_of(study))
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
    again, first = (clone / "build" / name / "results" for name in ("again", "smoke"))
    files = [path.relative_to(again) for path in again.rglob("*") if path.suffix in (".csv", ".json", ".md")]
    assert len(files) >= 2 * len(names)
    # Times are measured.
    files = [path for path in files if path.name not in ("war_logs_cpu.csv", "times.csv")]
    assert [path for path in files if (again / path).read_bytes() != (first / path).read_bytes()] == []
    assert all((again / path).stat().st_mode & 0o777 == 0o644 for path in files)
