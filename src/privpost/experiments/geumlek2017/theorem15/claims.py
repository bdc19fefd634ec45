"""Claims on theorem 15 of Geumlek et al. (2017): convexity of the divergence, and neighbours at the boundary."""

from privpost.experiments.claim_helpers import ends
from privpost.lab.claims import check, claim, number

# Rounding error of a relative difference between divergences.
ROUNDING = 1e-9


@claim(
    "G23",
    "theorem 15",
    "For a fixed first posterior the divergence is a convex function of the second one's natural parameter.",
    "beta-Bernoulli, exact divergences on a grid of second posteriors: the mean of any two that are finite is at least "
    f"the one half-way (relative rounding {ROUNDING:g})",
)
def convex(theorem15):
    for order, rows in theorem15.groupby("order"):
        yield check(f"convex (order {order:g})", (rows.convexity >= -ROUNDING).all())
        yield from number(f"smallest excess of the mean over the value half-way, order {order:g}", rows.convexity.min())
    yield from number("pairs of second posteriors, fewest and most", ends(theorem15.excess_pairs))


@claim(
    "G24",
    "section 3.1, after corollary 2",
    "The boundary situations that decide the supremum depend on the model, not on the number of records.",
    "beta-Bernoulli, exact divergences of all neighbouring counts: the pairs with 0 and 1, or with n - 1 and n, "
    "successes have the largest at every n, weight of the likelihood and order",
)
def at_the_boundary(theorem15):
    for n, rows in theorem15.groupby("n"):
        yield check(f"neighbours at the ends differ most (n = {n})", (rows.at_ends >= rows.inside).all())
        elsewhere = (rows.inside / rows.at_ends).max()
        yield from number(f"largest divergence elsewhere over that at the ends, n = {n}", elsewhere)
