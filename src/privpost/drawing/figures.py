"""Figures: functions of tables, marked with the name of their file; the function's docstring is the caption.

    @figure("fig2_sampling_error")
    def errors(sampling_error):
        '''L1 error of one posterior sample against the number of records. ...'''
        return ...

The function's parameters name the tables that it reads.
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
    """Mark a function of tables as the one that draws the figure of this name."""

    def mark(function: Callable) -> Callable:
        function.figure = name  # type: ignore[attr-defined]
        return function

    return mark


def names(path: Path) -> list[str]:
    """Return the names of the figures that a file draws, in the file's order, without importing it."""
    return _MARK.findall(path.read_text(encoding="utf-8")) if path.is_file() else []


def functions(module: ModuleType) -> dict[str, Callable]:
    """Return the functions of a module that draw figures, by the figure's name."""
    return {
        value.figure: value for value in vars(module).values() if inspect.isfunction(value) and hasattr(value, "figure")
    }


def parameters(function: Callable) -> list[str]:
    """Return the names of the tables that a function draws from."""
    return list(inspect.signature(function).parameters)


def draw(function: Callable, tables: Mapping[str, Any]) -> Any:
    """Return the figure that a function draws from the tables that its parameters name.

    Raises SettingError, naming the figure, for a table that is not there, and for a column that none of them has.
    """
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
