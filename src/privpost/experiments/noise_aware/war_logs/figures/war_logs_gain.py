"""What counting the noise in gains on war logs, by two scores."""

from privpost.drawing import multiples, style
from privpost.evaluation.rows import select
from privpost.experiments.foulds2016 import war_log_style as logs
from privpost.experiments.noise_aware import war_logs_panels

CURVES = (
    ("paper", "joint", "s", "-", "over clipped counts, joint score"),
    ("paper", "predictive", "s", ":", "over clipped counts, predictive score"),
    ("corrected", "joint", "o", "-", "over projected counts, joint score"),
    ("corrected", "predictive", "o", ":", "over projected counts, predictive score"),
)
# Projected counts in a reserve colour: no method has it.
COLORS = {"paper": style.look("laplace").color, "corrected": "#A05A2C"}


def draw(tables):
    """Return the figure: noise-aware minus noise-naive score per event against ε, a panel per data set and model.

    Above 0 the noise-aware model is ahead. Bars: one standard error of the difference, paired over splits; crosses:
    chains of one side have not converged. Joint: the likelihood of all held-out cells at once; predictive: each field
    of each event by itself.
    """
    table = tables["war_logs_pairs"]
    figure, listed, grid = war_logs_panels.panels(table)
    for axes, dataset, model, n_states in listed:
        rows = select(table, dataset=dataset, model=model, n_states=n_states)
        axes.axhline(0, color="black", linewidth=0.8)
        for variant, score, marker, line, label in CURVES:
            curve = select(rows, variant=variant, score=score).sort_values("epsilon")
            look = {"color": COLORS[variant], "marker": marker, "linestyle": line, "label": label}
            multiples.bars(axes, curve.epsilon, curve.gain_mean, curve.gain_sem, filled=line == "-", **look)
            logs.crosses(axes, curve.epsilon, curve.gain_mean, curve)
    multiples.label_outer(grid, y="Gain of noise-aware\nper event [nats]")
    multiples.legend(figure, axes=grid[0, 0], ncols=2)
    figure.suptitle(war_logs_panels.note(tables["war_logs"]), fontsize=7)
    return figure
