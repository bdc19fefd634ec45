"""Adult (UCI): 14 attributes of 48,842 people from the US census of 1994, and whether they earn over 50,000 dollars."""

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

    Numeric columns are int64. Categorical columns are int8 codes of the declared levels, where ``?`` is a missing
    answer. ``over_50k`` and ``is_test`` are bool. Raises ValueError naming file and line.
    """
    train = _rows(paths["adult.data"], dataset, "train_rows", labels=("<=50K", ">50K"))
    test = _rows(paths["adult.test"], dataset, "test_rows", labels=("<=50K.", ">50K."), remark=True)
    *columns, over = np.concatenate([train, test], axis=1)
    arrays = {
        name: column.astype(np.int64 if name in NUMERIC else np.int8)
        for name, column in zip(COLUMNS, columns, strict=True)
    }
    return {**arrays, "over_50k": over.astype(bool), "is_test": np.arange(len(over)) >= train.shape[1]}


def _rows(path: Path, dataset: Dataset, size: str, *, labels: tuple[str, str], remark: bool = False) -> np.ndarray:
    """Return the 14 columns and the label of a file as integers, shape (15, rows)."""
    lines = files.lines(path)
    # Both files end in an empty line.
    if lines[-1] == "":
        lines.pop()
    # adult.test begins with a remark by the program that made the split, which is no record.
    if remark and not (lines and lines.pop(0).startswith("|")):
        raise ValueError(f"{path} line 1: expected the remark that opens this file, starting with '|'")
    levels = dataset.public["levels"]
    columns = {name: files.count if name in NUMERIC else files.code(levels[name]) for name in COLUMNS}
    table = files.rows(lines, {**columns, "label": files.code(labels)}, ", ", path, first=1 + remark)
    files.check_rows(path, len(table), dataset.settings[size])
    return np.array(table, np.int64).T


def task(arrays: dict[str, np.ndarray], dataset: Dataset) -> Task:
    """Return the columns of features, labels (1 for over 50,000) and the official split (Geumlek et al. 2017).

    There are 100 features if one level per column is dropped, and otherwise 108.
    """
    numeric, categorical = ({name: arrays[name] for name in names} for names in (NUMERIC, CATEGORICAL))
    return Task(numeric, categorical, arrays["over_50k"], arrays["is_test"])
