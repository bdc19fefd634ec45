"""Census extracts for linear regression: named numeric columns, features and label scaled by public bounds."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterable

import numpy as np

from privpost.datasets.catalogue import Dataset

LABEL = "income"


def rows(lines: Iterable[str], columns: dict[str, str], where: str) -> dict[str, np.ndarray]:
    """Read CSV text with a header into float64 arrays of shape (n,), one per column; rows with a gap are left out.

    `columns` maps the file's names to ours. A gap is an empty field or NA; TRUE and FALSE are 1 and 0. Raises
    ValueError naming `where` and the missing columns, or the line and the column of a value that is no number.
    """
    reader = csv.reader(lines)
    header = [name.strip() for name in next(reader, [])]
    missing = [name for name in columns if name not in header]
    if missing:
        raise ValueError(
            f"{where}: missing columns {', '.join(missing)}; needed are {', '.join(columns)}, found "
            f"{', '.join(header) or 'none'}"
        )
    places = [header.index(name) for name in columns]
    words = {"TRUE": 1.0, "FALSE": 0.0}
    gaps = ("", "NA")
    table = []
    for row in reader:
        if len(row) != len(header):
            raise ValueError(f"{where} line {reader.line_num}: {len(row)} fields, expected {len(header)}")
        fields = [row[place] for place in places]
        if any(field in gaps for field in fields):
            continue
        try:
            values = [words[field] if field in words else float(field) for field in fields]
        except ValueError as error:
            raise ValueError(f"{where} line {reader.line_num}: not a number ({error})") from error
        if not all(map(math.isfinite, values)):
            raise ValueError(f"{where} line {reader.line_num}: not a finite number")
        table.append(values)
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
