"""Calibration of private posteriors for bits, all mechanisms at the same (ε, δ)."""

from privpost.experiments.fair_axis.panels import bits


def draw(tables):
    """Return the figure: one row per n, one column per δ, on ε of (ε, δ)-DP.

    Solid: exact privacy curves; dashed: the stated guarantees, converted. Bars are two standard errors either side.
    U is the quantile of θ in the posterior from the noisy count, or in the law that a released sample was drawn from.
    """
    return bits(tables["beta_bernoulli"], "ks", "KS distance of U from uniform")
