"""What the store holds of each study: current, behind, stale and damaged cells, and what prune may remove."""

import functools
import json
import shutil
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from privpost.atomic import abandoned_in, is_abandoned
from privpost.lab import grid, manifest, provenance, store
from privpost.lab.cells import origin_of
from privpost.lab.study import Cell, Study
from privpost.progress import counted


@dataclass
class Inventory:
    """The cells of one study's grid, and what else its folder in the store holds.

    `current` cells are those of the grid, computed by the present code; `behind` ones, whose code or libraries
    changed since; `damaged` ones are not readable. `stale` results answer to settings that no grid names any more,
    `ad_hoc` ones to settings that someone asked for on the command line; `leftovers` are set-aside and temporary files.
    """

    current: list[Cell] = field(default_factory=list)
    behind: list[Cell] = field(default_factory=list)
    missing: list[Cell] = field(default_factory=list)
    damaged: list[Cell] = field(default_factory=list)
    stale: list[Path] = field(default_factory=list)
    ad_hoc: list[Path] = field(default_factory=list)
    leftovers: list[Path] = field(default_factory=list)
    reasons: list[str] = field(default_factory=list)


def take(study: Study, cells: Iterable[Cell]) -> Inventory:
    """Return what the store holds of a study, with the reasons; every file is read and its checksum compared."""
    found = Inventory()
    cells = list(cells)
    known = {str(cell.path) for cell in cells}
    now = functools.cache(functools.partial(origin_of, study))
    changes: Counter[str] = Counter()
    for cell in cells:
        if not cell.path.exists():
            found.missing.append(cell)
            continue
        try:
            record = store.read(cell.path, cell.digest).record
        except store.CorruptCell as error:
            found.damaged.append(cell)
            found.reasons.append(f"damaged: {error}")
            continue
        changed = provenance.changes(record, now(cell.dataset, tuple(record.get("modules", ()))))
        (found.behind if changed else found.current).append(cell)
        changes.update(changed)
    superseded = {}
    for path in sorted((Path(study.config["root"]) / "cells" / study.name).glob("*")):
        if str(path) in known:
            continue
        if path.suffix != ".npz" or path.name.startswith("."):
            if path.suffix == store.CORRUPT or is_abandoned(path):
                found.leftovers.append(path)
            continue
        try:
            record = store.read(path).record
        except store.CorruptCell:
            found.leftovers.append(path)
            continue
        if record["asked_by"] == "sweep":
            found.ad_hoc.append(path)
        else:
            found.stale.append(path)
            superseded[grid.canonical(record["point"])] = record
    for folder in (study.grid_path().parent, study.figure_root / study.paper):
        found.leftovers += abandoned_in(folder)
    found.reasons += [
        f"behind: {what} since {counted(count, 'cell')} {'was' if count == 1 else 'were'} computed"
        for what, count in changes.most_common()
    ]
    found.reasons += _superseded(found.missing, superseded)
    return found


def _superseded(missing: list[Cell], records: dict[str, dict]) -> list[str]:
    """Say which settings changed between results that no grid names any more and the missing cells at their points."""
    changes: Counter[str] = Counter()
    for cell in missing:
        record = records.get(grid.canonical(cell.point))
        if record is None:
            continue
        before = {**record["config"], **record["sizes"], "data": record["data"]}
        after = {**vars(cell.config), **cell.sizes, "data": cell.data}
        names = sorted(key for key in {*before, *after} if before.get(key) != after.get(key))
        changes.update(
            f"{key} changed from {_short(before.get(key))} to {_short(after.get(key))}" for key in names or ["an axis"]
        )
    return [f"stale: {what} in {counted(count, 'cell')}" for what, count in changes.most_common()]


def _short(value) -> str:
    text = json.dumps(value)
    return text if len(text) <= 40 else f"{text[:37]}..."


def tables_state(study: Study, cells: list[Cell]) -> tuple[str, list[str]]:
    """Return whether the study's tables are current, stale, altered or missing, and why."""
    absent = [path for path in map(study.table_path, study.tables) if not path.is_file()]
    if absent or not study.grid_path().is_file():
        return "missing", [f"tables: {path} does not exist" for path in (absent or [study.grid_path()])[:1]]
    if found := manifest.altered(study):
        return "altered", [f"tables: {reason}" for reason in found]
    if manifest.shows(study, cells):
        return "current", []
    before = {entry["digest"] for entry in json.loads(study.grid_path().read_text(encoding="utf-8"))["cells"]}
    after = {cell.digest for cell in cells}
    if before == after:
        return "stale", ["tables: the order of the grid's points changed"]
    gone, new = len(before - after), len(after - before)
    return "stale", [
        f"tables: they show {counted(len(before), 'cell')}, of which {gone} left the grid; {new} joined it"
    ]


def figures_state(study: Study) -> tuple[str, list[str]]:
    """Return whether the study's figures are current or missing, and which is missing."""
    absent = [path for path in study.shipped_figures() if not path.is_file()]
    return ("missing", [f"figures: {absent[0]} does not exist"]) if absent else ("current", [])


def remove(paths: Iterable[Path]) -> None:
    """Remove files and folders."""
    for path in paths:
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)


def size(path: Path) -> int:
    """Return the bytes that a file or a folder takes."""
    return sum(entry.stat().st_size for entry in path.rglob("*")) if path.is_dir() else path.lstat().st_size
