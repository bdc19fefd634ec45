"""Held-out log-likelihood of private naive Bayes and hidden Markov models (Foulds et al. 2016, figure 6)."""

from __future__ import annotations

from privpost.figures import multiples, style
from privpost.figures.foulds2016 import war_log_style as logs

MODELS = {"naive_bayes": "Naive Bayes", "hmm": "HMM"}
CURVES = (
    ("laplace", {"variant": "paper"}, "-", "Laplace, clipped (paper)"),
    ("laplace", {"variant": "corrected"}, ":", "Laplace, projected (corrected)"),
    ("ops", {"truncation": 10.0}, "-", "OPS, M = 10"),
    ("ops", {"truncation": 100.0}, ":", "OPS, M = 100"),
)


def draw(tables):
    """Return the figure: log-likelihood per held-out event against ε, one column per data set, one row per model.

    Bars: one standard error over splits of the difference from the non-private model, which leaves out what the choice
    of held-out cells does to all methods alike.
    """
    import pandas as pd

    table = tables["war_logs_likelihood"]
    names = logs.datasets(table)
    width = style.TWO_COLUMNS if len(names) > 1 else style.ONE_COLUMN * 1.5
    figure, panels = multiples.grid(2, len(names), 4.6, width=width, sharex=True, sharey="col")
    for column, name in zip(panels.T, names, strict=True):
        for axes, (model, label) in zip(column, MODELS.items(), strict=True):
            rows = logs.select(table, dataset=name, model=model)
            _panel(axes, rows)
            if axes in panels[:, 0]:
                axes.set_ylabel(f"{label}: log-likelihood\nper event [nats]")
        column[0].set_title(logs.TITLES[name].replace(" (", "\n("))
        column[1].set_xlabel("Budget ε (pure DP)")
    multiples.legend(figure, axes=panels[0, 0], ncols=3)
    ops = logs.select(table, model="hmm", method="ops")
    factor = (ops.worst_case_epsilon / ops.epsilon).max()
    rhats = pd.to_numeric(ops.rhat_max, errors="coerce").dropna()
    largest = f"{rhats.max():.1f}" if len(rhats) else "not assessed"
    chosen = "All other releases hold it unconditionally."
    if table.uses_private_metadata.any():
        chosen += (
            " Real data: empty cells left out, and the busiest\n"
            "governorates of SIGACT chosen, by looking at the data; levels spelt as released."
        )
    figure.suptitle(
        f"OPS on the HMM holds ε only if its chain has converged (else {factor:g} ε; "
        f"largest R-hat {largest}).\n{chosen}",
        fontsize=7,
    )
    return figure


def _panel(axes, rows) -> None:
    for method, values, line, label in CURVES:
        look = {**style.look(method).line(), "linestyle": line, "label": label}
        curve = logs.select(rows, method=method, **values).sort_values("epsilon")
        multiples.bars(axes, curve.epsilon, curve.per_event_mean, curve.per_event_loss_sem, filled=line == "-", **look)
    plain = logs.select(rows, method="non_private").iloc[0]
    multiples.horizontal(axes, plain.per_event_mean, label="Non-private")
    axes.set_xscale("log")
    axes.set_xticks([0.1, 1, 10], labels=["0.1", "1", "10"])
