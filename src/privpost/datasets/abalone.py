"""Abalone (UCI): eight measurements of 4,177 abalone and the rings that give their age."""

from __future__ import annotations

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

    ``sex`` is int8, a code into the declared levels; ``rings`` is int64; the measurements are float64 in the file's
    units (millimetres or grams divided by 200; a height of 0 occurs and is kept). Raises ValueError naming file and
    line.
    """
    path = paths["abalone.data"]
    code = {level: index for index, level in enumerate(dataset.public["levels"]["sex"])}
    sexes, measurements, rings = [], [], []
    lines = path.read_text(encoding="ascii", errors="backslashreplace").removesuffix("\n").split("\n")
    for number, line in enumerate(lines, start=1):
        where = f"{path} line {number}"
        fields = line.split(",")
        if len(fields) != len(NUMERIC) + 2:
            raise ValueError(f"{where}: {len(fields)} fields, expected {len(NUMERIC) + 2}: {line!r}")
        if fields[0] not in code:
            raise ValueError(f"{where}: sex = {fields[0]!r}: must be one of {', '.join(code)}")
        try:
            numbers = [files.number(field) for field in fields[1:-1]]
            count = files.count(fields[-1])
        except ValueError as error:
            raise ValueError(f"{where}: not a number ({error}): {line!r}") from error
        if min(numbers) < 0 or count < 1:
            raise ValueError(f"{where}: measurements must not be negative, rings at least 1: {line!r}")
        sexes.append(code[fields[0]])
        measurements.append(numbers)
        rings.append(count)
    expected = dataset.settings["train_rows"] + dataset.settings["test_rows"]
    if len(lines) != expected:
        raise ValueError(f"{path}: {len(lines)} rows, expected {expected}")
    columns = np.array(measurements)
    arrays = {name: np.ascontiguousarray(columns[:, index]) for index, name in enumerate(NUMERIC)}
    return {"sex": np.array(sexes, np.int8), **arrays, "rings": np.array(rings, np.int64)}


def task(arrays: dict[str, np.ndarray], dataset: Dataset) -> Task:
    """Return 9 features' columns and the labels, 1 for less than 10 rings (Geumlek et al. 2017, section 5)."""
    labels = arrays["rings"] < dataset.settings["rings_below"]
    return Task({name: arrays[name] for name in NUMERIC}, {"sex": arrays["sex"]}, labels)
