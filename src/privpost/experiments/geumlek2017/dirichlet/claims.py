"""RDP curves of Dirichlet-categorical posterior sampling (Geumlek et al. 2017, appendix)."""

import numpy as np

from privpost.evaluation.claims import Claim, from_checks

# Relative rounding of a supremum.
ROUNDING = 1e-9


def claims(tables) -> list[Claim]:
    """Score G11, the asymptotes, and G21, a published bound, for more than two categories."""
    table = tables["dirichlet"]
    # At the asymptote itself rounding decides.
    exact = table[(table.supremum == "exact") & ((table.order - table.asymptote).abs() > 1e-9)]
    return [_asymptotes(exact), _published(exact[exact.method == "diffused"])]


def _asymptotes(exact) -> Claim:
    checks, evidence = {}, {}
    for (categories, prior), rows in exact.groupby(["categories", "prior"]):
        name = f"{prior}, {categories} categories"
        right = np.isfinite(rows.epsilon) == (rows.order < rows.asymptote)
        checks[f"finite exactly below 1 + min(alpha)/coefficient ({name})"] = right.all()
        evidence[f"orders, {name}"] = len(rows)
    return from_checks(
        "G11",
        "section 3.1 and appendix",
        "The Dirichlet-categorical curves behave like the beta-Bernoulli ones: an asymptote at 1 + min(alpha) / "
        "coefficient, and a finite supremum from O(d^3) pairs below it.",
        "finite exactly below the asymptote at every tabulated order",
        checks,
        evidence,
        variant="corrected",
    )


def _published(rows) -> Claim:
    checks, evidence = {}, {}
    for (categories, prior), part in rows.groupby(["categories", "prior"]):
        name = f"{prior}, {categories} categories"
        ratios = part[["bound_ratio", "tcdp_ratio"]].stack().dropna()
        checks[f"not below the exact supremum ({name})"] = (ratios >= 1 - ROUNDING).all()
        for column, words in (("bound_ratio", "best constant at each order"), ("tcdp_ratio", "one constant")):
            ratio = part[column].dropna()
            found = {"smallest": ratio.min(), "median": ratio.median(), "largest": ratio.max()}
            evidence[f"bound over the supremum, {words}, {name}"] = found
    return from_checks(
        "G21",
        "ours",
        "The truncated concentrated DP bound of Dirichlet posterior sampling (Ponnoprat 2022) holds for the diffused "
        "mechanism, and charges more than the exact supremum.",
        "the bound over the exact supremum at every tabulated order that it covers, with the best constant at each "
        f"order and with one constant for all: never below 1 (relative rounding {ROUNDING:g})",
        checks,
        evidence,
    )
