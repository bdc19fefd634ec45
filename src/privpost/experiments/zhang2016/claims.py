"""A claim of Zhang et al. (2016) that no table decides, with the reason why."""

from privpost.lab.claims import claim, untestable


@claim(
    "Z8",
    "theorem 4, second part",
    "Where the prior concentrates on Lipschitz parameters, posterior sampling is approximately private.",
    "none",
)
def approximate_privacy():
    yield untestable(
        "no experiment uses the bound: its constants c and L0 are given no values in the paper, a term of M is torn in "
        "the text, and C, the ratio of maximum to marginal likelihood of one observation, is at least 2 for a binary "
        "variable, so that the bound √(M/2) on a probability is near 1 or above, and says nothing"
    )
