"""Means over repeats, and their standard errors."""

import math

import numpy as np

# A 95 % interval reaches this many standard errors to either side.
Z = 1.959963984540054


def mean_and_sem(values) -> tuple[np.ndarray, np.ndarray]:
    """Return the mean (...) of independent values (..., repeats) and its standard error. Too few values give nan."""
    values = np.asarray(values)
    repeats = values.shape[-1]
    nothing = np.full(values.shape[:-1], math.nan)[()]
    mean = values.mean(axis=-1) if repeats else nothing
    return mean, values.std(axis=-1, ddof=1) / math.sqrt(repeats) if repeats > 1 else nothing


def share_error(share, size) -> np.ndarray:
    """Return the standard error √(p(1−p)/size) of shares p of independent trials.

    For p = 0 or 1, the standard error is z/(size + z²) with z = 1.96, so an interval of z standard errors ends where
    Wilson's 95 % interval ends. For one trial, the standard error is nan.
    """
    share, size = np.asarray(share, float), np.asarray(size)
    certain = (share == 0) | (share == 1)
    error = np.where(certain, Z / (size + Z * Z), np.sqrt(share * (1 - share) / size))
    return np.where(size < 2, math.nan, error)[()]


def mean_columns(name: str, values) -> dict[str, float]:
    """Return the columns `<name>_mean` and `<name>_sem` of values (repeats,), or `mean` and `sem` for an empty name.

    To compare two methods, pass the differences of their paired repeats.
    """
    mean, sem = mean_and_sem(values)
    stem = f"{name}_" if name else ""
    return {f"{stem}mean": float(mean), f"{stem}sem": float(sem)}


def in_standard_errors(rows):
    """Return the mean difference of each row divided by its standard error, or 0 if the mean difference is 0."""
    mean, sem = (np.asarray(getattr(rows, f"difference_{what}"), float) for what in ("mean", "sem"))
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(mean == 0, 0.0, mean / sem)
