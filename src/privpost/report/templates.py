"""Texts with placeholders `{{ name }}` and `{{ name | format }}`, so that no measured number is ever typed."""

import re
from collections.abc import Mapping
from typing import Any

from privpost.report.quotes import number

PLACEHOLDER = re.compile(r"\{\{\s*([^{}|]+?)\s*(?:\|\s*([^{}]+?)\s*)?\}\}")

# A number that no table could contradict, marked as such: `{{ constant 0.05 }}`.
CONSTANT = "constant "


def render(text: str, values: Mapping[str, Any], where: str = "template") -> str:
    """Return the text with each placeholder replaced by its value.

    A format is Python's (`.3g`), or `duration` (of seconds), `memory` (of MiB), `percent`; `{{ constant 0.05 }}` is
    the text that follows. Raises ValueError naming an unknown placeholder, with the nearest known one.
    """
    from privpost.lab.schema import suggest

    def value(match: re.Match) -> str:
        name, form = match[1], match[2]
        if name.startswith(CONSTANT):
            return name.removeprefix(CONSTANT)
        try:
            quoted = values[name]
        except KeyError:
            raise ValueError(f"{where}: there is no number {name!r}.{suggest(name, values)}") from None
        try:
            return formatted(quoted, form)
        except (TypeError, ValueError) as error:
            raise ValueError(f"{where}: {name} is {quoted!r}, which the format {form!r} cannot show") from error

    return PLACEHOLDER.sub(value, text)


def formatted(value: Any, form: str | None = None) -> str:
    """Return one value in a format; without one, numbers are shown at four digits."""
    if value in ("inf", "-inf"):
        value = float(value)
    if form == "duration":
        return duration(float(value))
    if form == "memory":
        return f"{value:.0f} MiB" if value < 1024 else f"{value / 1024:.1f} GiB"
    if form == "percent":
        return f"{100 * value:.0f} %"
    return number(value, form or "") if isinstance(value, int | float) else format(value, form or "")


def duration(seconds: float) -> str:
    """Return a time as a reader would say it: seconds below 90, then minutes, then hours."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
