"""Claims of Geumlek et al. (2017) that go beyond one figure, scored from the paper's tables together."""

from __future__ import annotations

from privpost.evaluation.claims import Claim, from_checks


def claims(tables) -> list[Claim]:
    """Score G12: every privacy level is reached by a small enough coefficient."""
    rows = tables["tradeoff"]
    rows = rows[(rows.metric == "kl") & rows.method.isin(["diffused", "concentrated"])]
    checks, evidence = {}, {}
    for (variant, method, order), curve in rows.groupby(["variant", "method", "order"]):
        name = f"{method}, order {order:g}, {variant}"
        coefficients = curve.sort_values("log_epsilon").coefficient
        evidence[f"coefficient at the smallest epsilon, {name}"] = coefficients.iloc[0]
        within = bool(((coefficients > 0) & (coefficients <= 1)).all())
        checks[f"a coefficient in (0, 1] at every epsilon, growing with it ({name})"] = (
            within and coefficients.is_monotonic_increasing
        )
    return [
        from_checks(
            "G12",
            "theorems 13 and 14",
            "A small enough coefficient reaches any privacy level, also above the critical order.",
            "the coefficient found for each epsilon of the trade-off, at an order below and one above the critical "
            "order: positive, at most 1, and growing with epsilon (exact, no multiplicity)",
            checks,
            evidence,
            variant="paper, corrected",
        )
    ]
