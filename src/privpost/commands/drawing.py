"""From a study's tables to its figures."""

import contextlib
from collections.abc import Sequence
from pathlib import Path

from privpost.drawing import style
from privpost.lab import store, tables
from privpost.lab.study import Study

SVG_LIMIT = 1_000_000


def draw(study: Study, home: Path, endings: Sequence[str] = ("svg",)) -> list[Path]:
    """Draw a study's figures from its tables, into `<home>/figures/<paper>/<study>`; returns their paths.

    Each file replaces the old one only when all have been written. Raises ValueError for an SVG of more than 1 MB.
    """
    frames = tables.read_tables(study)
    paths = []
    with contextlib.ExitStack() as written:
        for stem in study.figures:
            with style.context():
                figure = study.draw(stem, frames)
                for ending in endings:
                    path = home / "figures" / study.name / f"{stem}.{ending}"
                    temporary = written.enter_context(store.replacing(path))
                    style.save(figure, temporary)
                    if ending == "svg" and (size := temporary.stat().st_size) > SVG_LIMIT:
                        raise ValueError(f"{path} would be {size} bytes; an SVG may have at most {SVG_LIMIT}")
                    paths.append(path)
                style.close(figure)
    return paths
