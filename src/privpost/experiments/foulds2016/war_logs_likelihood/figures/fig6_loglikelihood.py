"""Held-out log-likelihood of private naive Bayes and hidden Markov models (Foulds et al. 2016, figure 6)."""

from privpost.drawing import multiples, style
from privpost.evaluation.rows import select
from privpost.experiments.foulds2016 import war_log_style as logs

MODELS = {"naive_bayes": "Naive Bayes", "hmm": "HMM"}
CURVES = (
    ("laplace", {"variant": "paper"}, "-", "Laplace, clipped (paper)"),
    ("laplace", {"variant": "corrected"}, ":", "Laplace, projected (corrected)"),
    ("ops", {"truncation": 10.0}, "-", "OPS, M = 10"),
    ("ops", {"truncation": 100.0}, ":", "OPS, M = 100"),
    ("private_gibbs", {"truncation": 10.0}, "--", "Gibbs, updates paid, M = 10"),
)


def draw(tables):
    """Return the figure: log-likelihood per held-out event against ε, one column per data set, one row per model.

    Bars: one standard error over splits of the difference from the non-private model, which leaves out what the choice
    of held-out cells does to all methods alike. States of the HMM and its truncations stand above its panels; data sets
    whose chains take long have fewer ε and M.
    """
    import pandas as pd

    table = logs.reached(tables["war_logs_likelihood"])
    # A chain that pays for its updates has no sampler but the paper's.
    paid = select(tables["war_logs_likelihood"], method="private_gibbs")
    names = logs.datasets(table)
    width = style.TWO_COLUMNS if len(names) > 1 else style.ONE_COLUMN * 1.5
    figure, panels = multiples.grid(2, len(names), 4.6, width=width, sharex=True)
    for axes, model, name in multiples.cells(panels, MODELS, names):
        rows = select(pd.concat([table, paid]), dataset=name, model=model)
        _panel(axes, rows)
        if model == "hmm":
            truncations = ", ".join(f"{truncation:g}" for truncation in sorted(rows.truncation.dropna().unique()))
            axes.set_title(f"{rows.n_states.iloc[0]} states, M = {truncations}")
    labels = [f"{label}: log-likelihood\nper event [nats]" for label in MODELS.values()]
    titles = [logs.TITLES[name].replace(" (", "\n(") for name in names]
    multiples.label_outer(panels, "Budget ε (pure DP)", labels, titles)
    # Data sets differ in the truncations that they have.
    fullest = max(panels[1], key=lambda axes: len(axes.get_legend_handles_labels()[0]))
    multiples.legend(figure, axes=fullest, ncols=3 if len(names) > 1 else 2)
    hidden = select(table, model="hmm")
    chosen = "All other releases hold it unconditionally."
    if table.uses_private_metadata.any():
        chosen += (
            " Real data: empty cells left out, and the busiest\n"
            "governorates of SIGACT chosen, by looking at the data; levels spelt as released."
        )
    figure.suptitle(
        "OPS on the HMM holds ε only if its chain has converged; crosses: chains that have not.\n"
        f"HMM, {logs.rhats(hidden)}.\n{chosen}",
        fontsize=7,
    )
    return figure


def _panel(axes, rows) -> None:
    for method, values, line, label in CURVES:
        look = {**style.look(method).line(), "linestyle": line, "label": label}
        curve = select(rows, method=method, **values).sort_values("epsilon")
        if not len(curve):
            continue
        multiples.bars(axes, curve.epsilon, curve.per_event_mean, curve.per_event_loss_sem, filled=line == "-", **look)
        logs.crosses(axes, curve.epsilon, curve.per_event_mean, curve)
    plain = select(rows, method="non_private").iloc[0]
    multiples.horizontal(axes, plain.per_event_mean, label="Non-private")
    axes.set_xscale("log")
    axes.set_xticks([0.1, 1, 10], labels=["0.1", "1", "10"])
