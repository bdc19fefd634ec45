"""Scores and run times, from which pages and documents are made."""

from collections.abc import Iterable
from pathlib import Path

from privpost.lab import tables
from privpost.lab.study import Study
from privpost.report import scorecard


def score(studies: Iterable[Study], results: Path, out: Path) -> Path:
    """Score all claims from the tables below `results`; writes `scorecard.csv` into a folder and returns its path."""
    path = out / "scorecard.csv"
    scorecard.write(scorecard.score(studies, results), path)
    return path


def run_times(studies: Iterable[Study], results: Path):
    """Return run times and memory, one row per study, from `times.csv`; none where the file is missing.

    Columns: `study`, `beyond_papers`, `cells`, `seconds` (wall time, summed over the cells), `longest_cell_seconds`,
    `peak_mib`.
    """
    import pandas as pd

    columns = ["study", "beyond_papers", "cells", "seconds", "longest_cell_seconds", "peak_mib"]
    if not (results / "times.csv").is_file():
        return pd.DataFrame(columns=columns)
    cells = dict(iter(tables.read_table(results / "times.csv").groupby("study")))
    rows = []
    for study in sorted(studies, key=lambda study: scorecard.paper_order(study.name)):
        if study.name in cells:
            seconds, memory = cells[study.name].wall_seconds, cells[study.name].peak_mib
            figures = (len(seconds), round(seconds.sum(), 1), round(seconds.max(), 1), round(memory.max(), 1))
            rows.append((study.name, study.beyond_papers, *figures))
    return pd.DataFrame(rows, columns=columns)
