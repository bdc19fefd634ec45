"""Posterior draws that are rounded to a number of bits (ours, beside figure 1 of Geumlek et al. 2017)."""

import numpy as np

from privpost.lab.claims import check, claim, number

# Relative rounding of sums over cells.
ROUNDING = 1e-6
# Loss of accuracy that is called small.
SMALL = 0.01


@claim(
    "G16",
    "ours, beside figure 1",
    "A posterior draw that is rounded down to a public number of bits has a finite cost at every order, also "
    "beyond the asymptote of the ideal draw, and nearly the ideal draw's error.",
    "largest Rényi divergence of the rounded laws over all neighbouring counts, at orders below, at and beyond "
    f"the asymptote and at order infinity (exact but for rounding of {ROUNDING:g} relative): finite, at most "
    "the ideal draw's, and growing with the number of bits; root mean squared error within "
    f"{SMALL:.0%} at some number",
)
def rounded_draws(rounding):
    beyond = rounding[np.isinf(rounding.ideal) & np.isfinite(rounding.order)]
    below = rounding[np.isfinite(rounding.ideal)]
    sequences = rounding.sort_values("bits").groupby(["method", "coefficient", "order"]).epsilon
    growth = sequences.apply(lambda column: (np.diff(column) >= -ROUNDING * column.to_numpy()[1:]).all())
    settings = rounding.groupby(["method", "coefficient"])
    fewest = rounding[rounding.error_ratio <= 1 + SMALL].groupby(["method", "coefficient"]).bits.min()
    bits = fewest.max() if len(fewest) else rounding.bits.max()
    yield check("finite at every order", np.isfinite(rounding.epsilon).all())
    yield check("orders beyond the asymptote are there", len(beyond) > 0)
    yield check("at most the ideal draw's", (below.epsilon <= below.ideal * (1 + ROUNDING)).all())
    yield check("more bits cost more", growth.all())
    yield check("some number of bits costs 1 % of the error", len(fewest) == settings.ngroups)
    yield from number("bits that cost 1 % of the error in all settings", bits)
    pure = rounding[np.isinf(rounding.order) & (rounding.bits == bits)].epsilon.max()
    yield from number("largest epsilon-DP at that number of bits", pure)
    yield from number("largest epsilon beyond an asymptote", beyond.epsilon.max())
