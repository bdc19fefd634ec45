"""Tables of any set of points: each point's own tables, under one another, with the settings that tell points apart."""

import traceback
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from privpost.lab import store, tables
from privpost.lab.study import Cell, Study, canonical

# Frames that are joined at once: a frame of one row takes as much memory as a hundred rows of a long one.
JOINED = 500


class Points(NamedTuple):
    """What a set of points gave.

    Attributes:
        tables: name → DataFrame, without those that are empty.
        settings: the settings that differ between points or were asked for, each with its column in every table:
            setting → table → column. No column: the table does not depend on it.
        counts: how many points have rows in each of the study's tables.
        failed: the errors of cells whose results could not be tabulated, by digest.
    """

    tables: dict[str, Any]
    settings: dict[str, dict[str, str]]
    counts: dict[str, int]
    failed: dict[str, str]

    def notes(self, total: int) -> list[str]:
        """Return a sentence on each table that not all of the points have rows in."""
        return [
            f"The table {name} has rows of {count} of {total} points."
            if count
            else f"The table {name} is left out: these points have no row in it."
            for name, count in self.counts.items()
            if count < total
        ]


def tabulate(study: Study, cells: Sequence[Cell], results: Iterable[store.Result], asked: Iterable[str] = ()) -> Points:
    """Return the tables of some points; each is tabulated by itself, so any set of them can be put together.

    Results are taken one after another, and the points' frames are joined as they come.

    A setting in `asked`, or one that differs between the cells, is a column: the study's own one of this name where it
    tells the points apart (empty entries, such as the ε of the true posterior, then take the point's value), else one
    of its own, `<setting>_setting` where the name is taken.
    """
    import pandas as pd

    asked, known = set(asked), [*study.schema.fields, *cells[0].sizes]
    keys = [key for key in known if key in asked or len({canonical(value_of(cell, key)) for cell in cells}) > 1]
    parts, failed = {name: _Rows(keys) for name in study.tables}, {}
    for cell, result in zip(cells, results, strict=True):
        try:
            # Joined texts of Arrow would stay a piece a point, each of a kilobyte.
            with pd.option_context("mode.string_storage", "python"):
                frames = tables.tables_of(study, [result])
        except Exception as error:
            # One point's results must not cost the others theirs; the run ends with this error, and with its place.
            place = traceback.extract_tb(error.__traceback__)[-1]
            failed[cell.digest] = f"{type(error).__name__}: {error} ({place.filename}:{place.lineno})"
            continue
        for name, frame in frames.items():
            if not frame.empty:
                parts[name].add(cell, frame)
    made, settings, counts = {}, {key: {} for key in keys}, {}
    for name in study.tables:
        rows = parts.pop(name)
        counts[name] = len(rows.cells)
        if rows.cells:
            columns = rows.columns()
            made[name] = rows.joined(columns)
            for key, column in columns.items():
                settings[key][name] = column
    return Points(made, settings, counts, failed)


def value_of(cell: Cell, key: str) -> Any:
    """Return a cell's value of a setting, a size, or a within axis: its one value, or the list of them."""
    if key in cell.within:
        values = cell.within[key]
        return values[0] if len(values) == 1 else values
    return cell.settings[key] if key in cell.settings else cell.sizes[key]


def _word(value: Any) -> Any:
    """Return a setting's value as a table has it: a list is text."""
    return " ".join(map(str, value)) if isinstance(value, list) else value


class _Rows:
    """The rows of one table, joined as points come.

    Attributes:
        cells: the points that have rows.
    """

    def __init__(self, keys: list[str]):
        self.cells: list[Cell] = []
        self._keys = keys
        # A key's entries in the table's own column → the value of the points that have it; None: not told apart by it.
        self._own: dict[str, dict[str, str] | None] = {}
        self._open: list[Any] = []
        self._joined: list[Any] = []

    def add(self, cell: Cell, frame: Any) -> None:
        """Take a point's rows."""
        self.cells.append(cell)
        for key in self._keys:
            if key in frame and self._own.setdefault(key, {}) is not None:
                self._note(key, frame[key].dropna().unique(), str(_word(value_of(cell, key))))
        self._open.append(frame.dropna(axis="columns", how="all"))
        if len(self._open) == JOINED:
            self._join()

    def _note(self, key: str, entries: Sequence, value: str) -> None:
        """Note a point's entries: a column tells points apart by one entry each, other ones for other values."""
        seen = self._own[key]
        if len(entries) > 1 or any(seen.setdefault(str(entry), value) != value for entry in entries):
            self._own[key] = None

    def _join(self) -> None:
        import pandas as pd

        first = len(self.cells) - len(self._open)
        frame = pd.concat(self._open, ignore_index=True)
        # The index says which point a row is of.
        frame.index = np.repeat(np.arange(first, len(self.cells)), list(map(len, self._open)))
        self._joined.append(frame)
        self._open = []

    def columns(self) -> dict[str, str]:
        """Return the column of each key: one of its name where there is none or it tells points apart, else another."""
        return {key: key if self._own.get(key, {"": ""}) else f"{key}_setting" for key in self._keys}

    def joined(self, columns: dict[str, str]) -> Any:
        """Return all rows as one DataFrame, with a column for each key."""
        import pandas as pd

        if self._open:
            self._join()
        for key, column in columns.items():
            values = np.empty(len(self.cells), dtype=object)
            values[:] = [_word(value_of(cell, key)) for cell in self.cells]
            for place, frame in enumerate(self._joined):
                given = pd.Series(values[frame.index].tolist(), frame.index)
                if column not in frame:
                    frame.insert(len([c for c in columns.values() if c in frame]), column, given)
                elif frame[column].isna().any():
                    self._joined[place] = frame.assign(**{column: _completed(frame[column], given)})
        return pd.concat(self._joined, ignore_index=True)


def _completed(column: Any, given: Any) -> Any:
    """Return a column whose empty entries are its point's own one, or else the given value."""
    own = column.groupby(level=0).transform("first")
    for values in (own, given):
        column = column.astype(object).where(column.notna() | values.isna(), values).infer_objects()
    return column
