"""Census extracts for linear regression: named numeric columns, features and label scaled by public bounds."""

import math
from collections.abc import Iterable

import numpy as np

from privpost.datasets import files
from privpost.datasets.catalogue import Dataset

LABEL = "income"


def rows(lines: Iterable[str], columns: dict[str, str], where: str) -> dict[str, np.ndarray]:
    """Read CSV text with a header into float64 arrays of shape (n,), one per column; rows with a gap are left out.

    `columns` maps the file's names to ours. A gap is an empty field or NA; TRUE and FALSE are 1 and 0. Raises
    ValueError naming `where` and the missing columns, or the line and the column of a value that is no number.
    """
    words = {"TRUE": 1.0, "FALSE": 0.0}
    gaps = ("", "NA")
    table = []
    for line, row in files.records(lines, columns, where):
        if any(field in gaps for field in row.values()):
            continue
        try:
            table.append([words[field] if field in words else files.number(field) for field in row.values()])
        except ValueError as error:
            raise ValueError(f"{where} line {line}: not a number ({error})") from error
    if not table:
        raise ValueError(f"{where}: no row without gaps")
    return dict(zip(columns.values(), np.array(table).T.copy(), strict=True))


def regression(arrays: dict[str, np.ndarray], dataset: Dataset) -> tuple[np.ndarray, np.ndarray]:
    """Return features (n, d) with rows of norm at most 1 and labels (n,) in [0, 1].

    Columns are clipped to the declared bounds and mapped to [-1, 1], a constant 1 is put first, and all are divided by
    √d, so that a record's features have norm at most 1 whatever the data.
    """
    bounds = dataset.public["bounds"]
    columns = [np.ones(len(arrays[LABEL]))]
    for name, (low, high) in bounds.items():
        if name != LABEL:
            columns.append(2 * (np.clip(arrays[name], low, high) - low) / (high - low) - 1)
    low, high = bounds[LABEL]
    labels = (np.clip(arrays[LABEL], low, high) - low) / (high - low)
    return np.column_stack(columns) / math.sqrt(len(columns)), labels


def clipped_share(arrays: dict[str, np.ndarray], dataset: Dataset) -> float:
    """Return the share of records whose label is outside its declared bounds."""
    low, high = dataset.public["bounds"][LABEL]
    return float(np.mean((arrays[LABEL] < low) | (arrays[LABEL] > high)))
