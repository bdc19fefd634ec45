"""All cells of all studies, as one start of Snakemake worked them out, kept for the next ones.

Composing, importing every study's module for its settings and checking each point takes a second; reading what came
out takes some milliseconds. It depends on the files of conf/ and of the package, on the arguments, and on the
identities of the data sets, which are compared.
"""

import json
import platform
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import privpost
from privpost.datasets import catalogue
from privpost.lab import grid, kept
from privpost.lab.compose import conf_digest, files_digest
from privpost.lab.project import STATE
from privpost.lab.study import Cell, Study

PACKAGE = Path(privpost.__file__).parent
# Larger plans are not kept: they take more memory to read than to work out.
MOST_CELLS = 20_000
# What most cells of a study have in common.
SHARED = ("within", "sizes", "axes", "common", "reads")


def load_studies(names: Iterable[str] | None, scale: str, overrides: Iterable[str] = ()) -> list[Study]:
    """Return the named studies (all when None) as `grid.load_studies` does, their cells already expanded.

    Raises SettingError as that does, and as `grid.expand`.
    """
    names, overrides = None if names is None else list(names), list(overrides)
    folder = STATE / "planned" / kept.digest(conf_digest(), files_digest(PACKAGE, "*.py"), platform.python_version())
    file = f"{kept.digest(scale, json.dumps([names, overrides]))}.json"
    value = kept.read(folder / file)
    if value is not None and value["data"] == {name: catalogue.load(name).identity() for name in value["data"]}:
        return _restored(value)
    studies = grid.load_studies(names, scale, overrides)
    cells = [cell for study in studies for cell in grid.expand(study)]
    # A module outside the package is not in the digest.
    if len(cells) <= MOST_CELLS:
        value = {
            "data": {cell.dataset: cell.data for cell in cells if cell.dataset},
            "studies": [*map(_plain, studies)],
        }
        # What JSON does not give back as it was (a map whose keys are numbers) is worked out at each start.
        again = _restored(json.loads(json.dumps(value)))
        if again == studies and [cell for study in again for cell in grid.expand(study)] == cells:
            kept.write(folder, {file: value})
    return studies


def _plain(study: Study) -> dict[str, Any]:
    """Return a study and its cells as JSON can hold them; what cells share stands there once."""
    shared: dict[tuple[int, int], int] = {}
    bases, rows = [], []
    for cell in grid.expand(study):
        key = (id(cell.within), id(cell.sizes))
        if key not in shared:
            shared[key] = len(bases)
            bases.append({name: getattr(cell, name) for name in SHARED})
        rows.append((shared[key], cell.digest, cell.settings, cell.overrides))
    return {"name": study.name, "config": study.config, "bases": bases, "cells": rows}


def _restored(value: dict[str, Any]) -> list[Study]:
    studies = []
    for entry in value["studies"]:
        config = {**entry["config"], "common": tuple(entry["config"]["common"])}
        bases = [{**base, **{key: tuple(base[key]) for key in ("axes", "common")}} for base in entry["bases"]]
        study = Study(entry["name"], config)
        cells = []
        for base, digest, settings, words in entry["cells"]:
            place = {"study": study.name, "root": config["root"], "data": value["data"].get(settings.get("dataset"))}
            cells.append(Cell(**place, settings=settings, overrides=tuple(words), **bases[base]))
            cells[-1].known_by(digest)
        study.kept("cells", lambda cells=cells: cells)
        studies.append(study)
    for study in studies:
        study.kept("beside", lambda: {study.name: study for study in studies})
    return studies
