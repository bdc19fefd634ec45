"""Encodes typed columns as features of bounded norm (Geumlek et al. 2017, section 5).

Categories are one-hot, each feature is scaled to [-0.5, 0.5], and each example is divided by its L2 norm. So the
constant c of the paper's theorems 16 and 17 is 1.
"""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from privpost.datasets.catalogue import Dataset

BOUNDS = ("data", "public")
DROPPED_LEVELS = ("first", "last", "none")


class Task(NamedTuple):
    """A classification task of a loader: columns of features, labels (n,) of 0 and 1, and an official split.

    Columns have the shapes of `encode`. `is_test` (n,) bool marks the test rows, and is None if a split is drawn.
    """

    numeric: Mapping[str, np.ndarray]
    categorical: Mapping[str, np.ndarray]
    labels: np.ndarray
    is_test: np.ndarray | None = None


def scale(values: np.ndarray, low: np.ndarray | float, high: np.ndarray | float) -> np.ndarray:
    """Clip each column to [low, high] and map this interval to [-0.5, 0.5].

    ``values`` and the result are (n, d), ``low`` and ``high`` are (d,) or numbers. A column with low = high becomes 0.
    Raises ValueError for low > high or values that are not finite.
    """
    low, high = np.broadcast_arrays(np.asarray(low, float), np.asarray(high, float))
    if np.any(low > high):
        raise ValueError(f"bounds: low = {low.tolist()} exceeds high = {high.tolist()}")
    scaled = np.array(values, dtype=np.float64)
    if not np.all(np.isfinite(scaled)):
        raise ValueError("values: all must be finite")
    np.clip(scaled, low, high, out=scaled)
    scaled -= low
    scaled /= np.where(high > low, high - low, 1.0)
    scaled -= np.where(high > low, 0.5, 0.0)
    return scaled


def one_hot(codes: np.ndarray, levels: np.ndarray, dropped_level: str) -> np.ndarray:
    """Return one indicator column per level, except the dropped level.

    ``codes`` are (n,) integers, and ``levels`` (k,) are the possible codes in ascending order. ``dropped_level`` is
    "first", "last" or "none". The result is (n, k) or (n, k - 1) float64. Raises ValueError for other levels or codes.
    """
    if dropped_level not in DROPPED_LEVELS:
        raise ValueError(f"dropped_level = {dropped_level!r}: must be one of {', '.join(DROPPED_LEVELS)}")
    if not np.all(np.isin(codes, levels)):
        raise ValueError(f"codes: {sorted(set(codes.tolist()) - set(levels.tolist()))} are not among the levels")
    columns = {"first": levels[1:], "last": levels[:-1], "none": levels}[dropped_level]
    return (codes[:, None] == columns[None, :]).astype(np.float64)


def normalise_rows(features: np.ndarray) -> np.ndarray:
    """Divide each row of features (n, d) by its L2 norm. A zero row stays zero."""
    norms = np.linalg.norm(features, axis=1, keepdims=True)
    return features / np.where(norms > 0, norms, 1.0)


def encode(
    numeric: Mapping[str, np.ndarray],
    categorical: Mapping[str, np.ndarray],
    *,
    bounds: str,
    dropped_level: str,
    dataset: Dataset,
) -> np.ndarray:
    """Return the features (n, d) of all rows: numeric columns first, then the indicators of each categorical column.

    Rows of the result have norm 1 or 0. Numeric columns are (n,), or (n, k) for k features with one pair of bounds.
    Categorical columns are (n,) codes of the declared levels. ``bounds="data"`` takes levels, minima and maxima from
    the records, which are private. ``bounds="public"`` takes the declared levels and bounds, and clips values to the
    bounds. ``dropped_level`` is as in `one_hot`. Raises ValueError for unknown settings.
    """
    if bounds not in BOUNDS:
        raise ValueError(f"bounds = {bounds!r}: must be one of {', '.join(BOUNDS)}")
    if dropped_level not in DROPPED_LEVELS:
        raise ValueError(f"dropped_level = {dropped_level!r}: must be one of {', '.join(DROPPED_LEVELS)}")
    blocks: list[np.ndarray] = []
    low: list[float] = []
    high: list[float] = []
    for name, values in numeric.items():
        block = values.reshape(len(values), -1)
        pair = _declared(dataset, "bounds", name)
        blocks.append(block)
        low += [pair[0]] * block.shape[1]
        high += [pair[1]] * block.shape[1]
    for name, codes in categorical.items():
        declared = np.arange(len(_declared(dataset, "levels", name)))
        block = one_hot(codes, np.unique(codes) if bounds == "data" else declared, dropped_level)
        blocks.append(block)
        low += [0.0] * block.shape[1]
        high += [1.0] * block.shape[1]
    features = np.column_stack(blocks)
    if bounds == "data":
        return normalise_rows(scale(features, features.min(axis=0), features.max(axis=0)))
    return normalise_rows(scale(features, np.array(low), np.array(high)))


def split(task: Task, dataset: Dataset, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Return ascending indices of the training rows, shape (train_rows,), and of the test rows, shape (test_rows,).

    An official split draws nothing. Otherwise one permutation is drawn, and the settings of the data set give the
    sizes. Raises ValueError if these settings are missing or do not add up to the number of rows.
    """
    if task.is_test is not None:
        return np.flatnonzero(~task.is_test), np.flatnonzero(task.is_test)
    n_rows = len(task.labels)
    for key in ("train_rows", "test_rows"):
        if key not in dataset.settings:
            raise ValueError(f"dataset {dataset.name}: settings.{key} is not declared")
    train_rows, test_rows = dataset.settings["train_rows"], dataset.settings["test_rows"]
    if train_rows + test_rows != n_rows:
        raise ValueError(
            f"dataset {dataset.name}: train_rows = {train_rows} and test_rows = {test_rows} must add up to {n_rows}"
        )
    order = rng.permutation(n_rows)
    return np.sort(order[:train_rows]), np.sort(order[train_rows:])


def _declared(dataset: Dataset, kind: str, column: str) -> list:
    try:
        return dataset.public[kind][column]
    except KeyError as error:
        raise ValueError(f"dataset {dataset.name}: public.{kind}.{column} is not declared") from error
