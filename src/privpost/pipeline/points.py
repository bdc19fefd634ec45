"""Tables of any set of points: each point's own tables, under one another, with the settings that tell points apart."""

import pickle
import traceback
import zlib
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from privpost.pipeline import store, tables
from privpost.pipeline.study import Cell, Study, canonical

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

    Results are taken one after another, and the points' frames are packed until all are joined.

    A setting in `asked`, or one that differs between the cells, is a column: the study's own one of this name where it
    tells the points apart (empty entries, such as the ε of the true posterior, then take the point's value), else one
    of its own, `<setting>_setting` where the name is taken.
    """
    asked, known = set(asked), [*study.schema.fields, *cells[0].sizes]
    keys = [key for key in known if key in asked or len({canonical(value_of(cell, key)) for cell in cells}) > 1]
    parts, failed = {name: ([], [], _Frames()) for name in study.tables}, {}
    for cell, result in zip(cells, results, strict=True):
        try:
            frames = tables.tables_of(study, [result])
        except Exception as error:
            # One point's results must not cost the others theirs; the run ends with this error, and with its place.
            place = traceback.extract_tb(error.__traceback__)[-1]
            failed[cell.digest] = f"{type(error).__name__}: {error} ({place.filename}:{place.lineno})"
            continue
        for name, frame in frames.items():
            if not frame.empty:
                at, own, packed = parts[name]
                at.append(cell)
                own.append({key: tuple(frame[key].dropna().unique()) for key in keys if key in frame})
                packed.add(frame)
    made, settings, counts = {}, {key: {} for key in keys}, {}
    for name in study.tables:
        counts[name] = len(parts[name][0])
        if counts[name]:
            made[name], columns = _joined(*parts.pop(name), keys)
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


class _Frames:
    """Frames in the order of their coming, packed many at once: alone each takes a kilobyte, together a tenth."""

    def __init__(self):
        self._packs: list[bytes] = []
        self._open: list[Any] = []

    def add(self, frame: Any) -> None:
        self._open.append(frame)
        if len(self._open) == JOINED:
            self._packs.append(zlib.compress(pickle.dumps(self._open), 1))
            self._open = []

    def __iter__(self) -> Iterator[Any]:
        for pack in self._packs:
            yield from pickle.loads(zlib.decompress(pack))
        yield from self._open


def _joined(cells: list[Cell], all_own: list[dict], packed: _Frames, keys: list[str]) -> tuple[Any, dict[str, str]]:
    """Return the points' packed frames as one, and the column of each key; `all_own` are the frames' own entries."""
    import pandas as pd

    columns, added = {}, {}
    for key in keys:
        values = [_word(value_of(cell, key)) for cell in cells]
        own = [entries.get(key, ()) for entries in all_own]
        if all(key not in entries for entries in all_own):
            columns[key] = key
        elif _tells_apart(values, own):
            columns[key] = key
            values = [next(iter(entries), value) for value, entries in zip(values, own, strict=True)]
        else:
            columns[key] = f"{key}_setting"
        added[columns[key]] = values
    joined, frames = [], []
    for place, frame in enumerate(packed):
        for column, values in added.items():
            if column not in frame:
                frame.insert(len([c for c in added if c in frame]), column, values[place])
            elif frame[column].isna().any() and values[place] is not None:
                frame[column] = frame[column].astype(object).where(frame[column].notna(), values[place]).infer_objects()
        frames.append(frame.dropna(axis="columns", how="all"))
        if len(frames) == JOINED:
            joined.append(pd.concat(frames, ignore_index=True))
            frames = []
    return pd.concat([*joined, *frames], ignore_index=True), columns


def _tells_apart(values: list, own: list[tuple]) -> bool:
    """Whether a table's own column has one entry a point, another one for another value of the setting."""
    if any(len(entries) > 1 for entries in own):
        return False
    seen: dict[str, str] = {}
    for value, entries in zip(values, own, strict=True):
        for entry in entries:
            if seen.setdefault(str(entry), str(value)) != str(value):
                return False
    return any(own)
