"""Privacy audit of every mechanism: the claimed ε against exact divergences and statistical lower bounds."""

from __future__ import annotations

import math

from privpost.evaluation.claims import Claim, Why, from_checks
from privpost.studies.audit.audit import ROUNDING

LOOSE_LOGISTIC = ("LogisticDiffused*", "LogisticDirect*", "LogisticConcentrated*")
AUDIT_DOC = "docs/audit.md#audit-resultsauditauditcsv-figuresaudittightnesspng"


def _most(shares: dict[str, float], prefix: str) -> float:
    """Return the largest share below one half of the mechanisms whose names start with a prefix."""
    return max((share for name, share in shares.items() if name.startswith(prefix) and share < 0.5), default=math.nan)


def claims(tables) -> list[Claim]:
    """Score A1 to A4."""
    table = tables["audit"]
    limit = table.claimed_epsilon * (1 + ROUNDING)
    over = table[table.lower_bound > limit]
    known = table[table.exact.notna()]
    above = known[known.exact > known.claimed_epsilon * (1 + ROUNDING)]
    crossed = known[known.lower_bound > known.exact * (1 + ROUNDING)]
    confidence = float(table.confidence.iloc[0])
    by_kind = known.groupby(["mechanism", "variant"], dropna=False).tightness.max().sort_values()
    loose = known[known.tightness < 0.5]
    shares = {
        mechanism if isinstance(variant, float) else f"{mechanism}, {variant}": float(share)
        for (mechanism, variant), share in by_kind.items()
    }
    results = [
        from_checks(
            "A1",
            "ours",
            "No audited lower bound exceeds the claimed epsilon, for any mechanism.",
            f"Clopper-Pearson bounds on events chosen on separate releases, {confidence:.0%} confidence jointly over "
            f"{len(table)} rows (Bonferroni)",
            {f"{len(table)} bounds are within their claims": over.empty and len(table) > 0},
            {
                "rows": len(table),
                "mechanisms": int(table.mechanism.nunique()),
                "largest bound / claim": float((table.lower_bound / table.claimed_epsilon).max()),
                "violations": over.instance.tolist(),
            },
            variant="shipped mechanisms",
        ),
        from_checks(
            "A2",
            "ours",
            "Where the law of the release is known, the exact worst case over all neighbours is within the claim.",
            f"exact divergence at most the claim (relative rounding {ROUNDING:g})",
            {f"{len(known)} exact worst cases are within their claims": above.empty and len(known) > 0},
            {"rows": len(known), "largest share": float(known.tightness.max()), "violations": above.instance.tolist()},
            variant="shipped mechanisms",
        ),
        from_checks(
            "A3",
            "ours",
            "The statistical bounds agree with the exact divergences: none lies above.",
            f"lower bound at most the exact divergence, {confidence:.0%} confidence jointly",
            {f"{len(known)} bounds lie below the exact divergence": crossed.empty and len(known) > 0},
            {
                "median bound / exact": float((known.lower_bound / known.exact).median()),
                "largest bound / exact": float((known.lower_bound / known.exact).max()),
            },
            variant="shipped mechanisms",
        ),
        from_checks(
            "A4",
            "ours",
            "Every mechanism of a known law spends at least half of its claimed epsilon on its worst neighbours.",
            "largest exact divergence / claim of each mechanism and variant at least 0.5, on the audited instances",
            {name: bool(share >= 0.5) for name, share in shares.items()},
            {
                "rows below one half": len(loose),
                "smallest": float(by_kind.iloc[0]),
                "largest": float(by_kind.iloc[-1]),
                "largest share of the claim that is spent": shares,
            },
            whys=[
                Why(
                    "Theorems 16 and 17 bound the change of the gradient by its largest value at every weight at once, "
                    "which no pair of neighbours attains; on one weight at most "
                    f"{_most(shares, 'Logistic'):.0%} of the Rényi claims of logistic regression are spent.",
                    LOOSE_LOGISTIC,
                    AUDIT_DOC,
                ),
                Why(
                    "The exponential mechanism is charged for its numerator and its normaliser separately, though "
                    "neighbours cannot move both by their most; MAP estimates spend at most "
                    f"{_most(shares, 'MapMechanism'):.0%}.",
                    ("MapMechanism*",),
                    AUDIT_DOC,
                ),
            ],
            variant="shipped mechanisms",
        ),
    ]
    return results
