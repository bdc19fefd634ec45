"""OPS against the radius of its ball: what the paper says of c/β, and what the radius costs."""

import numpy as np

from privpost.evaluation.rows import one
from privpost.experiments.claim_helpers import student_limit
from privpost.lab.claims import check, claim, number, word

# Joint level of the comparisons of a claim, one-sided (Bonferroni).
LEVEL = 0.05
# What the smallest ball may lose in test error against the best of the radii.
LOSS = 0.05
# How far, relative to it, the farthest mode may be from the rim of the smallest ball.
RIM = 1e-6


@claim(
    "G27",
    "section 5.2",
    "The ball of radius c/beta is the smallest one that is sure to hold the mode of the posterior.",
    "the bound sqrt(rho kappa/beta) on the mode's norm, whatever the data, at the power 1 where it is largest, not "
    "below c/beta (exact, no multiplicity)",
)
def radius_of_the_mode(ops_radius):
    # The bound at the power ρ is √ρ times the bound at the power 1.
    largest = float((ops_radius.mode_bound / np.sqrt(ops_radius.power)).max())
    radius = float(ops_radius.radius[ops_radius.times_smallest.isna()].min())
    yield check("a mode may be as far away as c/beta", largest >= radius)
    yield from number("largest norm of a mode, at power 1", largest)
    yield from number("c/beta", radius)
    yield from number("c/beta over that norm", radius / largest)


@claim(
    "G28",
    "ours",
    "The smallest ball sure to hold the mode has the radius sqrt(rho kappa/beta). At one pure epsilon OPS has on it a "
    "test error at most {loss} above that of the best radius, and below that on the paper's ball.",
    "farthest mode of equal records within {rim} of the smallest ball's rim; test error on the smallest ball at most "
    "{loss} above the least, and below that on the paper's ball (one-sided t, 5 %, Bonferroni over data sets)",
)
def radius_matters(ops_radius):
    yield word("loss", LOSS)
    yield word("rim", RIM)
    smallest = ops_radius[ops_radius.times_smallest == 1]
    reached = (smallest.mode_farthest / smallest.radius - 1).abs().max()
    yield check("a mode reaches the rim of the smallest ball", reached < RIM)
    yield from number("largest relative distance of the farthest mode from the rim", reached)
    rows = ops_radius[ops_radius.metric == "test_error"]
    for dataset, part in rows.groupby("dataset"):
        smallest, paper = one(part, times_smallest=1), one(part, times_smallest=None)
        best = part.loc[part["mean"].idxmin()]
        limit = student_limit(int(part.n_repeats.min()), LEVEL / rows.dataset.nunique())
        gain, error = paper["mean"] - smallest["mean"], np.hypot(paper["sem"], smallest["sem"])
        yield check(f"near the best radius on {dataset}", smallest["mean"] - best["mean"] <= LOSS)
        yield check(f"below the paper's ball on {dataset}", gain > limit * error)
        evidence = {"above the best radius": smallest["mean"] - best["mean"], "gain": gain, "its standard error": error}
        evidence |= {"best radius, in smallest ones": best.times_smallest, "critical t": limit}
        yield from number(f"on {dataset}", evidence)
