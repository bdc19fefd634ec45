"""No two rows of a table share a key: of the published tables, and of sweeps, point by point, at smoke scale."""

from __future__ import annotations

import pandas as pd
from test_studies import built, every_study, loaded

from privpost.lab import cells, grid, tables
from privpost.lab.study import SIZES

__all__ = ["built"]
# Numbers along which a table goes, beside its settings.
POSITIONS = {"u", "theta", "power", "steps", "beta", "epsilon", "order", "log_epsilon"}


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
