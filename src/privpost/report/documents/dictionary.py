"""What docs/dictionary.md shows: every column of every table and every setting, with its meaning and unit."""

import csv
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from privpost.evaluation.rows import markdown
from privpost.lab import grid
from privpost.lab.plan import Plan
from privpost.lab.study import Study

FILE = Path("docs/templates/dictionary.yaml")
_ERROR = "_sem"
# Tables or studies that are named for one meaning; a name that stands in more of them is everywhere.
SHOWN = 6


class Entry(NamedTuple):
    """The meaning of a name, and its unit; "" for names, truth values and numbers without one."""

    meaning: str
    unit: str


def read() -> dict[str, Entry]:
    """Return the meanings by name, and by `<paper>/<table or study>.<name>`.

    Raises ValueError naming a line that is not `name: meaning | unit`.
    """
    found = {}
    for name, text in yaml.safe_load(FILE.read_text(encoding="utf-8")).items():
        meaning, bar, unit = str(text).rpartition("|")
        if not (bar and meaning.strip()):
            raise ValueError(
                f"{FILE}: {name}: {text!r} must be `meaning | unit`, with an empty unit where there is none"
            )
        found[str(name)] = Entry(meaning.strip(), unit.strip())
    return found


def look_up(known: Mapping[str, Entry], place: str, name: str) -> Entry | None:
    """Return what a name means in a table or study, `<paper>/<name>`; None where nothing says so."""
    for key in (f"{place}.{name}", name):
        if key in known:
            return known[key]
    if not name.endswith(_ERROR):
        return None
    base = name.removesuffix(_ERROR)
    for of in (f"{base}_mean", base):
        if (entry := look_up(known, place, of)) is not None:
            return Entry(f"standard error of `{of}`", entry.unit)
    return None


def columns(studies: Iterable[Study]) -> list[tuple[str, str]]:
    """Return every column of the studies' tables, with its table, `<paper>/<table>`."""
    found = []
    for study in studies:
        for table in study.tables:
            with study.table_path(table).open(newline="", encoding="utf-8") as handle:
                found += [(f"{study.paper}/{table}", name) for name in next(csv.reader(handle))]
    return found


def settings(studies: Iterable[Study]) -> dict[tuple[str, str], Any]:
    """Return the type of every setting and axis of the studies, by study and name."""
    return {
        (study.name, name): field
        for study in studies
        for name, field in {**study.schema.fields, **grid.SIZES}.items()
        if name in study.schema or study.config.get(name) is not None
    }


def values(plan: Plan) -> Mapping[str, str]:
    """Return the two tables by their placeholders."""
    known, studies, every = read(), list(plan.studies.values()), ("name", "meaning", "unit")
    allowed = {place: (field.describe(),) for place, field in settings(studies).items()}
    return {
        "dictionary/columns": _table(known, dict.fromkeys(columns(studies), ()), (*every, "tables")),
        "dictionary/settings": _table(known, allowed, (*every, "allowed", "studies")),
    }


def _table(known: Mapping[str, Entry], places: Mapping[tuple[str, str], tuple], head: tuple[str, ...]) -> str:
    """One row per meaning of a name, with all places that have it."""
    rows: dict[tuple[str, ...], list[str]] = {}
    for (place, name), more in places.items():
        entry = look_up(known, place, name)
        if entry is not None:
            rows.setdefault((f"`{name}`", entry.meaning, entry.unit or "–", *more), []).append(place)
    lines = []
    for row, where in sorted(rows.items()):
        more = f" and {len(where) - SHOWN} more" if len(where) > SHOWN else ""
        lines.append((*row, ", ".join(sorted(where)[:SHOWN]) + more))
    return markdown(head, lines)
