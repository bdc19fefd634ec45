"""Tables of docs/dictionary.md, with a meaning and a unit for each column of a table and for each setting."""

import csv
from collections.abc import Iterable

from privpost.evaluation.rows import markdown
from privpost.experiments.columns import Meaning, of_column, of_setting
from privpost.lab import grid
from privpost.lab.study import Study
from privpost.progress import some

# Largest number of tables or studies that are named beside a meaning.
SHOWN = 6


def columns(study: Study) -> dict[str, dict[str, Meaning | None]]:
    """Return the meaning of each published column of a study, by table and column, or None if there is no meaning."""
    tables = {}
    for table in study.tables:
        with study.table_path(table).open(newline="", encoding="utf-8") as handle:
            tables[table] = {name: of_column(study, table, name) for name in next(csv.reader(handle))}
    return tables


def settings(study: Study) -> dict[str, Meaning | None]:
    """Return the meaning of each setting of a study, by name, or None if there is no meaning."""
    # All studies share the seed of conf/config.yaml.
    sizes = [name for name in grid.SIZES if name == "seed" or study.text.get(name) is not None]
    return {name: of_setting(study, name) for name in (*study.schema.fields, *sizes)}


def values(published) -> dict[str, str]:
    """Return the tables `columns` and `settings` in Markdown."""
    studies = list(published.studies.values())
    described = [
        ((name, *meaning), f"{study.paper}/{table}")
        for study in studies
        for table, names in columns(study).items()
        for name, meaning in names.items()
        if meaning
    ]
    allowed = [
        ((name, *meaning, {**study.schema.fields, **grid.SIZES}[name].describe()), study.name)
        for study in studies
        for name, meaning in settings(study).items()
        if meaning
    ]
    return {
        "columns": _table(described, ("name", "meaning", "unit", "tables")),
        "settings": _table(allowed, ("name", "meaning", "unit", "allowed", "studies")),
    }


def _table(entries: Iterable[tuple[tuple[str, ...], str]], head: tuple[str, ...]) -> str:
    """Return a table in Markdown. A row has a name, its meaning, and the places where the name has this meaning."""
    places: dict[tuple[str, ...], list[str]] = {}
    for row, place in entries:
        places.setdefault(row, []).append(place)
    lines = []
    for (name, text, unit, *more), where in sorted(places.items()):
        lines.append((f"`{name}`", text, unit or "–", *more, some(sorted(where), SHOWN)))
    return markdown(head, lines)
