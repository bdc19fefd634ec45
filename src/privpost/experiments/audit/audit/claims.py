"""Privacy audit of every mechanism: the claimed ε against exact divergences and statistical lower bounds."""

import math

from privpost.evaluation.claims import Claim, Why, from_checks
from privpost.experiments.audit.audit.study import ROUNDING, TARGET_ROUNDING

# Probability that draws of the right law are taken for others, over all rows.
FALSE_ALARM = 0.001
AUDIT_DOC = "docs/audit.md#audit-resultsauditauditcsv-figuresaudittightnesssvg"
OPS_DOC = "docs/geumlek2017.md#logistic-regression-logistic-figure-3"


def claims(tables) -> list[Claim]:
    """Score A1 to A6."""
    table = tables["audit"]
    known = table[table.exact.notna()]
    within = _bounds_within(table), _exact_within(known), _bounds_below_exact(known[known.n_samples > 0])
    return [*within, _spends_half(known), _follows_its_law(table[table.drawn_p.notna()]), _within_target(table)]


def _score(id, statement, test, checks, evidence, whys=()) -> Claim:
    return from_checks(id, "ours", statement, test, checks, evidence, whys=whys, variant="shipped mechanisms")


def _bounds_within(table) -> Claim:
    over = table[table.lower_bound > table.claimed_epsilon * (1 + ROUNDING)]
    return _score(
        "A1",
        "No audited lower bound exceeds the claimed epsilon, for any mechanism.",
        f"Clopper-Pearson bounds on events chosen on separate releases, {table.confidence.iloc[0]:.0%} confidence "
        f"jointly over {len(table)} rows (Bonferroni)",
        {f"{len(table)} bounds are within their claims": over.empty and len(table) > 0},
        {
            "rows": len(table),
            "mechanisms": table.mechanism.nunique(),
            "largest bound / claim": (table.lower_bound / table.claimed_epsilon).max(),
            "violations": over.instance.tolist(),
        },
    )


def _exact_within(known) -> Claim:
    over = known[known.exact > known.claimed_epsilon * (1 + ROUNDING)]
    return _score(
        "A2",
        "Where the law of the release is known, the exact worst case over all neighbours is within the claim.",
        f"exact divergence at most the claim (relative rounding {ROUNDING:g})",
        {f"{len(known)} exact worst cases are within their claims": over.empty and len(known) > 0},
        {"rows": len(known), "largest share": known.tightness.max(), "violations": over.instance.tolist()},
    )


def _bounds_below_exact(known) -> Claim:
    over = known[known.lower_bound > known.exact * (1 + ROUNDING)]
    share = known.lower_bound / known.exact
    return _score(
        "A3",
        "The statistical bounds agree with the exact divergences: none lies above.",
        f"lower bound at most the exact divergence, {known.confidence.max():.0%} confidence jointly",
        {f"{len(known)} bounds lie below the exact divergence": over.empty and len(known) > 0},
        {"median bound / exact": share.median(), "largest bound / exact": share.max()},
    )


def _spends_half(known) -> Claim:
    by_kind = known.groupby(["mechanism", "variant"], dropna=False).tightness.max().sort_values()
    shares = {
        mechanism if isinstance(variant, float) else f"{mechanism}, {variant}": float(share)
        for (mechanism, variant), share in by_kind.items()
    }
    paper = "LogisticOps, paper"
    corrected = shares.get("LogisticOps, corrected_charge", 0.0)
    return _score(
        "A4",
        "Every mechanism of a known law spends at least half of its claimed epsilon on its worst neighbours.",
        "largest exact divergence / claim of each mechanism and variant at least 0.5, on the audited instances",
        {name: share >= 0.5 for name, share in shares.items()},
        {
            "rows below one half": (known.tightness < 0.5).sum(),
            "smallest": by_kind.iloc[0],
            "largest": by_kind.iloc[-1],
            "largest share of the claim that is spent": shares,
        },
        whys=[
            Why(
                "The paper charges OPS twice the bound on its pure cost, so that no pair can spend more than half: at "
                f"most {_most(shares, paper):.0%} of the charge is spent; where the bound is charged, {corrected:.0%}.",
                (paper,),
                OPS_DOC,
                when=corrected >= 0.5,
            ),
            Why(
                f"The pairs examined spend at most {_most(shares, 'Link'):.0%} of these claims; whether others, or "
                "more records, spend more was not examined.",
                ("LinkDiffused*", "LinkConcentrated*"),
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
    )


def _follows_its_law(drawn) -> Claim:
    other = drawn[drawn.drawn_p < FALSE_ALARM / len(drawn)]
    return _score(
        "A5",
        "Drawn releases follow the law that their mechanism's settings mean.",
        f"Kolmogorov-Smirnov tests of marginals against quadrature or closed form, false alarm {FALSE_ALARM} jointly",
        {f"{len(drawn)} rows draw from their laws": other.empty and len(drawn) > 0},
        {"rows": len(drawn), "smallest p": drawn.drawn_p.min(), "violations": other.instance.tolist()},
    )


def _within_target(table) -> Claim:
    over, recorded = table[table.share_of_target > 1 + TARGET_ROUNDING], (table.source == "records").sum()
    return _score(
        "A6",
        "No recorded mechanism of a study, nor an example calibrated to a budget, claims more than its target.",
        f"claim / target at most 1, in the target's notion (relative rounding {TARGET_ROUNDING:g}); of a study's "
        "mechanisms that differ in numbers only three have rows, whose share of the target is the largest of all",
        {
            f"{len(table)} claims, of which {recorded} are recorded, are within their targets": over.empty
            and recorded > 0
        },
        {
            "recorded settings": recorded,
            "not examined": (table.verdict == "not examined").sum(),
            "largest": table.share_of_target.max(),
            "violations": over.instance.tolist(),
        },
    )


def _most(shares: dict[str, float], prefix: str) -> float:
    """Return the largest share below one half of the mechanisms whose names start with a prefix."""
    return max((share for name, share in shares.items() if name.startswith(prefix) and share < 0.5), default=math.nan)
