"""The figure of the study."""

from privpost.drawing import panels, style
from privpost.drawing.figures import figure

NAMES = {
    "all": "as in the paper", "no_category": "without the category's levels",
    "paper": "clipped counts", "corrected": "projected counts", 1: "", 10: "every event ten times",
}  # fmt: skip


@figure("war_logs_ablation")
def differences(war_logs_ablation_differences):
    """Laplace less OPS on the war logs' HMM, with one change of the experiment at a time (ours).

    Difference in held-out log-likelihood per event (OPS with M = 10) against ε times the events of a mean cell: on this
    axis the curves of all changes nearly coincide, so the signal in a cell decides who wins. Above 0 Laplace is ahead.
    Bars are 95 % intervals of the paired difference over splits; hollow markers: chains that have not converged.
    """
    table = war_logs_ablation_differences
    table = table.assign(signal=table.epsilon * table.events_per_cell)
    # One change at a time: of the changed experiments the paper's counts alone.
    table = table[(table.variant == "paper") | ((table.fields == "all") & (table.replication == 1))]
    several = table.dataset.nunique() > 1
    made = panels.panels(
        table, "signal", "laplace_minus_ops_mean", "laplace_minus_ops_sem", None, "dataset",
        ("fields", "replication", "variant"), names=NAMES, size=(style.WIDTH if several else style.NARROW, 2.2),
        bars=True, solid="converged", xscale="log", xlabel="ε × events of a mean cell",
        ylabel="Laplace less OPS,\nper event [nats]",
    )  # fmt: skip
    for axes, _, _ in made:
        axes.axhline(0, color="black", linewidth=0.8)
    panels.legend(made.figure, [panels.entry(marker="o", markerfacecolor="white", linestyle="", label="Not converged")])
    return made.figure
