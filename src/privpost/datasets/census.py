"""Census extracts for linear regression: numeric columns, scaled to features and a label by public bounds."""

import functools
import math
import re
from collections.abc import Iterable, Mapping

import numpy as np

from privpost.datasets import files
from privpost.datasets.catalogue import Dataset

LABEL = "income"
# IPUMS' codes for values that do not apply, are unknown or are missing: 99, 98, ..., 9999997.
_NINES = re.compile("9+[6-9]")


def rows(lines: Iterable[str], columns: dict[str, str], where: str) -> dict[str, np.ndarray]:
    """Read CSV text with a header into float64 arrays (n,), one per column.

    `columns` maps the file's column names to the names of the arrays. TRUE is 1 and FALSE is 0. Rows with an empty
    field or NA are left out. Raises ValueError naming `where`, and the missing columns or the line and column at fault.
    """
    words = {"TRUE": 1.0, "FALSE": 0.0}

    # Few of the fields of a census differ.
    @functools.lru_cache(2**16)
    def number(field: str) -> float:
        return words[field] if field in words else files.number(field)

    table = []
    for line, row in files.records(lines, columns, where):
        fields = row.values()
        if "" in fields or "NA" in fields:
            continue
        try:
            table.append([*map(number, fields)])
        except ValueError as error:
            raise ValueError(f"{where} line {line}: not a number ({error})") from error
    if not table:
        raise ValueError(f"{where}: no row without gaps")
    return dict(zip(columns.values(), np.array(table).T.copy(), strict=True))


def check(arrays: Mapping[str, np.ndarray], dataset: Dataset, where: str) -> None:
    """Raise ValueError, naming `where` and the column, if values of a column are codes or if the column is constant.

    With bounds [0, 1], values other than 0 and 1 are codes. With other bounds, values outside the bounds are codes if
    they are far from the bounds or written with nines, which mean "does not apply". A column that is constant within
    its bounds makes the regression singular.
    """
    for name, (low, high) in dataset.public["bounds"].items():
        values, numbers = np.unique(arrays[name], return_counts=True)
        if (low, high) == (0, 1) and (others := values[~np.isin(values, (0, 1))]).size:
            raise ValueError(
                f"{where}: {name} has the value {others[0]:g}, but must be 0 or 1, as its bounds are [0, 1]; "
                "recode it, for instance 1 and 2 to 0 and 1"
            )
        for value, number in zip(values, numbers, strict=True):
            if not low <= value <= high and (_is_far(value, low, high) or _NINES.fullmatch(f"{value:.0f}")):
                raise ValueError(
                    f"{where}: {name} is {value:.0f} ({number} times), beyond [{low:g}, {high:g}]: "
                    "probably the code for 'does not apply'; leave out these rows"
                )
        if np.ptp(np.clip(values, low, high)) == 0:
            raise ValueError(
                f"{where}: {name} is {np.clip(values[0], low, high):g} in every row, within its bounds "
                f"[{low:g}, {high:g}]: give other bounds, or take it out of public.bounds"
            )


def _is_far(value: float, low: float, high: float) -> bool:
    return not low - 2 * (high - low) <= value <= high + 2 * (high - low)


def regression(arrays: dict[str, np.ndarray], dataset: Dataset) -> tuple[np.ndarray, np.ndarray]:
    """Return features (n, d) with rows of norm at most 1, and labels (n,) in [0, 1].

    Columns are clipped to the declared bounds and mapped to [-1, 1], and a constant 1 is put first. Then all columns
    are divided by √d, which bounds the norm of any record's features by 1.
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
