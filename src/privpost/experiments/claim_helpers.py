"""Helpers for the claims of many studies: estimates as evidence, comparisons in standard errors, and KS tests."""

import math
from typing import Any

from privpost.evaluation.calibration import LEVEL, ks_limit, ks_visible
from privpost.evaluation.multiplicity import critical_value


def estimate(name: str, value, error, of: str = "") -> dict[str, Any]:
    """Return an estimate and the standard error as evidence. The error's label contains `of`, or else `name`."""
    return {name: value, f"its standard error, {of or name}": error}


def unpaired(row, other, name: str) -> tuple[float, float]:
    """Return the difference of `<name>_mean` between two independent rows, and the difference's standard error."""
    mean, sem = (f"{name}_{kind}" for kind in ("mean", "sem"))
    return float(row[mean] - other[mean]), math.hypot(row[sem], other[sem])


def ends(values) -> list:
    """Return the smallest and the largest of some values."""
    return [values.min(), values.max()]


def above(rows, difference: str, limit: float):
    """Return, for each row, whether a difference exceeds 0 by more than `limit` standard errors.

    `rows`, one row or a table, has the columns `<difference>_mean` and `<difference>_sem`.
    """
    return getattr(rows, f"{difference}_mean") > limit * getattr(rows, f"{difference}_sem")


def below(rows, difference: str, limit: float):
    """Return, for each row, whether a difference is below 0 by more than `limit` standard errors."""
    return getattr(rows, f"{difference}_mean") < -limit * getattr(rows, f"{difference}_sem")


def at_joint_level(rows):
    """Return rows of tests with a column `level`: 5 % divided by the number of rows (Bonferroni)."""
    return rows.assign(level=LEVEL / max(1, len(rows)))


def ks_evidence(rows, what: str, where: str = "") -> dict[str, Any]:
    """Return evidence from Kolmogorov-Smirnov (KS) tests of a posterior: results, and what the tests can detect.

    All rows must have the same `n_trials` and `level`. The texts `what` and `where` name the posterior and the rows.
    """
    suffix, level, trials = f", {where}" if where else "", float(rows.level.max()), int(rows.n_trials.min())
    return {
        f"tests of {what} that reject{suffix}": int((rows.p_value < rows.level).sum()),
        f"tests of {what}{suffix}": len(rows),
        f"largest KS of {what}{suffix}": rows.ks.max(),
        f"smallest p-value of {what}{suffix}": rows.p_value.min(),
        f"trials{suffix}": trials,
        f"KS beyond which a test rejects{suffix}": ks_limit(trials, level),
        f"miscalibration that a test sees with a chance of 80 %{suffix}": ks_visible(trials, level),
    }


def errors_allowed(limit: float, comparisons: int) -> str:
    """Return, as text, a limit, and the chance that a normal estimate exceeds it if the true difference is zero."""
    from scipy.special import ndtr

    chance = ndtr(-limit)
    return (
        f"{limit:g} standard errors (one-sided {chance:.2g} each, at most "
        f"{min(1.0, comparisons * chance):.1%} together over {comparisons} comparisons)"
    )


def joint_limit(comparisons: int, sides: int = 1) -> tuple[float, str]:
    """Return a limit in standard errors for tests with the joint level `LEVEL`, as a number and in words.

    `sides` is 1 if only one direction counts, else 2.
    """
    limit = critical_value(max(1, comparisons), 2 * LEVEL / sides)
    sided = "one-sided" if sides == 1 else "two-sided"
    return limit, f"{limit:.2f} standard errors ({sided}, {100 * LEVEL:g} % over {comparisons} comparisons)"


def student_limit(repeats: int, level: float) -> float:
    """Return the value that Student's t of a mean over `repeats` values exceeds with probability `level`."""
    from scipy.special import stdtrit

    return float(stdtrit(repeats - 1, 1 - level))
