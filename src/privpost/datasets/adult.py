"""Adult (UCI): 14 attributes of 48,842 people from the US census of 1994 and whether they earn over 50,000 dollars."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from privpost.datasets import files
from privpost.datasets.catalogue import Dataset
from privpost.datasets.encoding import Task

COLUMNS = (
    "age",
    "workclass",
    "fnlwgt",
    "education",
    "education_num",
    "marital_status",
    "occupation",
    "relationship",
    "race",
    "sex",
    "capital_gain",
    "capital_loss",
    "hours_per_week",
    "native_country",
)
NUMERIC = ("age", "fnlwgt", "education_num", "capital_gain", "capital_loss", "hours_per_week")
CATEGORICAL = tuple(name for name in COLUMNS if name not in NUMERIC)


def parse(paths: dict[str, Path], dataset: Dataset) -> dict[str, np.ndarray]:
    """Read ``adult.data`` and then ``adult.test`` into one array of shape (48842,) per column.

    Numeric columns are int64, categorical ones int8 codes into the declared levels (a missing answer, ``?``, is a
    level); ``over_50k`` and ``is_test`` are bool. Raises ValueError naming file and line.
    """
    train = _rows(paths["adult.data"], dataset, header=False, labels=("<=50K", ">50K"))
    test = _rows(paths["adult.test"], dataset, header=True, labels=("<=50K.", ">50K."))
    for key, name, rows in (("train_rows", "adult.data", train), ("test_rows", "adult.test", test)):
        if len(rows) != dataset.settings[key]:
            raise ValueError(f"{paths[name]}: {len(rows)} rows, expected {dataset.settings[key]}")
    columns = np.array(train + test, dtype=np.int64).T
    arrays = {
        name: column.astype(np.int64 if name in NUMERIC else np.int8)
        for name, column in zip(COLUMNS, columns[:-1], strict=True)
    }
    is_test = np.arange(len(train) + len(test)) >= len(train)
    return {**arrays, "over_50k": columns[-1].astype(bool), "is_test": is_test}


def _rows(path: Path, dataset: Dataset, *, header: bool, labels: tuple[str, str]) -> list[list[int]]:
    levels = dataset.public["levels"]
    codes = {name: {level: index for index, level in enumerate(levels[name])} for name in CATEGORICAL}
    label_codes = {label: index for index, label in enumerate(labels)}
    lines = path.read_text(encoding="ascii", errors="backslashreplace").removesuffix("\n").split("\n")
    # Both files end in an empty line.
    if lines[-1] == "":
        lines.pop()
    # adult.test opens with a remark of the program that made the split; it is no record.
    first = 1
    if header:
        if not lines or not lines[0].startswith("|"):
            raise ValueError(f"{path} line 1: expected the remark that opens this file, starting with '|'")
        lines, first = lines[1:], 2
    rows = []
    for number, line in enumerate(lines, start=first):
        where = f"{path} line {number}"
        fields = line.split(", ")
        if len(fields) != len(COLUMNS) + 1:
            raise ValueError(f"{where}: {len(fields)} fields, expected {len(COLUMNS) + 1}: {line!r}")
        row = []
        for name, field in zip(COLUMNS, fields[:-1], strict=True):
            if name in codes:
                if field not in codes[name]:
                    raise ValueError(f"{where}: {name} = {field!r}: not a declared level")
                row.append(codes[name][field])
            else:
                try:
                    row.append(files.count(field))
                except ValueError as error:
                    raise ValueError(f"{where}: {name} = {field!r}: must be a non-negative integer") from error
        if fields[-1] not in label_codes:
            raise ValueError(f"{where}: label = {fields[-1]!r}: must be one of {', '.join(labels)}")
        row.append(label_codes[fields[-1]])
        rows.append(row)
    return rows


def task(arrays: dict[str, np.ndarray], dataset: Dataset) -> Task:
    """Return the features' columns, the labels, 1 for over 50,000, and the official split (Geumlek et al. 2017).

    There are 100 dimensions with one level dropped per column, 108 with none; the declared levels all occur, so that
    both kinds of bounds give the same number. The split is of shapes (32561,) and (16281,).
    """
    numeric, categorical = ({name: arrays[name] for name in names} for names in (NUMERIC, CATEGORICAL))
    return Task(numeric, categorical, arrays["over_50k"], arrays["is_test"])
