"""Functions with which templates quote numbers from the published tables.

    {{ cell("zhang2016/stealth", "bound", t=0.01, epsilon=1) | fixed(3) }}
    {{ cell("fair_axis/logistic", "mean", dataset="adult", method="ops", epsilon=2) | pm(3) }}
    {{ largest("zhang2016/bounds", "margin", statement="theorem_3") | digits }}
    {{ pivot("zhang2016/stealth", rows="t", columns="epsilon", value="stealth_rate") | fixed(2) }}
    {{ number("Z6/largest ratio") | fixed(2) }}

A condition on a column is a value, a list of values, `none` for an empty entry, `unlike(value)` or `above(value)`. The
filter `pm` shows the standard error from the column that `tables.error_of` names.
"""

import functools
import json
import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from privpost.lab import published, tables
from privpost.lab.claims import plain
from privpost.report import scorecard
from privpost.report.templates import Estimate, Grid, number

# Relative tolerance of conditions. Documents give the first digits of values on a logarithmic grid, such as 2.154.
TOLERANCE = 1e-3
# Headings of columns for which the papers use a letter.
SYMBOLS = {"epsilon": "ε", "log_epsilon": "ln ε", "order": "λ", "beta": "β", "noise_variance": "σ²", "dataset": "data"}
SYMBOLS |= {"prior_precision": "b", "truncation": "M"}


class Unlike(NamedTuple):
    """The condition that the entry of a column differs from a value."""

    value: Any


class Above(NamedTuple):
    """The condition that the entry of a column is larger than a number."""

    value: float


class Quotes:
    """The tables in a folder of results. Methods raise ValueError for a quotation that does not fit its table."""

    def __init__(self, results: Path):
        self.results = results
        self.tables: dict[str, Any] = {}
        # Tables and columns that templates quoted.
        self.asked: dict[tuple[str, str], None] = {}
        self._numbers: dict[str, Any] | None = None

    def names(self) -> dict[str, Callable]:
        """Return the functions that templates call, by name."""
        functions = {name: getattr(self, name) for name in ("cell", "pivot", "number", "verdict", "count")}
        summaries = {"largest": "max", "smallest": "min", "median": "median", "total": "sum"}
        functions |= {name: functools.partial(self._summary, how) for name, how in summaries.items()}
        return {**functions, "unlike": Unlike, "above": Above}

    def _path(self, table: str) -> Path:
        """Return the path of the table `<paper>/<table>`."""
        paper, _, name = table.rpartition("/")
        paths = sorted(self.results.glob(f"{paper}/*/{name}.csv" if paper else f"{name}.csv"))
        if not paths and f"{table}.csv" in published.MEASURED:
            # Tables of benchmarks are made by no rebuild.
            return published.RESULTS / f"{table}.csv"
        if len(paths) > 1:
            raise ValueError(f"{table} is the name of several tables: {', '.join(map(str, paths))}")
        return next(iter(paths), self.results / f"{table}.csv")

    def rows(self, table: str, where: Mapping[str, Any]):
        """Return the rows of a table that fulfil all conditions."""
        if table not in self.tables:
            self.tables[table] = tables.read_table(self._path(table))
        rows = self.tables[table]
        fits = None
        for column, wanted in where.items():
            _check_column(rows, column, table, where)
            fitting = _fulfilled(rows[column], wanted)
            fits = fitting if fits is None else fits & fitting
        return rows if fits is None else rows[fits]

    def cell(self, table: str, column: str, error: str = "", **where: Any) -> Any:
        """Return the value of a column in the single row that fulfils the conditions."""
        rows = self._of(table, column, where)
        if len(rows) != 1:
            raise ValueError(f"{_called(table, where)}: {len(rows)} rows fit, but one value is quoted")
        return _value(rows.to_dict("records")[0], column, error)

    def number(self, name: str) -> Any:
        """Return a number in the evidence for a claim, given `<id of the claim>/<name of the number>`."""
        if self._numbers is None:
            card = scorecard.read(self.results / "scorecard.csv")
            self._numbers = {}
            for row in card[card.id != ""].itertuples():
                named = scorecard.leaves({row.id: {"verdict": row.verdict, **json.loads(row.evidence)}}, "/")
                self._numbers |= {name: value for name, value in named if not isinstance(value, list)}
        if name not in self._numbers:
            from privpost.lab.schema import suggest

            raise ValueError(f"there is no number {name!r}.{suggest(name, self._numbers)}")
        self.asked["scorecard", name] = None
        value = self._numbers[name]
        return float(value) if value in ("inf", "-inf") else value

    def verdict(self, id: str) -> str:
        """Return the verdict on the claim with this id."""
        return self.number(f"{id}/verdict")

    def count(self, table: str, **where: Any) -> int:
        """Return how many rows of a table fulfil the conditions."""
        return len(self.rows(table, where))

    def _summary(self, how: str, table: str, column: str, **where: Any) -> float:
        values = self._of(table, column, where)[column].dropna().astype(float)
        if values.empty:
            raise ValueError(f"{_called(table, where)}: no row fits")
        return float(getattr(values, how)())

    def _of(self, table: str, column: str, where: Mapping[str, Any]):
        import pandas as pd

        rows = self.rows(table, where)
        _check_column(rows, column, table, where)
        self.asked[table, column] = None
        if rows[column].dtype.kind in "bif":
            return rows
        # Some columns have words in other rows.
        numbers = pd.to_numeric(rows[column], errors="coerce")
        return rows.assign(**{column: numbers}) if (numbers.isna() == rows[column].isna()).all() else rows

    def pivot(
        self,
        table: str,
        rows: str | Sequence[str] | Mapping[str, str],
        columns: str | Mapping[str, str],
        value: str,
        *,
        error: str = "",
        how: str = "",
        unless: str = "",
        **where: Any,
    ) -> Grid:
        """Return a column's values as a grid over the values of other columns.

        Args:
            table: a table's name, `<paper>/<table>`.
            rows: the columns that label a line of the grid, or a map from these columns to headings.
            columns: the column whose values become columns of the grid. A row without a value fills the whole line.
            error: the column with the standard error of `value`, if it is not the one that `tables.error_of` names.
            how: "largest" takes the largest value of several rows. By default, several rows are an error.
            unless: a column of truth values. Values from rows where this column is false are in brackets.
        """
        fitting = self._of(table, value, where)
        keys, (across, heading) = _headings(rows), next(iter(_headings(columns).items()))
        if lacking := {*keys, across, *filter(None, (error, unless))} - set(fitting.columns):
            raise ValueError(f"{_called(table, where)}: the table has no column {', '.join(sorted(lacking))}")
        if fitting.empty:
            raise ValueError(f"{_called(table, where)}: no row fits")
        places = sorted(fitting[across].dropna().unique()) or [None]
        cells: dict[tuple, dict] = {}
        for row in fitting.to_dict("records"):
            line = cells.setdefault(tuple(_label(key, row[key]) for key in keys), {})
            shown = _value(row, value, error)
            if unless and isinstance(shown, Estimate):
                shown.bracketed = not row[unless]
            for place in places if _lacking(row[across]) else [row[across]]:
                if place in line and not how:
                    raise ValueError(f"{_called(table, where)}: two rows fit at {across} = {place}")
                line[place] = max(line.get(place, shown), shown)
        prefix = "" if all(isinstance(place, str) for place in places) else f"{heading} = "
        head = [*keys.values(), *(prefix + _label(across, place) for place in places)]
        return Grid(head, [(label, [line.get(place) for place in places]) for label, line in cells.items()])


def _check_column(rows, column: str, table: str, where: Mapping[str, Any]) -> None:
    if column not in rows:
        raise ValueError(f"{_called(table, where)}: {column!r} is none of the columns {', '.join(rows.columns)}")


def _called(table: str, where: Mapping[str, Any]) -> str:
    return ", ".join([table, *(f"{name}={value!r}" for name, value in where.items())])


def _headings(names: str | Sequence[str] | Mapping[str, str]) -> dict[str, str]:
    if isinstance(names, Mapping):
        return dict(names)
    return {name: SYMBOLS.get(name, name) for name in ([names] if isinstance(names, str) else names)}


def _value(row: Mapping[str, Any], column: str, error: str) -> Any:
    value = plain(row[column])
    if not isinstance(value, float):
        return value
    shown, sem = Estimate(value), error or tables.error_of(column)
    shown.error = float(row[sem]) if sem in row else None
    return shown


def _fulfilled(column, wanted: Any):
    """Return whether each entry of a column fulfils a condition."""
    if isinstance(wanted, Unlike):
        return ~_fulfilled(column, wanted.value)
    if isinstance(wanted, Above):
        return column.astype(float) > wanted.value
    fits = column.isna() & False
    for value in wanted if isinstance(wanted, list | tuple) else [wanted]:
        if value is None:
            fits |= column.isna()
        elif column.dtype.kind == "i":
            fits |= column == value
        elif column.dtype.kind == "f":
            fits |= (column - value).abs() <= TOLERANCE * abs(value)
        else:
            fits |= column.astype(str) == str(value)
    return fits


def _lacking(value: Any) -> bool:
    return value is None or (isinstance(value, float) and math.isnan(value))


def _label(column: str, value: Any) -> str:
    from privpost.drawing import style

    if _lacking(value):
        return ""
    return style.look(value).label if column == "method" else number(plain(value))
