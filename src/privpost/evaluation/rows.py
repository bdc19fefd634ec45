"""Rows of a table by the values of their columns."""

from __future__ import annotations


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
