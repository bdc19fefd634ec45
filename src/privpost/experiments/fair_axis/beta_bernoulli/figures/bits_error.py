"""Error of one private draw of θ, all mechanisms for bits at the same (ε, δ)."""

from privpost.experiments.fair_axis.panels import bits


def draw(tables):
    """Return the figure: one row per n, one column per δ, on ε of (ε, δ)-DP.

    Solid: exact privacy curves; dashed: the stated guarantees, converted. Bars are two standard errors either side.
    """
    return bits(tables["beta_bernoulli"], "l1_error", "E |draw − θ|")
