"""From a study's tables to its figures."""

import contextlib
from pathlib import Path

from privpost.drawing import style
from privpost.lab import store, tables
from privpost.lab.study import Study

SVG_LIMIT = 1_000_000


def draw(study: Study, printed: bool = True) -> list[Path]:
    """Draw the study's figures from its tables, in every format that its YAML asks for or as SVG; returns their paths.

    Each file replaces the old one only when all have been written. Raises ValueError when an SVG is larger than 1 MB
    (its formats then have to be given without svg).
    """
    frames = tables.read_tables(study)
    paths = []
    with contextlib.ExitStack() as written:
        for stem in study.figures:
            with style.context():
                figure = study.draw(stem, frames)
                for path in (path for path in study.figure_paths(printed) if path.stem == stem):
                    temporary = written.enter_context(store.replacing(path))
                    style.save(figure, temporary)
                    size = temporary.stat().st_size
                    if path.suffix == ".svg" and size > SVG_LIMIT:
                        raise ValueError(
                            f"{path} would be {size} bytes; list its formats in {study.file} as [pdf, png], "
                            f"since an SVG is shipped only up to {SVG_LIMIT} bytes"
                        )
                    paths.append(path)
                style.close(figure)
    return paths
