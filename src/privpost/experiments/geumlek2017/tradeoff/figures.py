"""The figure of the study."""

import numpy as np

from privpost.drawing import panels, style
from privpost.drawing.figures import figure

NAMES = {"corrected": "exact charge", "paper": "the paper's charge"}
# Metric, label, and the limits of the paper's axis.
ROWS = {
    "kl": ("KL(non-private ‖ output)\n[nats]", (0, 2)),
    "neg_log_likelihood_count": ("−log p(held-out count)\n[nats]", (0, 70)),
}
END = 0.0  # of the paper's horizontal axis


@figure("fig2_tradeoff")
def tradeoff(tradeoff):
    """Privacy against utility of the beta-Bernoulli mechanisms, on the paper's axes (Geumlek et al. 2017, figure 2).

    KL divergence (top) and held-out log-likelihood of a count (bottom), one column per order of Rényi DP. The paper's
    axis ends at ln ε = 0, where the grey begins; the mechanisms meet beyond. Solid: exact charges; dashed: the paper's.
    Bands are 95 % intervals of the mean over repeats, mostly thinner than the lines.
    """
    lines = ("method", "variant")
    table = tradeoff.assign(sem=tradeoff["sem"].fillna(0.0))
    orders = panels.ordered(table.order)
    canvas, axes = panels.grid(2, len(orders), 3.6, sharex=True, sharey="row")
    for panel, metric, order in (both := panels.Panels(canvas, axes, list(ROWS), orders)):
        rows = panels.rows_of(table[table.metric == metric], "order", order)
        smooth = {key: {**look, "marker": ""} for key, look in panels.looks(rows, lines, names=NAMES).items()}
        panels.curves(panel, rows, "log_epsilon", "mean", "sem", lines, smooth)
        panel.axvspan(END, table.log_epsilon.max(), color=style.BAND, alpha=0.4, linewidth=0, zorder=0)
        panel.set(xlim=(-15, table.log_epsilon.max()), ylim=ROWS[metric][1])
        if metric == "kl":
            panel.set_title(panels.named("order", order))
        if panel in axes[:, 0]:
            panel.set_ylabel(ROWS[metric][0])
    panels.label_x(both, style.AXES["log_epsilon"])
    at_smallest = table[(table.log_epsilon == table.log_epsilon.min()) & (table.metric == "neg_log_likelihood_count")]
    ends = at_smallest.groupby("method")["mean"]
    samples = max(ends.max().get("diffused", np.inf), ends.max().get("concentrated", np.inf))
    holds = samples < ends.min().get("gaussian", 0) / 2
    panels.message(canvas, "At small ε samples predict counts better than Gaussian noise", holds)
    panels.legend(canvas)
    return canvas
