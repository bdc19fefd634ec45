"""Marks for functions that draw figures from tables.

    @figure("fig2_sampling_error")
    def errors(sampling_error):
        '''L1 error of one posterior sample against the number of records. ...'''
        return ...

The mark names the figure's file. The docstring is the caption. The parameters name the tables that the function reads.
"""

import inspect
import re
import traceback
from collections.abc import Callable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

from privpost.lab.schema import SettingError

_MARK = re.compile(r'^@figure\(\s*"([^"]+)"', re.MULTILINE)


def figure(name: str) -> Callable[[Callable], Callable]:
    """Return a decorator that marks a function as the one that draws the figure of this name."""

    def mark(function: Callable) -> Callable:
        function.figure = name  # type: ignore[attr-defined]
        return function

    return mark


def names(path: Path) -> list[str]:
    """Return the names of the figures that a file's functions draw, in the order of the file."""
    return _MARK.findall(path.read_text(encoding="utf-8")) if path.is_file() else []


def functions(module: ModuleType) -> dict[str, Callable]:
    """Return a module's functions that draw figures, by the figures' names."""
    return {
        value.figure: value for value in vars(module).values() if inspect.isfunction(value) and hasattr(value, "figure")
    }


def parameters(function: Callable) -> list[str]:
    """Return the names of the tables that a figure's function takes as parameters."""
    return list(inspect.signature(function).parameters)


def draw(function: Callable, tables: Mapping[str, Any]) -> Any:
    """Return the figure that a function draws. Raises SettingError if one of its tables or columns is missing."""
    if lacking := [name for name in parameters(function) if name not in tables]:
        known = ", ".join(tables)
        raise SettingError(f"figure {function.figure}: there is no table {lacking[0]!r}; there are: {known}")
    read = {name: tables[name] for name in parameters(function)}
    try:
        return function(**read)
    except KeyError as error:
        last = traceback.extract_tb(error.__traceback__)[-1]
        if "pandas" not in Path(last.filename).parts:
            raise
        raise SettingError(
            f"figure {function.figure}: {' and '.join(read)} has no column or row named {error}. "
            "Published tables may be older than the code: make reproduce STUDY=<paper>/<study>, then make publish."
        ) from error
