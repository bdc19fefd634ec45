"""Calibration of Algorithm 2 by bounds and by the covariance between segments (ours)."""

from privpost.evaluation.calibration import LEVEL
from privpost.evaluation.rows import select
from privpost.experiments.claim_helpers import at_joint_level, ks_evidence
from privpost.lab.claims import check, claim, numbers


def public_bounds(table, method: str, names: str):
    """Yield a check for each (n, ε) with public bounds and dependent segments, and the evidence.

    A method passes where its p-value is at least 5 % over the number of points (Bonferroni); `names` formats a row.
    """
    rows = at_joint_level(select(table, method=method, variant="corrected"))
    words = {"gibbs": ("Gibbs", "dependent"), "exact": ("the posterior without a chain", "any")}
    for row in rows.itertuples():
        yield check(names.format(row=row), row.p_value >= row.level)
    yield from by_n(rows, *words[method])


def by_n(rows, what: str, segments: str):
    """Yield the evidence of the tests at each n, whose points have as many trials."""
    for n, part in rows.groupby("n"):
        yield from numbers(ks_evidence(part, what, f"exponential, {segments} segments, n = {n:g}"))


@claim(
    "B10",
    "ours",
    "With public bounds Algorithm 2 is calibrated with dependent segments, not with independent ones.",
    f"p-values of the KS statistics against {LEVEL:g} / number of points: below it at some point for "
    "independent segments, at no point for dependent ones, nor for the same posterior without a chain",
    variant="public_bounds, corrected",
)
def segments(truncation):
    point = "within the Bonferroni limit (n={row.n:g}, epsilon={row.epsilon:g})"
    yield from public_bounds(truncation, "gibbs", f"dependent segments {point}")
    yield from public_bounds(truncation, "exact", f"no chain {point}")
    independent = at_joint_level(select(truncation, method="gibbs", variant="public_bounds"))
    beyond = (independent.p_value < independent.level).any()
    yield check("independent segments beyond the Bonferroni limit somewhere", beyond)
    yield from by_n(independent, "Gibbs", "independent")
