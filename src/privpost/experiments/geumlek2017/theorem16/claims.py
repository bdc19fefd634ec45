"""Theorem 16's bound against pairs of data sets: the claims."""

import numpy as np

from privpost.evaluation.claims import Claim, Why, from_checks

DOC = "docs/geumlek2017.md#other-links-theorem16-link_functions"


def claims(tables) -> list[Claim]:
    """Score G17 to G19."""
    table = tables["theorem16"]
    whole = table[table.radius.isna()]
    logistic = whole[whole.link == "logistic"]
    return [_tight(logistic, tables["theorem16_limits"]), _three_links(whole), _own(table[table.share_of_own.notna()])]


def _tight(rows, limits) -> Claim:
    checks, evidence = {}, {}
    for order, part in rows.sort_values("n").groupby("order"):
        checks[f"within the bound (order {order:g})"] = bool((part.share_of_paper <= 1).all())
        gap = (part.share_of_paper - part.limit).abs()
        checks[f"nearer to its limit as n grows (order {order:g})"] = bool(gap.is_monotonic_decreasing)
        evidence[f"shares, order {order:g}"] = dict(zip(part.n, part.share_of_paper, strict=True))
    evidence["largest share"] = rows.share_of_paper.max()
    limits = limits.sort_values("beta", ascending=False)
    # What sin² a = 1/M gives, a lower limit that tends to 1 as M grows like the root of 1/beta.
    least = (1 - 1 / limits.distance) / (1 + np.exp(-np.sqrt(limits.distance))) ** 2
    growth = limits.distance * np.sqrt(limits.beta)
    checks["the limit is at least a bound that tends to 1 as beta falls"] = bool(
        (limits.share >= least).all() and np.allclose(growth, growth.iloc[0]) and (limits.share <= 1).all()
    )
    evidence["limits by beta"] = dict(zip(limits.beta, limits.share, strict=True))
    return from_checks(
        "G17",
        "section 4.2",
        "The bound of theorem 16 is tight for logistic regression.",
        "exact divergence between two posteriors in a plane, by quadrature, over the bound: at most 1, and nearer to "
        "its limit for n to infinity as n grows; that limit, a closed form, is at least (1 - 1/M)/(1 + exp(-sqrt M))^2 "
        "with M growing like 1/sqrt(beta), so no smaller constant would do",
        checks,
        evidence,
    )


def _three_links(rows) -> Claim:
    largest = rows.groupby("link").share_of_paper.max()
    finite = rows[np.isfinite(rows.share_of_paper) & (rows.link == "probit")].share_of_paper.max()
    return from_checks(
        "G18",
        "section 4.2, theorem 16",
        "With B = 1 the bound of theorem 16 holds for logistic, probit and complementary log-log regression.",
        "exact divergence between two posteriors in a plane, by quadrature, at most the bound",
        {link: bool(share <= 1) for link, share in largest.items()},
        {
            **{f"largest divergence over the bound, {link}": share for link, share in largest.items()},
            "largest finite one, probit": finite,
        },
        whys=[
            Why(
                "The proof bounds the gradient of a record's log-likelihood by |y - E y| c, which is that of the "
                "canonical link only. Of the probit loss it grows like |x.w|, of the complementary log-log one like "
                "exp(x.w): the first exceeds the bound up to "
                f"about {float(f'{finite:.2g}'):,.0f} times where the divergence is finite, and of the second it is "
                "finite nowhere.",
                ("probit", "cloglog"),
                DOC,
                when=largest.get("probit", 0) > 1 and largest.get("logistic", 2) <= 1,
            )
        ],
    )


def _own(rows) -> Claim:
    largest = rows.groupby("link").share_of_own.max()
    return from_checks(
        "G19",
        "ours",
        "With the weights restricted to a ball and the slopes that a loss has there in place of B, theorem 16 holds "
        "for all three links.",
        "exact divergence between two posteriors in a plane, by quadrature, at most the bound with B of the ball",
        {link: bool(share <= 1) for link, share in largest.items()},
        {f"largest share, {link}": share for link, share in largest.items()},
    )
