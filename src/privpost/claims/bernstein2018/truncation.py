"""Calibration of Algorithm 2 by bounds and by the covariance between segments (ours)."""

from __future__ import annotations

from privpost.evaluation.claims import Claim, Why, from_checks

STUCK_CHAINS = (
    "The redacted sum is not one-to-one in theta, so that a release of many records can support two values, and a "
    "chain may stay at the wrong one."
)


def dependent_segments(table) -> tuple[dict[tuple, bool], dict]:
    """Return whether Gibbs with public bounds and dependent segments passes at each (n, ε), and the evidence.

    It passes where its p-value is at least 5 % over the number of points (Bonferroni).
    """
    rows = table[(table.method == "gibbs") & (table.variant == "corrected")]
    level = 0.05 / max(1, len(rows))
    evidence: dict = {"p-value below which a point fails": level}
    if len(rows):
        evidence["95 % limit of a KS statistic"] = rows.ks_limit.max()
    passed = {}
    for row in rows.itertuples():
        passed[row.n, row.epsilon] = bool(row.p_value >= level)
        name = f"KS and p-value, dependent segments, n={row.n:g}, epsilon={row.epsilon:g}"
        evidence[name] = [row.ks, row.p_value]
    return passed, evidence


def stuck_chains(passed: dict[tuple, bool], largest_n, checks: str, found: str = "") -> Why:
    """Return stuck chains as the cause of failing checks, if points (n, ε) fail at the largest n only.

    `checks` is the pattern of the checks' names, `found` a sentence on what the tables show of it.
    """
    failed = [n for (n, _), ok in passed.items() if not ok]
    # With fewer records a release does not tell two values of θ apart so sharply that chains never cross.
    when = bool(failed) and all(n == largest_n for n in failed)
    text = f"{STUCK_CHAINS} {found}".strip()
    return Why(text, (checks,), "docs/bernstein2018.md#redaction-whose-bounds-which-covariance-truncation-ours", when)


def claims(tables) -> list[Claim]:
    """Score B10: with public bounds Algorithm 2 needs the covariance between segments, and is calibrated with it."""
    table = tables["truncation"]
    independent = table[(table.method == "gibbs") & (table.variant == "public_bounds")]
    passed, evidence = dependent_segments(table)
    level = evidence["p-value below which a point fails"]
    for row in independent.itertuples():
        name = f"KS and p-value, independent segments, n={row.n:g}, epsilon={row.epsilon:g}"
        evidence[name] = [row.ks, row.p_value]
    points = {point: f"n={point[0]:g}, epsilon={point[1]:g}" for point in passed}
    checks = {f"dependent segments within the Bonferroni limit ({points[point]})": passed[point] for point in passed}
    checks["independent segments beyond the Bonferroni limit somewhere"] = (independent.p_value < level).any()
    found = "Without a chain, by quadrature, the same posterior is calibrated there."
    return [
        from_checks(
            "B10",
            "ours",
            "With public bounds Algorithm 2 is calibrated with dependent segments, not with independent ones.",
            "p-values of the KS statistics against 5 % / number of points: below it at some point for independent "
            "segments, at no point for dependent ones",
            checks,
            evidence,
            whys=[stuck_chains(passed, table.n.max(), "dependent segments within*", found)],
            variant="public_bounds, corrected",
        )
    ]
