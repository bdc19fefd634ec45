"""Abalone (UCI): 4,177 abalone with sex, seven measurements and the number of rings, which gives the age."""

import functools
from pathlib import Path

import numpy as np

from privpost.datasets import files
from privpost.datasets.catalogue import Dataset
from privpost.datasets.encoding import Task

NUMERIC = (
    "length",
    "diameter",
    "height",
    "whole_weight",
    "shucked_weight",
    "viscera_weight",
    "shell_weight",
)


def parse(paths: dict[str, Path], dataset: Dataset) -> dict[str, np.ndarray]:
    """Read ``abalone.data`` into one array of shape (4177,) per column.

    ``sex`` is an int8 code of the declared levels, ``rings`` is int64, and the measurements are float64. Units are
    those of the file: millimetres or grams divided by 200. Some heights are 0. Raises ValueError naming file and line.
    """
    path = paths["abalone.data"]
    columns = {
        "sex": files.code(dataset.public["levels"]["sex"]),
        **dict.fromkeys(NUMERIC, functools.partial(files.number, at_least=0)),
        "rings": functools.partial(files.count, at_least=1),
    }
    table = files.rows(files.lines(path), columns, ",", path)
    files.check_rows(path, len(table), dataset.settings["train_rows"] + dataset.settings["test_rows"])
    types = {"sex": np.int8, "rings": np.int64}
    return {
        name: values.astype(types.get(name, float)) for name, values in zip(columns, np.array(table).T, strict=True)
    }


def task(arrays: dict[str, np.ndarray], dataset: Dataset) -> Task:
    """Return the columns of 9 features, and labels: 1 for fewer than 10 rings (Geumlek et al. 2017, section 5)."""
    labels = arrays["rings"] < dataset.settings["rings_below"]
    return Task({name: arrays[name] for name in NUMERIC}, {"sex": arrays["sex"]}, labels)
