"""The jinja2 environment of all templates, with filters that write numbers."""

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jinja2

from privpost.evaluation.rows import markdown


class Estimate(float):
    """A number of a table with its standard error or None. A number on which no conclusion rests is in brackets."""

    error: float | None = None
    bracketed: bool = False


class Grid(NamedTuple):
    """A table of labels and values, which filters turn into Markdown."""

    head: Sequence[str]
    lines: Sequence[tuple[Sequence[str], Sequence[Any]]]


def environment(**options: Any) -> jinja2.Environment:
    """Return an environment for templates, with further options of jinja2 such as `loader`."""
    fixed = {"undefined": jinja2.StrictUndefined, "finalize": number, "keep_trailing_newline": True}
    jinja = jinja2.Environment(**{**fixed, **options})
    jinja.filters |= FILTERS
    return jinja


def number(value: Any, form: str = ".4g") -> Any:
    """Return a number as text in a format, with a typographic minus sign. Other values are not formatted.

    A number below ten millions is written without an exponent: 6,050 instead of 6.05e+03.
    """
    if isinstance(value, Grid):
        return as_markdown(value, number)
    if callable(value) and not isinstance(value, jinja2.Undefined):
        raise TypeError(f"{value!r} is a function: call it")
    if isinstance(value, bool) or not isinstance(value, int | float):
        return value if isinstance(value, jinja2.Undefined) else str(value)
    if math.isnan(value):
        return ""
    text = format(value, "" if isinstance(value, int) and form == ".4g" else form).replace("-", "−")
    if "e+" in text and form.endswith("g") and abs(value) < 1e7:
        text = f"{float(text.replace('−', '-')):,.0f}".replace("-", "−")
    return f"({text})" if getattr(value, "bracketed", False) else text


def fixed(value: Any, places: int = 2) -> str:
    """Return a number or a grid as text with the given number of decimal places."""
    return _written(value, lambda entry: number(entry, f".{places}f"))


def digits(value: Any, count: int = 4) -> str:
    """Return a number or a grid as text with the given number of significant digits."""
    return _written(value, lambda entry: number(entry, f".{count}g"))


def scientific(value: Any, places: int = 1) -> str:
    """Return a number or a grid as text in scientific notation."""
    return _written(value, lambda entry: number(entry, f".{places}e"))


def pm(value: Any, places: int = 3, kind: str = "f") -> str:
    """Return a number or a grid as text with standard errors. Raise ValueError if a standard error is missing."""

    def text(estimate: Any) -> str:
        if not isinstance(estimate, Estimate):
            return number(estimate)
        if estimate.error is None:
            raise ValueError(f"{estimate!r} has no standard error in its table")
        shown = number(float(estimate), f".{places}{kind}")
        shown = shown and f"{shown} ± {number(estimate.error, f'.{places}{kind}')}"
        return f"({shown})" if estimate.bracketed and shown else shown

    return _written(value, text)


def percent(value: float, places: int = 0) -> str:
    """Return a share as text in per cent."""
    return f"{number(100 * value, f'.{places}f')} %"


def duration(seconds: float) -> str:
    """Return a time as text in seconds, minutes or hours."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def as_markdown(grid: Grid, text: Callable[[Any], str]) -> str:
    """Return a grid as a table in Markdown, where the function `text` turns each value into text."""
    return markdown(
        grid.head,
        [[*labels, *("" if value is None else text(value) for value in values)] for labels, values in grid.lines],
    )


def _written(value: Any, text: Callable[[Any], str]) -> str:
    return as_markdown(value, text) if isinstance(value, Grid) else text(value)


FILTERS = {filter.__name__: filter for filter in (fixed, digits, scientific, pm, percent, duration)}
