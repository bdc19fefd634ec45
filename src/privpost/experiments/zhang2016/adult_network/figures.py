"""The figure of the study."""

from privpost.drawing import facets, style
from privpost.drawing.figures import figure


@figure("adult_network")
def divergence(adult_network):
    """Private Bayesian networks on Adult: divergence from the non-private posterior (ours, for section 4's models).

    KL divergence per record from the non-private posterior's mean network to the released network. The graph is learned
    from Adult's 14 attributes. A column is one number of records. Bars are 95 % intervals over subsets and noise. The
    table also has naive Bayes, which ranks the methods alike, and accuracies, which differ little.
    """
    table = adult_network[(adult_network.method != "non_private") & (adult_network.graph == "learned")]
    grid = facets.lines(
        facets.named(table), "epsilon", "divergence_mean", "divergence_sem", col="n", share=(True, False),
        size=(style.WIDTH, 2.2), xscale="log", yscale="log",
    )  # fmt: skip
    most = table[table.n == table.n.max()].pivot_table("divergence_mean", "epsilon", "method")
    holds = "consistent" in most and (most.idxmin(axis=1) == "consistent").all()
    words = "With many records Laplace with consistent counts is nearest" if holds else ""
    ylabel = "KL(non-private ‖ released)\n[nats per record]"
    return facets.finish(grid, words, "epsilon", ylabel, note=f"Adult. {style.ABSENT}")
