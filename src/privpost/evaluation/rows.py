"""Rows of a table by the values of their columns, and tables as Markdown."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import product
from types import SimpleNamespace
from typing import Any


def places(settings: Any, *names: str, **others: Sequence) -> Iterator[tuple[tuple[int, ...], SimpleNamespace]]:
    """Yield each point of some axes: its index in arrays over them, and the settings with the axes' values there.

    Args:
        settings: attributes of which some are lists, the axes.
        names: the axes in the order of the arrays.
        others: the values of axes that are no settings, such as metrics; of named tuples each field is one.
    """
    axes = [others[name] if name in others else getattr(settings, name) for name in names]
    for index in product(*(range(len(axis)) for axis in axes)):
        point = SimpleNamespace(**vars(settings))
        for name, axis, i in zip(names, axes, index, strict=True):
            vars(point).update(axis[i]._asdict() if hasattr(axis[i], "_asdict") else {name: axis[i]})
        yield index, point


def private_places(settings: Any, *names: str, **others: Sequence) -> Iterator[tuple[tuple[int, ...], SimpleNamespace]]:
    """Yield `places`; the method `non_private`, which has no ε, only once, at the first ε, with None in its place."""
    for index, point in places(settings, *names, **others):
        if point.method == "non_private":
            if index[names.index("epsilon")] > 0:
                continue
            point.epsilon = None
        yield index, point


def columns(settings: Any, *names: str) -> dict[str, Any]:
    """Return some of the settings by name, as the columns of a row."""
    return {name: getattr(settings, name) for name in names}


def framed(rows: Iterable[dict[str, Any]], *first: str):
    """Return rows as a DataFrame with the columns `first` at the front, also those that no row has, before all others.

    No column of a row is left out.
    """
    import pandas as pd

    rows = list(rows)
    return pd.DataFrame(rows, columns=list(dict.fromkeys([*first, *(name for row in rows for name in row)])))


def select(table, **values):
    """Return the rows with the given values of columns; None stands for an empty cell."""
    for name, value in values.items():
        table = table[table[name].isna()] if value is None else table[table[name] == value]
    return table


def one(table, **values):
    """Return the only row with the given values; raises ValueError unless there is exactly one."""
    rows = select(table, **values)
    if len(rows) != 1:
        raise ValueError(f"{len(rows)} rows with {values}, expected one")
    return rows.iloc[0]


def markdown(head: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """Return a table in Markdown; bars and line ends in its cells are escaped."""
    lines = [head, ["---"] * len(head), *rows]
    cells = ([str(cell).replace("|", "\\|").replace("\n", " ") for cell in line] for line in lines)
    return "\n".join(f"| {' | '.join(line)} |" for line in cells)


def rendered(table, columns: Sequence[tuple[str, Callable[[Any], Any]]]) -> str:
    """Return a table as a Markdown file: each of `columns` is a heading and a function of a row that gives its cell."""
    lines = [[cell(row) for _, cell in columns] for row in table.itertuples()]
    return f"{markdown([heading for heading, _ in columns], lines)}\n"
