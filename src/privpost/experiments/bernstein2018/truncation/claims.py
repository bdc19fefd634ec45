"""Calibration of Algorithm 2 by bounds and by the covariance between segments (ours)."""

from privpost.evaluation.calibration import LEVEL
from privpost.evaluation.claims import Claim, Why, from_checks
from privpost.evaluation.rows import select
from privpost.experiments.claim_helpers import at_joint_level, ks_evidence

STUCK_CHAINS = (
    "The redacted sum is not one-to-one in theta, so that a release of many records can support two values, and a "
    "chain may stay at the wrong one."
)


def public_bounds(table, method: str) -> tuple[dict[tuple, bool], dict]:
    """Return whether a method passes at each (n, ε) with public bounds and dependent segments, and the evidence.

    It passes where its p-value is at least 5 % over the number of points (Bonferroni).
    """
    rows = at_joint_level(select(table, method=method, variant="corrected"))
    passed = {(row.n, row.epsilon): bool(row.p_value >= row.level) for row in rows.itertuples()}
    words = {"gibbs": ("Gibbs", "dependent"), "exact": ("the posterior without a chain", "any")}
    return passed, _evidence(rows, *words[method])


def _evidence(rows, what: str, segments: str) -> dict:
    """Return the evidence of the tests at each n, whose points have as many trials."""
    found = (ks_evidence(part, what, f"exponential, {segments} segments, n = {n:g}") for n, part in rows.groupby("n"))
    return {name: value for part in found for name, value in part.items()}


def stuck_chains(gibbs: dict[tuple, bool], exact: dict[tuple, bool], checks: str, found: str = "") -> Why:
    """Return stuck chains as the cause of failing checks, if at all points that fail the posterior without one passes.

    `checks` is the pattern of the checks' names, `found` a sentence on what the tables show of it.
    """
    failed = [point for point, passed in gibbs.items() if not passed]
    when = bool(failed) and all(exact.get(point, False) for point in failed)
    text = f"{STUCK_CHAINS} {found}".strip()
    return Why(text, (checks,), "docs/bernstein2018.md#redaction-whose-bounds-which-covariance-truncation-ours", when)


def claims(tables) -> list[Claim]:
    """Score B10: with public bounds Algorithm 2 needs the covariance between segments, and is calibrated with it."""
    table = tables["truncation"]
    independent = select(table, method="gibbs", variant="public_bounds")
    gibbs, evidence = public_bounds(table, "gibbs")
    exact, found = public_bounds(table, "exact")
    level = LEVEL / max(1, len(gibbs))
    evidence = {**found, **evidence, **_evidence(independent.assign(level=level), "Gibbs", "independent")}
    checks = {
        f"{words} within the Bonferroni limit (n={n:g}, epsilon={epsilon:g})": passes
        for words, passed in (("dependent segments", gibbs), ("no chain", exact))
        for (n, epsilon), passes in passed.items()
    }
    checks["independent segments beyond the Bonferroni limit somewhere"] = (independent.p_value < level).any()
    return [
        from_checks(
            "B10",
            "ours",
            "With public bounds Algorithm 2 is calibrated with dependent segments, not with independent ones.",
            f"p-values of the KS statistics against {LEVEL:g} / number of points: below it at some point for "
            "independent segments, at no point for dependent ones, nor for the same posterior without a chain",
            checks,
            evidence,
            whys=[
                stuck_chains(gibbs, exact, "dependent segments within*", "Without a chain the posterior is calibrated.")
            ],
            variant="public_bounds, corrected",
        )
    ]
