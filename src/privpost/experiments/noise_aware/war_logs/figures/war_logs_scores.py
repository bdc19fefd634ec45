"""Held-out log-likelihood per event of noise-aware and noise-naive models on war logs."""

from privpost.drawing import multiples
from privpost.evaluation.rows import select
from privpost.experiments.foulds2016 import war_log_style as logs
from privpost.experiments.noise_aware import war_logs_panels

CURVES = (
    ("laplace", "paper", "-", "Laplace, clipped (noise-naive)"),
    ("laplace", "corrected", ":", "Laplace, projected (noise-naive)"),
    ("gibbs", None, "-", "Laplace, noise-aware"),
)
# Smallest range of a panel, in nats per event.
SPAN = 0.02


def draw(tables):
    """Return the figure: log of the likelihood of all held-out cells against ε, per event, a panel per data and model.

    Bars: one standard error over splits of the difference from the non-private model; crosses: chains that have not
    converged.
    """
    table = tables["war_logs"]
    table = table[table.score == "joint"]
    figure, listed, grid = war_logs_panels.panels(table)
    for axes, dataset, model, n_states in listed:
        rows = select(table, dataset=dataset, model=model, n_states=n_states)
        for method, variant, line, label in CURVES:
            curve = select(rows, method=method, variant=variant).sort_values("epsilon")
            look = {**war_logs_panels.look(method), "linestyle": line, "filled": line == "-", "label": label}
            multiples.bars(axes, curve.epsilon, curve.per_event_mean, curve.per_event_loss_sem, **look)
            logs.crosses(axes, curve.epsilon, curve.per_event_mean, curve)
        plain = select(rows, method="non_private").iloc[0]
        multiples.horizontal(axes, plain.per_event_mean, label="Non-private")
        # Where all methods are alike, their noise would fill the panel.
        low, high = axes.get_ylim()
        spare = max(0.0, (SPAN - (high - low)) / 2)
        axes.set_ylim(low - spare, high + spare)
    multiples.label_outer(grid, y="Log-likelihood\nper event [nats]")
    multiples.legend(figure, axes=grid[0, 0], ncols=2)
    figure.suptitle(war_logs_panels.note(table), fontsize=7)
    return figure
