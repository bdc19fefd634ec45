"""Makes and selects rows of result tables, and writes tables as Markdown."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import product
from types import SimpleNamespace
from typing import Any


def places(settings: Any, *names: str, **others: Sequence) -> Iterator[tuple[tuple[int, ...], SimpleNamespace]]:
    """For each combination of the axes' values, yield its index in the result arrays, then its settings.

    Args:
        settings: object whose list-valued attributes can be axes.
        names: names of the axes, in the order of the result arrays.
        others: values of axes that are not settings, such as metrics. Each field of a named tuple becomes a setting.
    """
    axes = [others[name] if name in others else getattr(settings, name) for name in names]
    for index in product(*(range(len(axis)) for axis in axes)):
        point = SimpleNamespace(**vars(settings))
        for name, axis, i in zip(names, axes, index, strict=True):
            vars(point).update(axis[i]._asdict() if hasattr(axis[i], "_asdict") else {name: axis[i]})
        yield index, point


def private_places(settings: Any, *names: str, **others: Sequence) -> Iterator[tuple[tuple[int, ...], SimpleNamespace]]:
    """Yield `places`. The method `non_private` comes only at the first ε, and its epsilon is None."""
    for index, point in places(settings, *names, **others):
        if point.method == "non_private":
            if index[names.index("epsilon")] > 0:
                continue
            point.epsilon = None
        yield index, point


def columns(settings: Any, *names: str) -> dict[str, Any]:
    """Return the named settings as columns of a row."""
    return {name: getattr(settings, name) for name in names}


def framed(rows: Iterable[dict[str, Any]], *first: str):
    """Return rows as a DataFrame that begins with the columns `first`."""
    import pandas as pd

    rows = list(rows)
    return pd.DataFrame(rows, columns=list(dict.fromkeys([*first, *(name for row in rows for name in row)])))


def select(table, **values):
    """Return the rows whose columns have the given values. A value None selects empty cells."""
    for name, value in values.items():
        table = table[table[name].isna()] if value is None else table[table[name] == value]
    return table


def one(table, **values):
    """Return the only row whose columns have the given values. Any other number of rows raises a ValueError."""
    rows = select(table, **values)
    if len(rows) != 1:
        raise ValueError(f"{len(rows)} rows with {values}, expected one")
    return rows.iloc[0]


def markdown(head: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """Return a table in Markdown. In cells, vertical bars are escaped and line ends become spaces."""
    lines = [head, ["---"] * len(head), *rows]
    cells = ([str(cell).replace("|", "\\|").replace("\n", " ") for cell in line] for line in lines)
    return "\n".join(f"| {' | '.join(line)} |" for line in cells)


def rendered(table, columns: Sequence[tuple[str, Callable[[Any], Any]]]) -> str:
    """Return a table as Markdown text. Each of `columns` is a heading and a function that gives a row's cell."""
    lines = [[cell(row) for _, cell in columns] for row in table.itertuples()]
    return f"{markdown([heading for heading, _ in columns], lines)}\n"
