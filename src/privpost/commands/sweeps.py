"""Writes the tables, the figure and the record of a user's own run or sweep."""

import hashlib
import json
import math
import re
import shutil
import subprocess
import sys
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from privpost.lab import grid, provenance, request, store, tables
from privpost.lab.claims import Claim
from privpost.lab.request import Request
from privpost.lab.schema import SettingError
from privpost.lab.study import Cell, Study
from privpost.progress import some

FOLDER = Path("build/sweeps")
NAME_LENGTH = 80
RECORD, FIGURE, ENDINGS = "sweep.json", "sweep", ("pdf", "png")
# Names that Hydra writes into a sweep's folder: its records, and a folder for each job.
HYDRAS = re.compile(r"multirun\.yaml|\.hydra|\.submitit|optimization_results\.yaml|\d+")

PRIVATE_METADATA = "Rows with uses_private_metadata used what no ε pays for, such as the data's own range."


class Written(NamedTuple):
    """A sweep's files, notes on what they leave out, and, by digest, the errors of cells without tables."""

    paths: list[Path]
    notes: list[str]
    failed: Mapping[str, str]


def name_of(study: Study, settings: Iterable[str]) -> str:
    """Return a sweep's unique name, made from the study's name and the overrides."""
    words = [study.identifier, *(word.lstrip("+") for word in settings)]
    words += [f"scale={study.scale}"] * (study.scale != "paper")
    text = "__".join(words)
    name = re.sub(r"[^A-Za-z0-9.,=_-]+", "", text)
    if name != text or len(name) > NAME_LENGTH:
        name = f"{name[: NAME_LENGTH - 9]}-{hashlib.sha256(text.encode()).hexdigest()[:8]}"
    return name


def folder_of(asked: Request) -> Path:
    """Return the folder for a sweep's files: the user's choice, or else a folder with the sweep's name."""
    return asked.folder or FOLDER / name_of(asked.study, asked.settings)


def _read_record(folder: Path) -> dict[str, Any]:
    """Return the record of the sweep in a folder, or an empty map if the folder holds no sweep."""
    try:
        record = json.loads((folder / RECORD).read_text("utf-8"))
        return {key: record[key] for key in ("study", "scale", "overrides", "cells", "code", "files", "notes")}
    except (OSError, ValueError, KeyError, TypeError):
        return {}


def check_folder(folder: Path, asked: Request) -> None:
    """Raise SettingError if the user's folder holds another sweep, or files that no sweep wrote."""
    if asked.folder is None or not folder.is_dir():
        return
    if (record := _read_record(folder)) and any(record[key] != value for key, value in _of(asked).items()):
        words = " ".join([f"study={record['study']}", *record["overrides"]])
        raise SettingError(f"{folder} holds the sweep {words}: name another folder, or remove this one.")
    files = {RECORD, *record.get("files", ())}
    others = [path.name for path in folder.iterdir() if path.name not in files and not HYDRAS.fullmatch(path.name)]
    if others:
        raise SettingError(f"{folder} holds files that no sweep wrote ({some(sorted(others))}): name another folder.")


def already(asked: Request, folder: Path, cells: list[Cell]) -> Written | None:
    """Return an earlier run's files if they are complete and up to date, else None."""
    today = {**_of(asked), "cells": [cell.digest for cell in cells], "code": _code(asked.study)}
    record = _read_record(folder)
    if not record or any(record[key] != value for key, value in today.items()):
        return None
    paths = [folder / name for name in record["files"]]
    newest = max(cell.path.stat().st_mtime_ns for cell in cells)
    whole = all(path.is_file() and path.stat().st_mtime_ns >= newest for path in paths)
    return Written([*paths, folder / RECORD], record["notes"], {}) if whole else None


def _code(study: Study) -> str:
    """Return a digest of the code that makes tables and a figure from a study's cells."""
    drawing = ("privpost.commands.sweeps", "privpost.drawing.sweep", "privpost.drawing.style")
    return provenance.text_digest([f"{study.package}.study", *tables.WRITING, *drawing])


def _of(asked: Request) -> dict[str, Any]:
    return {"study": asked.study.name, "scale": asked.study.scale, "overrides": asked.settings}


def write(asked: Request, folder: Path, argv: list[str], cells: list[Cell]) -> Written:
    """Write the tables, the figure and the record of a sweep's cells, and return what was written."""
    print("writing tables and drawing the figure", file=sys.stderr, flush=True)
    study = asked.study
    # Results are read one after another, since all results of a large sweep together would not fit into memory.
    results = (store.read(cell.path, cell.digest) for cell in cells)
    points = tables.of_points(study, cells, results, map(request.key_of, asked.settings))
    notes = [f"The table {name} has no rows at these points." for name in study.tables if name not in points.tables]
    paths = [folder / f"{name}.csv" for name in points.tables]
    drawings = [folder / f"{FIGURE}.{ending}" for ending in ENDINGS]
    # The first version of the record lists files that may be overwritten; the final version lists files that exist.
    record = _record(asked, argv, cells) | {"files": [path.name for path in (*paths, *drawings)]}
    _write_record(folder, record)
    for name, frame in points.tables.items():
        with store.replacing(folder / f"{name}.csv") as temporary:
            frame.to_csv(temporary, index=False, lineterminator="\n")
    if points.tables:
        frames = {name: tables.read_table(folder / f"{name}.csv") for name in points.tables}
        if any(frame.uses_private_metadata.any() for frame in frames.values() if "uses_private_metadata" in frame):
            notes.append(PRIVATE_METADATA)
        drawn, more = _draw(study, frames, points.columns, drawings)
        paths, notes = paths + drawn, notes + more
    code = None if points.failed else _code(study)
    _write_record(folder, record | {"code": code, "files": [path.name for path in paths], "notes": notes})
    return Written([*paths, folder / RECORD], notes, points.failed)


def _write_record(folder: Path, record: dict[str, Any]) -> None:
    store.write_text(folder / RECORD, json.dumps(record, indent=1) + "\n")


def _draw(study: Study, frames: dict[str, Any], columns: dict[str, list[str]], paths: list[Path]):
    """Draw the table that `sweep.choose` selects, and return the figure's paths and notes."""
    from privpost.commands import drawing
    from privpost.drawing import style, sweep
    from privpost.experiments.columns import of_column

    name = sweep.choose(frames, columns, study.schema)
    if sweep.layout(frames[name], columns[name], study.schema) is None:
        # Decide this before loading the libraries that draw.
        return [], [sweep.NOTHING]
    meanings = {column: of_column(study, name, column) for column in frames[name]}
    labels = {column: known.label(column) for column, known in meanings.items() if known}
    title = f"{study.name}, table {name}" + (f", {study.scale} scale" if study.scale != "paper" else "")
    with style.context():
        figure, notes = sweep.draw(frames[name], columns[name], study.schema, title, labels)
        if figure is None:
            return [], notes
        return drawing.save(figure, paths, dpi=150), notes


def _record(asked: Request, argv: list[str], cells: list[Cell]) -> dict[str, Any]:
    """Return a sweep's record: command, settings of the first point, versions, commit and cells."""
    # Records are also made without git or a repository, as in a container.
    git = shutil.which("git") or "false"
    commit = subprocess.run([git, "rev-parse", "HEAD"], capture_output=True, text=True, check=False)
    first = cells[0]
    return {
        "command": ["privpost", *argv],
        **_of(asked),
        "first point": {**first.settings, **first.within, **first.sizes},
        "versions": provenance.versions(),
        "commit": commit.stdout.strip() if commit.returncode == 0 else None,
        "cells": [cell.digest for cell in cells],
        "code": None,
        "notes": [],
    }


class Point(NamedTuple):
    """The claims scored at one point of a sweep, and the reasons why other claims have no verdict."""

    settings: str
    lacking: str
    claims: Sequence[Claim]
    unscored: Mapping[str, str]


def points(folder: Path) -> Iterator[tuple[Study, Point]]:
    """Yield a sweep's study and the scored claims at each point of the sweep.

    A point has one value for each setting that is not an axis of the study's grid. A claim is scored if the published
    tables, cut to the sweep's values on the axes, still give the published verdict. Raises SettingError if a cell is
    not in the store or cannot be tabulated.
    """
    from privpost.report.scorecard import outcome

    record = json.loads((folder / RECORD).read_text("utf-8"))
    study = grid.load_study(record["study"], record["scale"])
    base, keys = grid.make_cell(study, {}), [request.key_of(word) for word in record["overrides"]]
    axes = [*base.axes, *base.within]
    groups: dict[str, list[store.Result]] = {}
    for digest in record["cells"]:
        try:
            result = store.read(next(study.cells_folder.glob(f"*_{digest}.npz")), digest)
        except (StopIteration, store.CorruptCell):
            raise SettingError(f"{folder}: its cell {digest} is not in the store; run the sweep again.") from None
        values = {**result.record["config"], **result.record["sizes"]}
        told = " ".join(f"{key}={_word(values[key])}" for key in keys if key not in axes)
        groups.setdefault(told, []).append(result)
    home = grid.load_study(study.name)
    published = {name: tables.read_table(path) for name in home.tables if (path := home.table_path(name)).is_file()}
    as_published, _ = _scored(study, published)
    for told, results in groups.items():
        try:
            # A row without a value on an axis that the sweep splits into cells appears once for each of these cells.
            made = tables.tables_of(study, results).items()
            frames = {name: tables.as_read(frame).drop_duplicates() for name, frame in made}
        except Exception as error:
            raise SettingError(f"{folder}: no tables can be made of its cells: {error}") from error
        claims, unscored = _scored(study, frames)
        alike, lacking = _cut(published, frames, axes)
        at_these_rows, _ = _scored(study, alike)
        for id in [id for id in claims if id in as_published]:
            if id not in at_these_rows or outcome(at_these_rows[id]) != outcome(as_published[id]):
                del claims[id]
                unscored[id] = "without them the published tables do not give the published verdict"
        yield study, Point(told, lacking, [*claims.values()], unscored)


def _scored(study: Study, frames: Mapping[str, Any]) -> tuple[dict[str, Claim], dict[str, str]]:
    """Return, by id, the claims that can be scored on the given tables, and the reasons why others cannot."""
    from privpost.report.scorecard import claims_of, leaves

    unscored: dict[str, str] = {}
    with warnings.catch_warnings():
        # numpy warns about the mean of an empty column.
        warnings.simplefilter("ignore", RuntimeWarning)
        scored = {claim.id: claim for claim in claims_of(study, frames, unscored)}
    for id, claim in list(scored.items()):
        # A check of an empty table passes, but the claim's numbers are then NaN.
        empty = [name for name, value in leaves(claim.evidence) if isinstance(value, float) and math.isnan(value)]
        if empty and not claim.failed:
            unscored[id] = f"{empty[0]} is not a number"
            del scored[id]
    return scored, unscored


def _cut(published: Mapping[str, Any], frames: Mapping[str, Any], axes: Sequence[str]) -> tuple[dict[str, Any], str]:
    """Return published tables cut to a sweep's values on some axes, and a text on the values that the sweep lacks."""
    cut, said = dict(published), []
    for axis in axes:
        there = {value for frame in frames.values() if axis in frame for value in frame[axis]}
        known = dict.fromkeys(value for frame in cut.values() if axis in frame for value in frame[axis].dropna())
        if gone := [_word(value) for value in known if value not in there]:
            said.append(f"{axis} = {some(gone)}")
        if there & {*known}:
            for name, frame in cut.items():
                if axis in frame:
                    cut[name] = frame[frame[axis].isin(there) | frame[axis].isna()]
    return cut, "; ".join(said)


def _word(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)
