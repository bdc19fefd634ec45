"""Claims on RDP curves of Dirichlet-categorical posterior sampling (Geumlek et al. 2017, appendix)."""

import numpy as np

from privpost.lab.claims import check, claim, number

# Relative rounding error of a supremum.
ROUNDING = 1e-9


def exact(table):
    """Yield, for each prior and number of categories, a name and the rows with exact suprema."""
    # At the asymptote itself, rounding errors decide whether ε is finite.
    rows = table[(table.supremum == "exact") & ((table.order - table.asymptote).abs() > 1e-9)]
    for (categories, prior), part in rows.groupby(["categories", "prior"]):
        yield f"{prior}, {categories} categories", part


@claim(
    "G11",
    "section 3.1 and appendix",
    "The Dirichlet-categorical curves behave like the beta-Bernoulli ones: they have an asymptote at 1 + "
    "min(alpha) / coefficient, and below it a finite supremum over O(d^3) pairs.",
    "finite exactly below the asymptote at every tabulated order",
    variant="corrected",
)
def asymptotes(dirichlet):
    for name, rows in exact(dirichlet):
        right = np.isfinite(rows.epsilon) == (rows.order < rows.asymptote)
        yield check(f"finite exactly below 1 + min(alpha)/coefficient ({name})", right.all())
        yield from number(f"orders, {name}", len(rows))


@claim(
    "G21",
    "ours",
    "The truncated concentrated DP bound of Dirichlet posterior sampling (Ponnoprat 2022) holds for the diffused "
    "mechanism, and charges more than the exact supremum.",
    "the bound over the exact supremum at every tabulated order that the bound covers, with the best constant at "
    f"each order and with one constant for all: never below 1 (relative rounding {ROUNDING:g})",
)
def published_bound(dirichlet):
    for name, rows in exact(dirichlet[dirichlet.method == "diffused"]):
        ratios = rows[["bound_ratio", "tcdp_ratio"]]
        yield check(f"not below the exact supremum ({name})", (ratios.stack().dropna() >= 1 - ROUNDING).all())
        for column, words in (("bound_ratio", "best constant at each order"), ("tcdp_ratio", "one constant")):
            ratio = ratios[column].dropna()
            evidence = {"smallest": ratio.min(), "median": ratio.median(), "largest": ratio.max()}
            yield from number(f"bound over the supremum, {words}, {name}", evidence)
