"""The figure of the study."""

from privpost.drawing import panels, style
from privpost.drawing.figures import figure

GRAPHS = {"naive_bayes": "naive Bayes", "learned": "learned graph"}


@figure("adult_network")
def divergence(adult_network):
    """Private Bayesian networks on Adult: divergence from the non-private posterior (ours, for section 4's models).

    KL divergence per record of the released network from the non-private posterior's mean, on ε of pure DP, one column
    per graph and number of records, 14 nodes each. Bands are 95 % intervals over subsets and noise. Accuracies, which
    differ little, are in the table.
    """
    table = adult_network[adult_network.method != "non_private"]
    plot = panels.panels(
        table, "epsilon", "divergence_mean", "divergence_sem", columns=("graph", "n"), names=GRAPHS, share=(True, True),
        size=(style.WIDTH, 2.2), xscale="log", yscale="log", ylabel="KL(non-private ‖ released)\n[nats per record]",
    )  # fmt: skip
    most = table[table.n == table.n.max()].groupby(["graph", "epsilon", "method"]).divergence_mean.mean().unstack()
    holds = "consistent" in most and (most.idxmin(axis=1) == "consistent").all()
    panels.message(plot.figure, "With many records Laplace with consistent counts is nearest", holds)
    panels.legend(plot.figure)
    return plot.figure
