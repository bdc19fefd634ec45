"""Rows of a table by the values of their columns, and tables as Markdown."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


def select(table, **values):
    """Return the rows with the given values of columns; None stands for an empty cell."""
    for name, value in values.items():
        table = table[table[name].isna()] if value is None else table[table[name] == value]
    return table


def one(table, **values):
    """Return the only row with the given values; raises ValueError where there is none or more."""
    found = select(table, **values)
    if len(found) != 1:
        raise ValueError(f"{len(found)} rows with {values}, expected one")
    return found.iloc[0]


def markdown(head: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """Return a table in Markdown; bars and line ends in its cells are escaped."""
    lines = [head, ["---"] * len(head), *rows]
    cells = ([str(cell).replace("|", "\\|").replace("\n", " ") for cell in line] for line in lines)
    return "\n".join(f"| {' | '.join(line)} |" for line in cells)
