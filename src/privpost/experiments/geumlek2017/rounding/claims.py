"""Posterior draws that are rounded to a number of bits (ours, beside figure 1 of Geumlek et al. 2017)."""

import numpy as np

from privpost.evaluation.claims import Claim, from_checks

# Relative rounding of sums over cells, and the loss of accuracy that is called small.
ROUNDING, SMALL = 1e-6, 0.01


def claims(tables) -> list[Claim]:
    """Score G16: the asymptotes of G1 and G4 are a property of infinitely precise output."""
    table = tables["rounding"]
    beyond = table[np.isinf(table.ideal) & np.isfinite(table.order)]
    finite = table[np.isfinite(table.ideal)]
    pure = table[np.isinf(table.order)]
    sequences = table.sort_values("bits").groupby(["method", "coefficient", "order"]).epsilon
    growth = sequences.apply(lambda column: bool((np.diff(column) >= -ROUNDING * column.to_numpy()[1:]).all()))
    small = table[table.error_ratio <= 1 + SMALL]
    fewest = small.groupby(["method", "coefficient"]).bits.min()
    bits = fewest.max() if len(fewest) else table.bits.max()
    cheap = pure[pure.bits == bits]
    return [
        from_checks(
            "G16",
            "ours, beside figure 1",
            "A posterior draw that is rounded down to a public number of bits has a finite cost at every order, also "
            "beyond the asymptote of the ideal draw, and nearly the ideal draw's error.",
            "largest Rényi divergence of the rounded laws over all neighbouring counts, at orders below, at and beyond "
            f"the asymptote and at order infinity (exact but for rounding of {ROUNDING:g} relative): finite, at most "
            "the ideal draw's, and growing with the number of bits; root mean squared error within "
            f"{SMALL:.0%} at some number",
            {
                "finite at every order": bool(np.isfinite(table.epsilon).all()),
                "orders beyond the asymptote are there": len(beyond) > 0,
                "at most the ideal draw's": bool((finite.epsilon <= finite.ideal * (1 + ROUNDING)).all()),
                "more bits cost more": bool(growth.all()),
                "some number of bits costs 1 % of the error": len(fewest)
                == len(sequences.size().groupby(level=[0, 1])),
            },
            {
                "bits that cost 1 % of the error in all settings": bits,
                "largest epsilon-DP at that number of bits": cheap.epsilon.max(),
                "largest epsilon beyond an asymptote": beyond.epsilon.max(),
            },
        )
    ]
