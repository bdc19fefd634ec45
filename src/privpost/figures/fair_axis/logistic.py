"""Logistic regression by private posterior samples at the same (ε, δ), on three data sets."""

from __future__ import annotations

from privpost.figures import style
from privpost.figures.fair_axis import panels
from privpost.figures.geumlek2017.panels import TITLES

LABELS = {"test_error": "test error", "test_log_likelihood": "test log-likelihood per example"}
LINES = ("-", "--", "-.", ":")


def draw(tables):
    """Return the figure: one column per data set, test error above log-likelihood, on ε of (ε, δ)-DP.

    Line styles are values of δ; bars are two standard errors of the draws either side, on one train/test split.
    """
    import matplotlib.pyplot as plt
    from matplotlib.lines import Line2D

    table = tables["logistic"]
    datasets = list(dict.fromkeys(table.dataset))
    figure, grid = plt.subplots(
        len(LABELS), len(datasets), figsize=(style.TWO_COLUMNS, 4.6), sharex=True, squeeze=False
    )
    deltas = sorted(table.delta.dropna().unique())
    for axes_row, (metric, label) in zip(grid, LABELS.items(), strict=True):
        for axes, dataset in zip(axes_row, datasets, strict=True):
            here = table[(table.dataset == dataset) & (table.metric == metric)]
            reference = here[here.method == "non_private"]
            axes.axhline(reference["mean"].iloc[0], color=style.look("non_private").color, linestyle=":", linewidth=1)
            for (method, delta), rows in here[here.delta.notna()].groupby(["method", "delta"]):
                panels.error_bars(axes, rows, method, linestyle=LINES[deltas.index(delta) % len(LINES)])
            axes.set(xscale="log", title=TITLES[dataset] if metric == "test_error" else "")
            panels.label_epsilons(axes, table)
        axes_row[0].set_ylabel(label)
    for axes in grid[-1]:
        axes.set_xlabel("ε of (ε, δ)-DP")
    handles = []
    for method in sorted(table.method.unique()):
        look = style.look(method)
        line = {"linestyle": ":"} if method == "non_private" else {"marker": look.marker}
        handles.append(Line2D([], [], color=look.color, label=look.label, **line))
    for place, delta in enumerate(deltas):
        handles.append(Line2D([], [], color="#555555", linestyle=LINES[place % len(LINES)], label=f"δ = {delta:g}"))
    figure.legend(handles=handles, loc="outside lower center", ncols=6)
    return figure
