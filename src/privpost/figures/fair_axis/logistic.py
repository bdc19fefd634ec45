"""Logistic regression by private posterior samples at the same (ε, δ), on three data sets."""

from __future__ import annotations

from privpost.figures import multiples, style
from privpost.figures.fair_axis import panels
from privpost.figures.geumlek2017.panels import TITLES

LABELS = {"test_error": "test error", "test_log_likelihood": "test log-likelihood per example"}
LINES = ("-", "--", "-.", ":")


def draw(tables):
    """Return the figure: one column per data set, test error above log-likelihood, on ε of (ε, δ)-DP.

    Line styles are values of δ; bars are two standard errors of the draws either side, on one train/test split.
    """
    table = tables["logistic"]
    datasets = list(dict.fromkeys(table.dataset))
    figure, grid = multiples.grid(len(LABELS), len(datasets), 4.6, sharex=True)
    deltas = sorted(table.delta.dropna().unique())
    for axes_row, (metric, label) in zip(grid, LABELS.items(), strict=True):
        for axes, dataset in zip(axes_row, datasets, strict=True):
            here = table[(table.dataset == dataset) & (table.metric == metric)]
            reference = here[here.method == "non_private"]
            axes.axhline(reference["mean"].iloc[0], color=style.look("non_private").color, linestyle=":", linewidth=1)
            for (method, delta), rows in here[here.delta.notna()].groupby(["method", "delta"]):
                # Charged alike it draws what the diffused posterior does: hollow and large, around that one's markers.
                around = {"markerfacecolor": "none", "markersize": 7, "zorder": 1} if method == "ops_renyi" else {}
                panels.error_bars(axes, rows, method, linestyle=LINES[deltas.index(delta) % len(LINES)], **around)
            axes.set(xscale="log", title=TITLES[dataset] if metric == "test_error" else "")
            panels.label_epsilons(axes, table)
        axes_row[0].set_ylabel(label)
    multiples.label_outer(grid, "ε of (ε, δ)-DP")
    handles = []
    for method in sorted(table.method.unique()):
        look = style.look(method)
        line = {"linestyle": ":"} if method == "non_private" else {"marker": look.marker}
        line |= {"markerfacecolor": "none", "markersize": 7} if method == "ops_renyi" else {}
        handles.append(multiples.entry(color=look.color, label=look.label, **line))
    for place, delta in enumerate(deltas):
        handles.append(multiples.entry(color="#555555", linestyle=LINES[place % len(LINES)], label=f"δ = {delta:g}"))
    multiples.legend(figure, handles, ncols=4)
    return figure
