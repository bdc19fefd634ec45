"""What claims of many studies share: numbers as evidence, and differences beyond a number of standard errors."""

import math
from typing import Any

from privpost.evaluation.calibration import LEVEL, ks_limit, ks_visible
from privpost.evaluation.multiplicity import critical_value


def estimate(name: str, value, error, of: str = "") -> dict[str, Any]:
    """Return an estimate and its standard error as evidence; the error is named after `of`, else after the estimate."""
    return {name: value, f"its standard error, {of or name}": error}


def unpaired(row, other, name: str) -> tuple[float, float]:
    """Return a row's mean of a column pair `<name>_mean`, `<name>_sem` less another's, and its standard error."""
    mean, sem = (f"{name}_{kind}" for kind in ("mean", "sem"))
    return float(row[mean] - other[mean]), math.hypot(row[sem], other[sem])


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


def at_joint_level(rows):
    """Return rows, one test each, with `level`: the level of each test when all together have 5 % (Bonferroni)."""
    return rows.assign(level=LEVEL / max(1, len(rows)))


def ks_evidence(rows, what: str, where: str = "") -> dict[str, Any]:
    """Return the results of KS tests of a posterior, and what they would see.

    Args:
        rows: with `ks`, `p_value`, `n_trials` and `level`; trials and level are the same for all.
        what: the posterior, in words.
        where: what the rows have in common, in words.
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
    """Return a limit in words: how many standard errors, and how often a normal difference of 0 is beyond it.

    Args:
        limit: standard errors.
        comparisons: how many differences are compared with it on one side, together by Bonferroni's inequality.
    """
    from scipy.special import ndtr

    chance = ndtr(-limit)
    return (
        f"{limit:g} standard errors (one-sided {chance:.2g} each, at most "
        f"{min(1.0, comparisons * chance):.1%} together over {comparisons} comparisons)"
    )


def joint_limit(comparisons: int, sides: int = 1) -> tuple[float, str]:
    """Return how many standard errors no normal difference of 0 exceeds, at the joint level, and the same in words.

    Args:
        comparisons: how many differences are compared with it.
        sides: 1 where only one direction counts, else 2.
    """
    limit = critical_value(max(1, comparisons), 2 * LEVEL / sides)
    sided = "one-sided" if sides == 1 else "two-sided"
    return limit, f"{limit:.2f} standard errors ({sided}, {100 * LEVEL:g} % over {comparisons} comparisons)"


def student_limit(repeats: int, level: float) -> float:
    """Return what Student's t of a mean over `repeats` exceeds with probability `level`, on one side."""
    from scipy.special import stdtrit

    return float(stdtrit(repeats - 1, 1 - level))
