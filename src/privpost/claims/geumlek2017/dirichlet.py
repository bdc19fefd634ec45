"""RDP curves of Dirichlet-categorical posterior sampling (Geumlek et al. 2017, appendix)."""

from __future__ import annotations

import numpy as np

from privpost.evaluation.claims import Claim, from_checks


def claims(tables) -> list[Claim]:
    """Score G11: the asymptotes and the closed-form bound for more than two categories."""
    table = tables["dirichlet"]
    checks, evidence = {}, {}
    for (categories, prior), rows in table.groupby(["categories", "prior"]):
        name = f"{prior}, {categories} categories"
        exact = rows[rows.supremum == "exact"]
        # At the asymptote itself rounding decides.
        clear = exact[(exact.order - exact.asymptote).abs() > 1e-9]
        right = np.isfinite(clear.epsilon) == (clear.order < clear.asymptote)
        checks[f"finite exactly below 1 + min(alpha)/coefficient ({name})"] = right.all()
        bounded = clear[clear.method == "diffused"]
        checks[f"below the closed-form bound ({name})"] = (bounded.epsilon <= bounded.bound * (1 + 1e-9)).all()
        finite = bounded[np.isfinite(bounded.bound) & np.isfinite(bounded.epsilon)]
        evidence[f"largest share of the bound, {name}"] = (finite.epsilon / finite.bound).max()
    return [
        from_checks(
            "G11",
            "section 3.1 and appendix",
            "The Dirichlet-categorical curves behave like the beta-Bernoulli ones: an asymptote at 1 + min(alpha) / "
            "coefficient, and a finite supremum from O(d^3) pairs below it.",
            "finite exactly below the asymptote at every tabulated order; never above a closed-form bound",
            checks,
            evidence,
            variant="corrected",
        )
    ]
