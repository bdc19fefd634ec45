"""Divergence of one private draw of θ from the true posterior, all mechanisms for bits at the same (ε, δ)."""

from privpost.experiments.fair_axis.panels import bits


def draw(tables):
    """Return the figure: one row per n, one column per δ, on ε of (ε, δ)-DP.

    Solid: exact privacy curves; dashed: the stated guarantees, converted. Bars are two standard errors either side.
    Markers on the dotted floor: the law is the true posterior itself, KL 0; both laws are restricted to [a0, 1 − a0].
    """
    return bits(tables["beta_bernoulli"], "kl", "KL(true posterior ‖ law of one draw), nats")
