"""What claims of many studies share: numbers as evidence, and differences beyond a number of standard errors."""

from __future__ import annotations

from typing import Any


def estimate(name: str, value, error, of: str = "") -> dict[str, Any]:
    """Return evidence of an estimate and its standard error, which is named after `of` or the estimate's whole name."""
    return {name: value, f"its standard error, {of or name}": error}


def ends(values) -> list:
    """Return the smallest and the largest of some values."""
    return [values.min(), values.max()]


def above(rows, difference: str, limit: float):
    """Return where a difference exceeds 0 by `limit` standard errors.

    `rows` is a row or a table with columns `<difference>_mean` and `<difference>_sem`.
    """
    return getattr(rows, f"{difference}_mean") > limit * getattr(rows, f"{difference}_sem")


def below(rows, difference: str, limit: float):
    """Return where a difference is less than 0 by `limit` standard errors; see `above`."""
    return getattr(rows, f"{difference}_mean") < -limit * getattr(rows, f"{difference}_sem")


def undecided(rows, difference: str, limit: float):
    """Return where a difference is within `limit` standard errors of 0; see `above`."""
    return abs(getattr(rows, f"{difference}_mean")) <= limit * getattr(rows, f"{difference}_sem")


def student_limit(repeats: int, level: float) -> float:
    """Return what Student's t of a mean over `repeats` exceeds with probability `level`, on one side."""
    from scipy.special import stdtrit

    return float(stdtrit(repeats - 1, 1 - level))
