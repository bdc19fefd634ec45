"""Figure of privacy against utility of the beta-Bernoulli mechanisms."""

import numpy as np

from privpost.drawing import facets, style
from privpost.drawing.figures import figure

NAMES = {
    "corrected": "", "paper": "charged as in the paper",
    "kl": "KL divergence to\nnon-private [nats]", "neg_log_likelihood_count": "Loss on a held-out\ncount [nats]",
}  # fmt: skip
# Vertical limits of the paper's axes, and the end of its horizontal axis.
LIMITS = {"kl": (0, 2), "neg_log_likelihood_count": (0, 70)}
END = 0.0


@figure("fig2_tradeoff")
def tradeoff(tradeoff):
    """Privacy against utility of the beta-Bernoulli mechanisms, on the paper's axes (Geumlek et al. 2017, figure 2).

    Above is KL(non-private ‖ output), below the negative log-likelihood of a held-out count. Columns are orders of
    Rényi DP. The mechanisms meet beyond the end of the paper's axis. Charges are exact. The paper's charges are also
    drawn where they differ. Curves are means over repeats; the 95 % intervals are thinner than the lines.
    """
    from matplotlib.patches import Patch

    table = tradeoff[tradeoff.metric.isin(LIMITS)]
    # For the samplers, the paper's charges coincide with the exact charges.
    table = table[(table.variant != "paper") | (table.method == "gaussian")]
    grid = facets.lines(
        facets.named(table, "variant", names=NAMES), "log_epsilon", "mean", row="metric", col="order", names=NAMES,
        size=(style.WIDTH, 1.6), xlim=(-15, table.log_epsilon.max()),
    )  # fmt: skip
    for axes, rows in facets.each(grid):
        facets.band(axes, END, table.log_epsilon.max(), across=False)
        axes.set_ylim(LIMITS[rows.metric.iloc[0]])
        for line in axes.lines:
            line.set_markevery(8)
    smallest = table[table.log_epsilon == table.log_epsilon.min()].pivot_table("mean", ["metric", "order"], "method")
    holds = {"diffused", "gaussian"} <= set(smallest) and (smallest.diffused < smallest.gaussian / 2).all()
    answer = "At small ε only diffused samples beat Gaussian noise by both measures"
    alone = holds and not (smallest.get("concentrated", np.inf) < smallest.gaussian).all()
    beyond = Patch(color=style.BAND, label="Beyond the paper's axis")
    note = "The vertical axes end where the paper's do"
    return facets.finish(grid, answer if alone else "", "log_epsilon", "", [beyond], note=note)
