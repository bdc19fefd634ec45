"""What an ad hoc sweep ends with: the study's tables over the sweep's cells, and a figure, under build/sweeps."""

import hashlib
import re
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from privpost.drawing import style, sweep
from privpost.lab import points, request, store, tables
from privpost.lab.study import Cell, Study

FOLDER = Path("build/sweeps")
NAME_LENGTH = 80


class Written(NamedTuple):
    """The files of a sweep, sentences on what they leave out, and the errors of cells that gave none, by digest."""

    paths: list[Path]
    notes: list[str]
    failed: dict[str, str]


def name_of(study: Study, settings: list[str]) -> str:
    """Return a sweep's name: the study and the overrides, in characters that every file system takes."""
    words = [word.lstrip("+") for word in settings]
    words += [f"scale={study.config['scale']}"] * (study.config["scale"] != "paper")
    text = re.sub(r"[^A-Za-z0-9.,=_-]+", "", "+".join([study.identifier, *words]).replace("+", "__"))
    if len(text) > NAME_LENGTH:
        text = f"{text[: NAME_LENGTH - 9]}-{hashlib.sha256(text.encode()).hexdigest()[:8]}"
    return text


def write(study: Study, cells: list[Cell], results: Iterable[store.Result], words: list[str], whole: bool) -> Written:
    """Write the tables and the figure of a sweep's cells.

    The study's whole grid has the study's own tables and figures. In those of any other sweep each point stands by
    itself, told apart by its settings (`pipeline.points`), and one table is drawn.
    """
    folder = FOLDER / name_of(study, words)
    made = None
    if whole:
        frames = {name: frame for name, frame in tables.tables_of(study, list(results)).items() if not frame.empty}
    else:
        made = points.tabulate(study, cells, results, map(request.key_of, words))
        frames = made.tables
    notes = [] if made is None else made.notes(len(cells))
    failed = {} if made is None else made.failed
    if not frames:
        return Written([], ["These points give empty tables only."], failed)
    # Large tables: each is let go once it is written, and read as a study's own are.
    files = {name: folder / f"{name}.csv" for name in frames}
    for name, path in files.items():
        with store.replacing(path) as temporary:
            frames.pop(name).to_csv(temporary, index=False, lineterminator="\n")
    frames, paths = {name: tables.read_table(path) for name, path in files.items()}, [*files.values()]
    with style.context():
        if made is None and study.figures:
            figures = {stem: study.draw(stem, frames) for stem in study.figures}
        else:
            settings = {} if made is None else made.settings
            swept = {name: [columns[name] for columns in settings.values() if name in columns] for name in frames}
            # The first table that fits on a page, else the one that lacks least.
            sizes = {name: sweep.columns_of(frames[name], swept[name], study.schema) for name in frames}
            name = min(sizes, key=lambda name: max(sizes[name], sweep.COLUMNS))
            figure, more = sweep.draw(frames[name], swept[name], study.schema, f"{study.name}, table {name}")
            figures, notes = {"sweep": figure}, notes + more
        for stem, figure in figures.items():
            for ending in ("pdf", "png"):
                paths.append(folder / f"{stem}.{ending}")
                with store.replacing(paths[-1]) as temporary:
                    style.save(figure, temporary, dpi=150)
            style.close(figure)
    return Written(paths, notes, failed)
