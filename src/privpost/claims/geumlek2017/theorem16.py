"""Theorem 16's bound against pairs of data sets: the claims."""

from __future__ import annotations

import numpy as np

from privpost.evaluation.claims import Claim, Why, from_checks

DOC = "docs/geumlek2017.md#other-links-theorem16-link_functions"


def claims(tables) -> list[Claim]:
    """Score G17 to G19."""
    table = tables["theorem16"]
    whole = table[table.radius.isna()]
    return [_tight(whole[whole.link == "logistic"]), _three_links(whole), _own(table[table.share_of_own.notna()])]


def _tight(rows) -> Claim:
    checks, evidence = {}, {}
    for order, part in rows.groupby("order"):
        shares = part.sort_values("n").share_of_paper
        checks[f"the share rises with n, within the bound (order {order:g})"] = bool(
            shares.is_monotonic_increasing and (shares <= 1).all()
        )
        checks[f"the pair spends most of it (order {order:g})"] = bool(shares.iloc[-1] > 0.5)
        evidence[f"shares, order {order:g}"] = dict(zip(part.sort_values("n").n, shares, strict=True))
    evidence["largest share"] = rows.share_of_paper.max()
    return from_checks(
        "G17",
        "section 4.2",
        "The bound of theorem 16 is tight for logistic regression.",
        "exact divergence between two posteriors in a plane, by quadrature, over the bound: at most 1, rising as n "
        "grows and beta falls, above one half at the largest n; a search over the pair's angle and the other records",
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
                f"{finite:.1f} times where the divergence is finite, and of the second it is finite nowhere.",
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
