"""Claims of Zhang et al. (2016) that no table decides, with the reason."""

from __future__ import annotations

from privpost.evaluation.claims import Claim


def claims(tables) -> list[Claim]:
    """Return Z8, which cannot be tested."""
    return [
        Claim(
            "Z8",
            "theorem 4, second part",
            "Where the prior concentrates on Lipschitz parameters, posterior sampling is approximately private.",
            "none",
            "not testable",
            reason="the bound's constants (c, L0, and the ratios C of maximum to marginal likelihood) are given no "
            "values in the paper, no experiment uses it, and for Bernoulli nodes with a uniform prior C grows with n, "
            "so that the bound exceeds 1 and says nothing",
        )
    ]
