"""Laplace less OPS on the war logs' HMM, with one change of the experiment at a time (ours)."""

from privpost.drawing import multiples, style
from privpost.evaluation.rows import select
from privpost.experiments.foulds2016 import war_log_style as logs

# Fields, copies of every event, variant of the Laplace mechanism.
CURVES = (
    ("all", 1, "paper", "#0072B2", "s", "as in the paper"),
    ("all", 1, "corrected", "#0072B2", "D", "projected, not clipped"),
    ("no_category", 1, "paper", "#009E73", "v", "without the category's levels"),
    ("all", 10, "paper", "#CC79A7", "P", "every event ten times"),
)


def draw(tables):
    """Return the figure: Laplace less OPS (M = 10) against ε (top), and against ε times the events of a mean cell.

    Bars: one standard error of the paired difference over splits; crosses: chains that have not converged.
    """
    table = tables["war_logs_ablation_differences"]
    names = logs.datasets(table)
    figure, panels = multiples.grid(2, len(names), 4.6, width=style.TWO_COLUMNS if len(names) > 1 else 4.4, sharey=True)
    for column, name in zip(panels.T, names, strict=True):
        for fields, replication, variant, color, marker, label in CURVES:
            rows = select(table, dataset=name, fields=fields, replication=replication, variant=variant)
            rows = rows.sort_values("epsilon")
            line = ":" if variant == "corrected" else "-"
            look = {"color": color, "marker": marker, "linestyle": line, "label": label}
            for axes, x in zip(column, (rows.epsilon, rows.epsilon * rows.events_per_cell), strict=True):
                multiples.bars(axes, x, rows.laplace_minus_ops_mean, rows.laplace_minus_ops_sem, **look)
                logs.crosses(axes, x, rows.laplace_minus_ops_mean, rows)
        column[0].set_xlabel("Privacy budget ε (pure DP)")
        column[1].set_xlabel("ε × events of a mean cell")
        for axes in column:
            axes.set_xscale("log")
            axes.axhline(0, color="#444444", linewidth=0.8)
    titles = [logs.TITLES[name] for name in names]
    multiples.label_outer(panels, "", "Laplace less OPS,\nlog-likelihood per event [nats]", titles)
    multiples.legend(figure, axes=panels[0, 0], ncols=None if len(names) > 1 else 2)
    rhats = logs.rhats(tables["war_logs_ablation"])
    figure.suptitle(f"Crosses: chains that have not converged. HMM, {rhats}.", fontsize=7)
    return figure
