"""Claims on theorem 16 of Geumlek et al. (2017): the bound compared with divergences between posteriors."""

import numpy as np

from privpost.lab.claims import check, claim, number


@claim(
    "G17",
    "section 4.2",
    "The bound of theorem 16 is tight for logistic regression.",
    "exact divergence between two posteriors in a plane, by quadrature, over the bound: at most 1, and nearer to "
    "its limit for n to infinity as n grows. That limit, a closed form, is at least (1 - 1/M)/(1 + exp(-sqrt "
    "M))^2, where M grows like 1/sqrt(beta), so no smaller constant would do",
)
def tight(theorem16, theorem16_limits):
    logistic = theorem16[theorem16.radius.isna() & (theorem16.link == "logistic")].sort_values("n")
    for order, part in logistic.groupby("order"):
        gap = (part.share_of_paper - part.limit).abs()
        yield check(f"within the bound (order {order:g})", (part.share_of_paper <= 1).all())
        yield check(f"nearer to its limit as n grows (order {order:g})", gap.is_monotonic_decreasing)
        yield from number(f"shares, order {order:g}", dict(zip(part.n, part.share_of_paper, strict=True)))
    yield from number("largest share", logistic.share_of_paper.max())
    limits = theorem16_limits.sort_values("beta", ascending=False)
    # This lower bound is the share at sin² a = 1/M. It tends to 1, as M grows like the root of 1/beta.
    least = (1 - 1 / limits.distance) / (1 + np.exp(-np.sqrt(limits.distance))) ** 2
    growth = limits.distance * np.sqrt(limits.beta)
    reached = limits.share.between(least, 1).all() and np.allclose(growth, growth.iloc[0])
    yield check("the limit is at least a bound that tends to 1 as beta falls", reached)
    yield from number("limits by beta", dict(zip(limits.beta, limits.share, strict=True)))


def links(shares, words: str):
    """Yield, for each link, a check that the share of the bound is at most 1, and this share as evidence."""
    for link, share in shares.items():
        yield check(link, share <= 1)
        yield from number(f"{words}, {link}", share)


@claim(
    "G18",
    "section 4.2, theorem 16",
    "With B = 1 the bound of theorem 16 holds for logistic, probit and complementary log-log regression.",
    "exact divergence between two posteriors in a plane, by quadrature, at most the bound",
)
def three_links(theorem16):
    rows = theorem16[theorem16.radius.isna()]
    yield from links(rows.groupby("link").share_of_paper.max(), "largest divergence over the bound")
    probit = rows[rows.link == "probit"].share_of_paper
    yield from number("largest finite one, probit", probit[np.isfinite(probit)].max())


@claim(
    "G19",
    "ours",
    "Theorem 16 holds for all three links if the weights lie in a ball and B comes from the slopes that the loss "
    "has there.",
    "exact divergence between two posteriors in a plane, by quadrature, at most the bound with B of the ball",
)
def in_a_ball(theorem16):
    rows = theorem16[theorem16.share_of_own.notna()]
    yield from links(rows.groupby("link").share_of_own.max(), "largest share")
