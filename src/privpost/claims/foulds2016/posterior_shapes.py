"""Densities of the true, the Laplace and the OPS posterior of one data set (Foulds et al. 2016, figure 1)."""

from privpost.evaluation.claims import Claim


def claims(tables) -> list[Claim]:
    """Return no claim: the figure illustrates F1 to F3, which the study of the sampling error scores."""
    return []
