"""What a template may quote: collected numbers by name, and cells and small tables straight from the results.

- `zhang2016/stealth[t=0.01, epsilon=1].bound`: one cell; the conditions have to single out one row.
- `largest zhang2016/bounds[statement=theorem_3].margin`: also `smallest`, `median`, and `count` (without a column).
- `….accuracy_mean ± accuracy_sem`: two cells of one row.
- `table zhang2016/stealth[…] rows t columns epsilon value stealth_rate ± stealth_sem`: a table in Markdown; a name may
  be followed by a heading in brackets, `value largest …` takes the largest of several rows, and rows without a value of
  the column axis stand for all of them. With `… unless converged` at the end, cells of rows whose `converged` is false
  stand in brackets.

Conditions are `=`, `!=`, `<=`, `>=`, `<` or `>`; `epsilon=` asks for no value,
`epsilon=0.1 or 1` for one of several. Numbers are equal within a thousandth.
"""

import math
import operator
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from privpost.evaluation.claims import plain
from privpost.evaluation.rows import markdown
from privpost.lab import tables

SOURCE = re.compile(r"(\w+/\w+)\[([^\]]*)\]")
CELL = re.compile(rf"(?:(largest|smallest|median|count) )?{SOURCE.pattern}(?:\.(\w+)(?: ± (\w+))?)?")
TABLE = re.compile(
    rf"table {SOURCE.pattern} rows (.+?) columns (\w+)(?: \((.+?)\))? value (largest )?(\w+)(?: ± (\w+))?"
    r"(?: unless (\w+))?"
)
_NAMED = re.compile(r"(\w+)(?: \((.+?)\))?(?:, |$)")
_CONDITION = re.compile(r"(\w+)(<=|>=|!=|=|<|>)(.*)")
_ORDERS = {"<=": operator.le, ">=": operator.ge, "<": operator.lt, ">": operator.gt}
# A document names a value such as 2.154 of a logarithmic grid by its first digits.
TOLERANCE = 1e-3


class Quotes(dict):
    """Numbers by name; a name that asks for cells of a table below `root` is answered from that table.

    Raises KeyError for any other name, ValueError naming the quotation when it does not fit its table.
    """

    def __init__(self, root: Path, *numbers: dict[str, Any]):
        super().__init__()
        for part in numbers:
            self.update(part)
        self._root = root
        self.tables: dict[str, Any] = {}

    def __missing__(self, name: str) -> Any:
        if match := CELL.fullmatch(name):
            return self._cell(name, *match.groups())
        if match := TABLE.fullmatch(name):
            return self._pivot(name, *match.groups())
        raise KeyError(name)

    def _rows(self, name: str, source: str, conditions: str):
        if source not in self.tables:
            self.tables[source] = tables.read_table(self._root / f"{source}.csv")
        table = self.tables[source]
        # Values such as `Beta(10, 10)` hold a comma too.
        for condition in re.split(r", (?=\w+(?:[<>]|!?=))", conditions) if conditions else ():
            match = _CONDITION.fullmatch(condition)
            if not match or match[1] not in table:
                raise ValueError(f"{name}: {condition!r} is no condition on the columns {', '.join(table.columns)}")
            table = table[_fulfilled(table[match[1]], match[2], match[3])]
        return table

    def _cell(self, name: str, how: str | None, source: str, conditions: str, column: str | None, sem: str | None):
        rows = self._rows(name, source, conditions)
        if how == "count":
            return len(rows)
        for wanted in (column, sem) if sem else (column,):
            if wanted not in rows:
                raise ValueError(f"{name}: {wanted!r} is none of the columns {', '.join(rows.columns)}")
        if how:
            values = rows[column].dropna().astype(float)
            if values.empty:
                raise ValueError(f"{name}: no row fits")
            return float({"largest": values.max, "smallest": values.min, "median": values.median}[how]())
        if len(rows) != 1:
            raise ValueError(f"{name}: {len(rows)} rows fit, but one value is quoted")
        value = plain(rows[column].iloc[0])
        return MeanError(value, plain(rows[sem].iloc[0])) if sem else value

    def _pivot(self, name, source, conditions, rows, columns, heading, how, value, sem, sound):
        found = self._rows(name, source, conditions)
        axes = _NAMED.findall(rows)
        keys = [axis for axis, _ in axes]
        if lacking := {*keys, columns, value, *filter(None, (sem, sound))} - set(found.columns):
            raise ValueError(f"{name}: the table has no column {', '.join(sorted(lacking))}")
        if found.empty:
            raise ValueError(f"{name}: no row fits")
        across = sorted(found[columns].dropna().unique()) or [None]
        cells: dict[tuple, dict] = {}
        for row in found.to_dict("records"):
            line = cells.setdefault(tuple(_label(key, row[key]) for key in keys), {})
            at = across if _lacking(row[columns]) else [row[columns]]
            for place in at:
                if place in line and not how:
                    raise ValueError(f"{name}: two rows fit at {columns} = {place}")
                shown = MeanError(plain(row[value]), plain(row[sem])) if sem else plain(row[value])
                if sound and not row[sound]:
                    shown = Bracketed(shown)
                line[place] = max(line.get(place, shown), shown) if how else shown
        prefix = "" if all(isinstance(place, str) for place in across) else f"{heading or columns} = "
        head = [title or axis for axis, title in axes] + [prefix + _label(columns, place) for place in across]
        return Grid(head, [(label, [line.get(place) for place in across]) for label, line in cells.items()])


class MeanError:
    """A mean and its standard error, shown in one format."""

    def __init__(self, mean: float, error: float):
        self.mean, self.error = mean, error

    def __format__(self, form: str) -> str:
        return f"{number(self.mean, form)} ± {number(self.error, form)}"


class Bracketed:
    """A value that supports nothing, in brackets."""

    def __init__(self, value: Any):
        self.value = value

    def __format__(self, form: str) -> str:
        shown = number(self.value, form)
        return f"({shown})" if shown else ""


class Grid:
    """A table of labels and values; its format is that of the values."""

    def __init__(self, head: Sequence[str], lines: Sequence[tuple[Sequence[str], Sequence[Any]]]):
        self._head, self._lines = head, lines

    def __format__(self, form: str) -> str:
        lines = [["" if v is None else number(v, form) for v in values] for _, values in self._lines]
        rows = [[*labels, *shown] for (labels, _), shown in zip(self._lines, lines, strict=True)]
        return markdown(self._head, rows)


def number(value: Any, form: str = "") -> str:
    """Return a value in a format, numbers with a typographic minus sign; words stay as they are."""
    if isinstance(value, str | bool):
        return str(value)
    if isinstance(value, float) and math.isnan(value):
        return ""
    return format(value, form or ".4g" if isinstance(value, float) else form).replace("-", "−")


def _fulfilled(column, relation: str, wanted: str):
    """Return which entries of a column fulfil a condition; `wanted` is a number, a word, nothing, or several."""
    if relation in _ORDERS:
        return _ORDERS[relation](column.astype(float), float(wanted))
    found = column.isna() & False
    for part in wanted.split(" or "):
        if part == "":
            found |= column.isna()
        elif column.dtype.kind in "if":
            found |= (column - float(part)).abs() <= TOLERANCE * abs(float(part))
        else:
            found |= column.astype(str) == part
    return ~found if relation == "!=" else found


def _lacking(value: Any) -> bool:
    return value is None or (isinstance(value, float) and math.isnan(value))


def _label(column: str, value: Any) -> str:
    from privpost.drawing import style

    if _lacking(value):
        return ""
    if column == "method":
        return style.look(value).label
    return number(float(value), ".4g") if isinstance(value, float) else number(plain(value))
