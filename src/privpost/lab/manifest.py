"""The manifest of a study's tables, `<study>.grid.json`: the cells that they show, and the sha256 of each file."""

import hashlib
import json
from collections.abc import Iterable, Mapping
from pathlib import Path

from privpost.lab.study import Cell, Study, canonical


def describe(study: Study, cells: Iterable[Cell], texts: Mapping[Path, str] | None = None) -> str:
    """Return the text of a manifest of some cells; `texts` are the files beside it, which were made of these cells."""
    sums = {path.name: _sum(text.encode()) for path, text in (texts or {}).items()}
    lines = [canonical({"digest": cell.digest, "point": cell.point}) for cell in cells]
    return f'{{"study":"{study.name}","sha256":{canonical(sums)},"cells":[\n' + ",\n".join(lines) + "\n]}\n"


def shows(study: Study, cells: Iterable[Cell]) -> bool:
    """Whether the study's manifest is there and lists these cells."""
    path, mark = study.grid_path(), '"cells":['
    if not path.is_file():
        return False
    return path.read_text(encoding="utf-8").partition(mark)[2] == describe(study, cells).partition(mark)[2]


def altered(study: Study) -> list[str]:
    """Return, in words, which of the study's tables and files beside them are not those of its manifest."""
    path = study.grid_path()
    try:
        sums = json.loads(path.read_text(encoding="utf-8"))["sha256"]
    except (ValueError, KeyError, TypeError):
        return [f"{path} is no manifest of tables"]
    found = []
    for name in dict.fromkeys([*sums, *(study.table_path(table).name for table in study.tables)]):
        file = path.with_name(name)
        if file.is_file() and _sum(file.read_bytes()) != sums.get(name):
            found.append(f"{file} does not have the sha256 that {path} names")
    return found


def _sum(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
