"""From a study's tables to its figures."""

from __future__ import annotations

import contextlib
import importlib
import os
from pathlib import Path

from privpost.figures import style
from privpost.pipeline import store, tables
from privpost.pipeline.study import Study, figure_module

SVG_LIMIT = 1_000_000


def draw(study: Study) -> list[Path]:
    """Draw the study's figures from its tables, in every format that its YAML asks for; returns their paths.

    Each file replaces the old one only when all have been written. Raises ValueError when an SVG is larger than 1 MB
    (its formats then have to be given without svg).
    """
    # Fixed dates inside PDF and SVG files: the same tables give the same bytes.
    os.environ["SOURCE_DATE_EPOCH"] = "0"
    frames = tables.read_tables(study)
    paths = []
    with contextlib.ExitStack() as written:
        for stem, formats in study.figures.items():
            with style.context():
                figure = importlib.import_module(figure_module(study.paper, stem)).draw(frames)
                for ending in formats:
                    path = study.figure_root / study.paper / f"{stem}.{ending}"
                    temporary = written.enter_context(store.replacing(path))
                    style.save(figure, temporary)
                    size = temporary.stat().st_size
                    if ending == "svg" and size > SVG_LIMIT:
                        raise ValueError(
                            f"{path} would be {size} bytes; list its formats in {study.file} as [pdf, png], "
                            f"since an SVG is shipped only up to {SVG_LIMIT} bytes"
                        )
                    paths.append(path)
                style.close(figure)
    return paths
