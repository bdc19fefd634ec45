"""What the audit found of the mechanisms behind a study's figures, for the report."""

from __future__ import annotations

import math
from typing import Any

from privpost.pipeline.plan import Plan
from privpost.pipeline.tables import read_tables

STUDY = "audit/audit"


def by_study(plan: Plan) -> dict[str, list[dict[str, Any]]]:
    """Return for each study the mechanisms that its ledger records, with their audit rows; none without the table."""
    try:
        table = read_tables(plan.studies[STUDY])["audit"]
    except (FileNotFoundError, KeyError):
        return {}
    return {name: behind(table, name) for name in plan.studies if name != STUDY}


def behind(table, study: str) -> list[dict[str, Any]]:
    """Return one row per mechanism and variant that a study ran, from the audit of its recorded settings.

    `settings` are how many of them were audited, `exact` and `bound` the largest shares of the claim that are spent,
    by exact divergence and by statistical bound, `p` the smallest p-value of draws under their law (None where there is
    none), `verdict` the worst one.
    """
    runs_it = table.study.map(lambda names: study in names.split(", "))
    used = table[(table.source == "records") & runs_it]
    return [
        {
            "mechanism": mechanism if isinstance(variant, float) else f"{mechanism}, {variant}",
            "settings": len(rows),
            "exact": _number((rows.exact / rows.claimed_epsilon).max()),
            "bound": _number((rows.lower_bound / rows.claimed_epsilon).max()),
            "p": _number(rows.drawn_p.min()),
            "verdict": ", ".join(sorted(set(rows.verdict) - {"within claim"})) or "within claim",
        }
        for (mechanism, variant), rows in used.groupby(["mechanism", "variant"], dropna=False)
    ]


def _number(value) -> float | None:
    return None if math.isnan(value) else float(value)
