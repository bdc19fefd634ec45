"""Draws a study's figures from its tables."""

from collections.abc import Sequence
from pathlib import Path

from privpost.drawing import style
from privpost.lab import store, tables
from privpost.lab.study import Study


def draw(study: Study, home: Path, endings: Sequence[str] = ("svg",)) -> list[Path]:
    """Draw a study's figures into `<home>/figures/<paper>/<study>`, and return the files' paths."""
    frames = tables.read_tables(study)
    paths = []
    for stem in study.figures:
        with style.context():
            drawn = [home / "figures" / study.name / f"{stem}.{ending}" for ending in endings]
            paths += save(study.draw(stem, frames), drawn)
    return paths


def save(figure, paths: Sequence[Path], **how: int) -> Sequence[Path]:
    """Save a figure to files, close the figure, and return the files' paths."""
    for path in paths:
        with store.replacing(path) as temporary:
            style.save(figure, temporary, **how)
    style.close(figure)
    return paths
