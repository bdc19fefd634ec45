"""Claims of Zhang et al. (2016) that no table decides, with the reason."""

from privpost.lab.claims import claim, untestable


@claim(
    "Z8",
    "theorem 4, second part",
    "Where the prior concentrates on Lipschitz parameters, posterior sampling is approximately private.",
    "none",
)
def approximate_privacy():
    yield untestable(
        "the bound's constants (c, L0, and the ratios C of maximum to marginal likelihood) are given no values in the "
        "paper, no experiment uses it, and for Bernoulli nodes with a uniform prior C grows with n, so that the bound "
        "exceeds 1 and says nothing"
    )


@claim(
    "Z16",
    "theorem 1, last part; table 1",
    "The loss in KL divergence is O(mn ln n)(1 - exp(-n epsilon/(2|I|))) plus a term in ln delta, and the "
    "bound on its mean is refined for n of at least 2|I|/epsilon.",
    "none",
)
def divergence():
    yield untestable(
        "the refined formula is torn in the text, and the O's constants are given no values: any finite number of "
        "cases agrees with some constant. The parts of theorem 1 that have numbers are scored as Z6"
    )
