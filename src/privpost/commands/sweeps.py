"""What a user's own run or sweep ends with: tables, a figure and a record, under build/sweeps."""

import hashlib
import json
import re
import subprocess
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from privpost.drawing import style, sweep
from privpost.experiments.columns import of_column
from privpost.lab import provenance, request, store, tables
from privpost.lab.request import Request
from privpost.lab.study import Cell, Study

FOLDER = Path("build/sweeps")
NAME_LENGTH = 80


class Written(NamedTuple):
    """The files of a sweep, sentences on what they leave out, and the errors of cells that gave none, by digest."""

    paths: list[Path]
    notes: list[str]
    failed: Mapping[str, str]


def name_of(study: Study, settings: Iterable[str]) -> str:
    """Return a sweep's name: the study and the overrides; other sweeps have other names."""
    words = [study.identifier, *(word.lstrip("+") for word in settings)]
    words += [f"scale={study.scale}"] * (study.scale != "paper")
    text = "__".join(words)
    name = re.sub(r"[^A-Za-z0-9.,=_-]+", "", text)
    if name != text or len(name) > NAME_LENGTH:
        name = f"{name[: NAME_LENGTH - 9]}-{hashlib.sha256(text.encode()).hexdigest()[:8]}"
    return name


def write(asked: Request, cells: list[Cell], results: Iterable[store.Result]) -> Written:
    """Write the tables, the figure and the record of a sweep's cells: each point by itself, told apart by settings."""
    study, folder = asked.study, asked.folder or FOLDER / name_of(asked.study, asked.settings)
    points = tables.of_points(study, cells, results, map(request.key_of, asked.settings))
    notes = [f"The table {name} has no rows at these points." for name in study.tables if name not in points.tables]
    paths = []
    for name, frame in points.tables.items():
        paths.append(folder / f"{name}.csv")
        with store.replacing(paths[-1]) as temporary:
            frame.to_csv(temporary, index=False, lineterminator="\n")
    if points.tables:
        frames = {name: tables.read_table(folder / f"{name}.csv") for name in points.tables}
        drawn, more = _draw(study, frames, points.columns, folder)
        paths, notes = paths + drawn, notes + more
    paths.append(folder / "sweep.json")
    store.write_text(paths[-1], json.dumps(_record(asked, cells), indent=1) + "\n")
    return Written(paths, notes, points.failed)


def _draw(study: Study, frames: dict[str, Any], columns: dict[str, list[str]], folder: Path):
    """Draw the table with the study's measured columns; returns paths and notes."""
    name = sweep.choose(frames, columns, study.schema)
    meanings = ((column, of_column(study, name, column)) for column in frames[name])
    words = {
        column: f"{known.text} [{known.unit}]" if known.unit else known.text for column, known in meanings if known
    }
    paths = [folder / f"sweep.{ending}" for ending in ("pdf", "png")]
    with style.context():
        figure, notes = sweep.draw(frames[name], columns[name], study.schema, f"{study.name}, table {name}", words)
        if figure is None:
            return [], notes
        for path in paths:
            with store.replacing(path) as temporary:
                style.save(figure, temporary, dpi=150)
        style.close(figure)
    return paths, notes


def _record(asked: Request, cells: list[Cell]) -> dict[str, Any]:
    """Return what a sweep was: command, settings of its first point, versions, commit, and its cells."""
    commit = subprocess.run(["git", "rev-parse", "HEAD"], capture_output=True, text=True, check=False)
    first = cells[0]
    return {
        "command": ["privpost", *sys.argv[1:]],
        "study": asked.study.name,
        "overrides": asked.settings,
        "first point": {**first.settings, **first.within, **first.sizes},
        "versions": provenance.versions(),
        "commit": commit.stdout.strip() if commit.returncode == 0 else None,
        "cells": [cell.digest for cell in cells],
    }
