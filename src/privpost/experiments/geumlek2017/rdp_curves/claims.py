"""RDP curves of the diffused and concentrated beta-Bernoulli posterior samplers (Geumlek et al. 2017, figure 1)."""

import numpy as np

from privpost.lab.claims import check, claim, number

FIGURE = "section 5.1, figure 1"
# Relative rounding of a supremum.
ROUNDING = 1e-9


@claim(
    "G1",
    FIGURE,
    "Each curve is finite below the order 1 + min(alpha, beta)/coefficient and infinite from it on.",
    "epsilon is finite exactly at the tabulated orders below the asymptote, all curves",
)
def asymptotes(rdp_curves):
    finite, below = np.isfinite(rdp_curves.epsilon), rdp_curves.order < rdp_curves.asymptote
    yield check("finite at every order below the asymptote", finite[below].all())
    yield check("infinite at every order from it on", not finite[~below].any())
    yield from number("share_of_rows", (finite == below).mean())
    yield from number("rows", len(rdp_curves))


@claim(
    "G2",
    FIGURE,
    "A smaller coefficient lowers epsilon at every order and makes more orders finite.",
    "epsilon increases with the coefficient at every order where it is finite; number of finite orders",
)
def smaller_coefficients(rdp_curves):
    by = ["method", "supremum", "order"]
    tempered = rdp_curves[rdp_curves.method != "direct"]
    wide = tempered.pivot_table(index=by, columns="coefficient", values="epsilon")
    smaller, larger = wide.to_numpy()[:, :-1], wide.to_numpy()[:, 1:]
    # Two infinite values next to each other say nothing about the order of the curves.
    rises = (larger > smaller) | (np.isinf(larger) & np.isinf(smaller))
    finite = np.isfinite(wide).sum()
    yield check("epsilon rises with the coefficient at every order", rises.all())
    yield check("fewer orders are finite with a larger coefficient", finite.is_monotonic_decreasing)
    yield from number("share_of_steps", rises.mean())
    yield from number("finite_rows", {f"{coefficient:g}": count for coefficient, count in finite.items()})


@claim(
    "G13",
    "corollary 2",
    "The supremum over neighbouring data sets is the largest of the divergences of four pairs.",
    "epsilon of the paper's pairs against the supremum over all pairs of data sets that exist, at every tabulated "
    f"order and coefficient: nowhere smaller, and nowhere larger (relative rounding {ROUNDING:g})",
    variant="paper, exact",
)
def pairs(rdp_curves):
    by = ["method", "coefficient", "order"]
    wide = rdp_curves.pivot_table(index=by, columns="supremum", values="epsilon")
    finite = wide[np.isfinite(wide).all(axis=1)]
    ratio = finite["paper"] / finite["exact"]
    above = ratio[ratio > 1 + ROUNDING]
    agree = (np.isfinite(wide["paper"]) == np.isfinite(wide["exact"])).all()
    yield check("the pairs give an upper bound", (ratio >= 1 - ROUNDING).all() and agree)
    yield check("some neighbours attain it", above.empty)
    yield from number("rows", len(finite))
    yield from number("rows that are charged too much", len(above))
    yield from number("largest charge over the supremum", ratio.max())
    yield from number("largest order that is charged too much", above.index.get_level_values("order").max())
