"""The environment of templates: jinja2, with an error for an unknown name, and filters that write numbers."""

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jinja2

from privpost.evaluation.rows import markdown


class Estimate(float):
    """A number of a table, with its standard error, if any. It is in brackets if no conclusion rests on it."""

    error: float | None = None
    bracketed: bool = False


class Grid(NamedTuple):
    """A table of labels and values, turned into Markdown by a filter."""

    head: Sequence[str]
    lines: Sequence[tuple[Sequence[str], Sequence[Any]]]


def environment(**options: Any) -> jinja2.Environment:
    """Return an environment for templates; `options` are options of jinja2, such as `loader` or `autoescape`."""
    fixed = {"undefined": jinja2.StrictUndefined, "finalize": number, "keep_trailing_newline": True}
    jinja = jinja2.Environment(**{**fixed, **options})
    jinja.filters |= FILTERS
    return jinja


def number(value: Any, form: str = ".4g") -> Any:
    """Return a number as text in a format, with a typographic minus sign; other values are not formatted.

    A number below ten millions that would need an exponent, such as 6.05e+03, is written out: 6,050.
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
    """Return, as text, a number with the given number of decimal places, or a grid as a table of such numbers."""
    return _written(value, lambda entry: number(entry, f".{places}f"))


def digits(value: Any, count: int = 4) -> str:
    """Return, as text, a number with the given number of significant digits, or a grid as a table of such numbers."""
    return _written(value, lambda entry: number(entry, f".{count}g"))


def scientific(value: Any, places: int = 1) -> str:
    """Return, as text, a number in scientific notation, or a grid as a table of such numbers."""
    return _written(value, lambda entry: number(entry, f".{places}e"))


def pm(value: Any, places: int = 3, kind: str = "f") -> str:
    """Return "estimate ± standard error", or a grid as a table of these; raises ValueError for a missing error."""

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
    """Return a share in per cent."""
    return f"{number(100 * value, f'.{places}f')} %"


def duration(seconds: float) -> str:
    """Return a time as text: in seconds below 90 seconds, in minutes below 90 minutes, else in hours."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def as_markdown(grid: Grid, text: Callable[[Any], str]) -> str:
    """Return a grid as a table in Markdown; the function `text` turns each value into text."""
    return markdown(
        grid.head,
        [[*labels, *("" if value is None else text(value) for value in values)] for labels, values in grid.lines],
    )


def _written(value: Any, text: Callable[[Any], str]) -> str:
    return as_markdown(value, text) if isinstance(value, Grid) else text(value)


FILTERS = {filter.__name__: filter for filter in (fixed, digits, scientific, pm, percent, duration)}
