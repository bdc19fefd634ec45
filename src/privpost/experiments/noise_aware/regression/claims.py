"""Noise-aware linear regression on census records against one posterior draw at the same ε (ours)."""

import numpy as np

from privpost.evaluation.diagnostics import LARGEST_RHAT
from privpost.evaluation.rows import select
from privpost.lab.claims import check, claim, number, numbers

# Standard errors of the two together.
THRESHOLD = 3.0


@claim(
    "N16",
    "ours",
    "At the epsilon that one draw from the truncated posterior costs, noisy second moments predict better: their "
    "posterior's mean loses a part of what the draw loses.",
    "mean squared error beyond the non-private posterior mean's: the draw's less the noise-aware mean's above "
    f"{THRESHOLD:g} joint standard errors at every epsilon; R-hat of all chains at most {LARGEST_RHAT}",
    stand_in=True,
)
def moments_lead(regression):
    keys = ["prior_precision"]
    drawn, aware = (select(regression, method=name).set_index(keys) for name in ("sampler_record", "gibbs"))
    gap = (drawn.excess_mean - aware.excess_mean) / np.hypot(drawn.excess_sem, aware.excess_sem)
    for row in aware.itertuples():
        name = f"epsilon = {row.epsilon:.3g}"
        yield check(f"the noise-aware mean is ahead at {name}", bool(gap[row.Index] > THRESHOLD))
        yield from number(
            f"excess of the draw over that of the mean, {name}", drawn.excess_mean[row.Index] / row.excess_mean
        )
    yield check("the chains agree", bool((aware.rhat_max <= LARGEST_RHAT).all()))
    yield from numbers({"largest R-hat": aware.rhat_max.max(), "smallest effective sample size": aware.ess_min.min()})


@claim(
    "N17",
    "ours",
    "Noisy moments that are taken for the data's give a posterior as narrow as without privacy; the noise-aware one is "
    "wider where the noise is felt.",
    "posterior sd of the weights over the non-private one's, at the smallest epsilon: below 1.1 naive, above 1.5 "
    "noise-aware",
    stand_in=True,
)
def widths(regression):
    rows = regression[regression.epsilon == regression.epsilon.min()].set_index("method").sd_ratio
    yield check("the naive posterior is as narrow", bool(rows["naive"] < 1.1))
    yield check("the noise-aware one is wider", bool(rows["gibbs"] > 1.5))
    yield from numbers({"naive": rows["naive"], "noise-aware": rows["gibbs"]})
