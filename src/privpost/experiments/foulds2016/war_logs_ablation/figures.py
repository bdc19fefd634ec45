"""The figure of the study."""

from privpost.drawing import panels, style
from privpost.drawing.figures import figure

# Fields, copies of every event, variant of the Laplace mechanism: one change of the experiment at a time.
CHANGES = {
    ("all", 1, "paper"): "As in the paper",
    ("all", 1, "corrected"): "Counts projected, not clipped",
    ("no_category", 1, "paper"): "Without the category's levels",
}


@figure("war_logs_ablation")
def differences(war_logs_ablation_differences):
    """Laplace less OPS on the war logs' HMM, with one change of the experiment at a time (ours).

    Difference in held-out log-likelihood per event (OPS with M = 10) against ε times the events of a mean cell. Without
    the category's rare levels the two are nearly equal. Above 0 Laplace is ahead. Bars are 95 % intervals of the paired
    difference over splits; hollow markers: chains that have not converged.
    """
    table = war_logs_ablation_differences
    keys = zip(table.fields, table.replication, table.variant, strict=True)
    table = table.assign(signal=table.epsilon * table.events_per_cell, change=[CHANGES.get(key) for key in keys])
    table = table.dropna(subset="change")
    plot = panels.panels(
        table, "signal", "laplace_minus_ops_mean", "laplace_minus_ops_sem", None, "dataset", ("change",),
        names={words: words for words in CHANGES.values()}, bars=True, solid="converged", xscale="log",
        size=(style.WIDTH if table.dataset.nunique() > 1 else style.NARROW, 2.2), xlabel="ε × events of a mean cell",
        ylabel="Laplace less OPS,\nper event [nats]",
    )  # fmt: skip
    for axes, _, _ in plot:
        axes.axhline(0, color="black", linewidth=0.8)
    most = table.laplace_minus_ops_mean.abs().groupby(table.change).max()
    holds = most.get(CHANGES["no_category", 1, "paper"], 9) < most.get(CHANGES["all", 1, "paper"], 0) / 5
    panels.message(plot.figure, "Rare levels make the difference: without them it is small", holds)
    panels.legend(plot.figure, [panels.entry(marker="o", markerfacecolor="white", linestyle="", label="Not converged")])
    return plot.figure
