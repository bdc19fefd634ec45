"""Claims on RDP curves of the diffused and concentrated beta-Bernoulli samplers (Geumlek et al. 2017, figure 1)."""

import numpy as np

from privpost.lab.claims import check, claim, number

FIGURE = "section 5.1, figure 1"
# Relative rounding error of a supremum, and of sums over cells.
ROUNDING, OF_SUMS = 1e-9, 1e-6
# Largest loss of accuracy that the claim calls small.
SMALL = 0.01


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
    # Where both curves are infinite, neither is above the other.
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
    "largest epsilon of the paper's pairs against the supremum over all pairs of data sets that exist, at every "
    f"tabulated order and coefficient: neither smaller nor larger (relative rounding {ROUNDING:g})",
    variant="paper, exact",
)
def pairs(rdp_curves):
    by = ["method", "coefficient", "order"]
    wide = rdp_curves.pivot_table(index=by, columns="supremum", values="epsilon")
    finite = wide[np.isfinite(wide).all(axis=1)]
    ratio = finite["paper"] / finite["exact"]
    # An infinite charge is a bound too, although no neighbours attain it if the supremum is finite.
    above = wide[wide["paper"] > wide["exact"] * (1 + ROUNDING)]
    yield check("the pairs give an upper bound", (wide["paper"] >= wide["exact"] * (1 - ROUNDING)).all())
    yield check("some neighbours attain it", above.empty)
    yield from number("rows", len(finite))
    yield from number("rows that are charged too much", len(above))
    yield from number("largest charge over the supremum", ratio.max())
    yield from number("largest order that is charged too much", above.index.get_level_values("order").max())


@claim(
    "G16",
    "ours, beside figure 1",
    "A posterior draw that is rounded down to a public number of bits has a finite cost at every order, even "
    "beyond the asymptote of the unrounded draw, and nearly that draw's error.",
    "largest Rényi divergence of the rounded laws over all neighbouring counts, at orders below, at and beyond "
    f"the asymptote and at order infinity (exact but for rounding of {OF_SUMS:g} relative): finite, at most the "
    f"unrounded draw's, and growing with the number of bits; root mean squared error within {SMALL:.0%} at some "
    "number of bits",
)
def rounded_draws(rounding):
    beyond = rounding[np.isinf(rounding.ideal) & np.isfinite(rounding.order)]
    below = rounding[np.isfinite(rounding.ideal)]
    sequences = rounding.sort_values("bits").groupby(["method", "coefficient", "order"]).epsilon
    growth = sequences.apply(lambda column: (np.diff(column) >= -OF_SUMS * column.to_numpy()[1:]).all())
    settings = rounding.groupby(["method", "coefficient"])
    fewest = rounding[rounding.error_ratio <= 1 + SMALL].groupby(["method", "coefficient"]).bits.min()
    bits = fewest.max() if len(fewest) else rounding.bits.max()
    yield check("finite at every order", np.isfinite(rounding.epsilon).all())
    yield check("orders beyond the asymptote are there", len(beyond) > 0)
    yield check("at most the ideal draw's", (below.epsilon <= below.ideal * (1 + OF_SUMS)).all())
    yield check("more bits cost more", growth.all())
    yield check("some number of bits costs 1 % of the error", len(fewest) == settings.ngroups)
    yield from number("bits that cost 1 % of the error in all settings", bits)
    pure = rounding[np.isinf(rounding.order) & (rounding.bits == bits)].epsilon.max()
    yield from number("largest epsilon-DP at that number of bits", pure)
    yield from number("largest epsilon beyond an asymptote", beyond.epsilon.max())
