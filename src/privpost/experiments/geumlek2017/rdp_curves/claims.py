"""RDP curves of the diffused and concentrated beta-Bernoulli posterior samplers (Geumlek et al. 2017, figure 1)."""

import numpy as np

from privpost.evaluation.claims import Claim, Why, from_checks, verdict_of

# Relative rounding of a supremum.
ROUNDING = 1e-9


def claims(tables) -> list[Claim]:
    """Score G1 (where the asymptotes are) and G2 (a smaller coefficient is more private at every order)."""
    table = tables["rdp_curves"]
    right = np.isfinite(table.epsilon) == (table.order < table.asymptote)
    by = ["method", "supremum", "order"]
    tempered = table[table.method != "direct"]
    wide = tempered.pivot_table(index=by, columns="coefficient", values="epsilon", dropna=False)
    values = wide.to_numpy()
    with np.errstate(invalid="ignore"):
        step = np.diff(values, axis=1)
    # Two infinite values next to each other say nothing about the order of the curves.
    both_infinite = np.isinf(values[:, 1:]) & np.isinf(values[:, :-1])
    lower = (step > 0) | both_infinite
    counts = np.isfinite(values).sum(axis=0)
    return [
        Claim(
            id="G1",
            place="section 5.1, figure 1",
            statement="Each curve is finite below the order 1 + min(alpha, beta)/coefficient and infinite from it on.",
            test="epsilon is finite exactly at the tabulated orders below the asymptote, all curves",
            verdict=verdict_of(float(right.mean())),
            evidence={"share_of_rows": float(right.mean()), "rows": len(table)},
            reason="" if right.all() else "some rows are finite beyond, or infinite before, the asymptote",
        ),
        Claim(
            id="G2",
            place="section 5.1, figure 1",
            statement="A smaller coefficient lowers epsilon at every order and makes more orders finite.",
            test="epsilon increases with the coefficient at every order where it is finite; number of finite orders",
            verdict=verdict_of(float(lower.mean())) if (np.diff(counts) <= 0).all() else "does not hold",
            evidence={
                "share_of_steps": float(lower.mean()),
                "finite_rows": {f"{c:g}": int(n) for c, n in zip(wide.columns, counts, strict=True)},
            },
            reason="" if lower.all() and (np.diff(counts) <= 0).all() else "some steps go the other way",
        ),
        _pairs(table),
    ]


def _pairs(table) -> Claim:
    """G13: whether the pairs of corollary 2 are the worst neighbours."""
    by = ["method", "coefficient", "order"]
    wide = table.pivot_table(index=by, columns="supremum", values="epsilon", dropna=False)
    finite = wide[np.isfinite(wide).all(axis=1)]
    ratio = finite["paper"] / finite["exact"]
    above = ratio[ratio > 1 + ROUNDING].index.get_level_values("order")
    return from_checks(
        "G13",
        "corollary 2",
        "The supremum over neighbouring data sets is the largest of the divergences of four pairs.",
        "epsilon of the paper's pairs against the supremum over all pairs of data sets that exist, at every tabulated "
        f"order and coefficient: nowhere smaller, and nowhere larger (relative rounding {ROUNDING:g})",
        {
            "the pairs give an upper bound": (ratio >= 1 - ROUNDING).all()
            and (np.isfinite(wide["paper"]) == np.isfinite(wide["exact"])).all(),
            "some neighbours attain it": len(above) == 0,
        },
        {
            "rows": len(finite),
            "rows that are charged too much": len(above),
            "largest charge over the supremum": ratio.max(),
        },
        variant="paper, exact",
        whys=[
            Why(
                "Two of the four pairs lie beyond the ends, where no data set is: they cost up to "
                f"{ratio.max() - 1:.1%} more than any pair that exists, at orders up to {above.max():g}."
                if len(above)
                else "",
                ("some neighbours attain it",),
                "docs/geumlek2017.md#curves-of-the-beta-bernoulli-model-rdp_curves-figure-1",
            )
        ],
    )
