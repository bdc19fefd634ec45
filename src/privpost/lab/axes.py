"""The axes of a grid: lists of values, or maps with start, stop, num and spacing."""

import math
from collections.abc import Mapping
from typing import Any

from privpost.lab.schema import Choice, Integer, Real, Schema, SettingError

# What a grid, a sweep or an axis may hold at most: more is a slip of the pen, and would take all memory to expand.
LARGEST_GRID = 1_000_000


def check_size(size: int, where: str) -> None:
    """Raise SettingError, beginning with `where`, for more points than a grid may have."""
    if size > LARGEST_GRID:
        raise SettingError(f"{where} has {size} points, but a grid may have at most {LARGEST_GRID}.")


def axis_values(values: Any, where: str) -> list:
    """Return an axis as a list: a list itself, or a map with start, stop, num and spacing (linear or log).

    Raises SettingError, beginning with `where`, for anything else and for an axis without values.
    """
    if isinstance(values, Mapping):
        return _spaced(values, where)
    if not isinstance(values, list) or not values:
        raise SettingError(f"{where} is {values!r}, but an axis must be a list of at least one value.")
    return values


def _spaced(axis: Mapping, where: str) -> list[float]:
    unknown = set(axis) - {"start", "stop", "num", "spacing"}
    if unknown or not {"start", "stop", "num"} <= set(axis):
        raise SettingError(f"{where} is {dict(axis)}; an axis given as a map needs start, stop, num (and spacing).")
    fields = Schema(
        start=Real(), stop=Real(), num=Integer(at_least=2, at_most=LARGEST_GRID), spacing=Choice("linear", "log")
    )
    checked = fields.checked({"spacing": "linear", **axis}, where)
    start, stop, log = checked["start"], checked["stop"], checked["spacing"] == "log"
    if log and not (start > 0 and stop > 0):
        raise SettingError(f"{where}: start is {start:g} and stop is {stop:g}, but log spacing needs both above 0.")
    if log:
        start, stop = math.log(start), math.log(stop)
    numbers = (start + i / (checked["num"] - 1) * (stop - start) for i in range(checked["num"]))
    # Twelve digits: the axis is the same on every machine, and reads well in a table.
    return [float(f"{math.exp(number) if log else number:.12g}") for number in numbers]
