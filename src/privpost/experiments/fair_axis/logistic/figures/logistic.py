"""Logistic regression by private posterior samples at the same (ε, δ), on three data sets."""

from privpost.drawing import multiples
from privpost.evaluation.rows import one, select
from privpost.experiments.fair_axis import panels
from privpost.experiments.geumlek2017.panels import TITLES

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
    for axes, metric, dataset in multiples.cells(grid, LABELS, datasets):
        here = select(table, dataset=dataset, metric=metric)
        multiples.horizontal(axes, one(here, method="non_private")["mean"], linestyle=":", linewidth=1)
        for (method, delta), rows in here[here.delta.notna()].groupby(["method", "delta"]):
            # Charged alike it draws what the diffused posterior does: hollow and large, around that one's markers.
            around = {"markerfacecolor": "none", "markersize": 7, "zorder": 1} if method == "ops_renyi" else {}
            panels.error_bars(axes, rows, method, linestyle=LINES[deltas.index(delta) % len(LINES)], **around)
        axes.set_xscale("log")
        panels.label_epsilons(axes, table)
    multiples.label_outer(grid, "ε of (ε, δ)-DP", LABELS.values(), [TITLES[dataset] for dataset in datasets])
    handles = panels.entries(table, {"ops_renyi": {"markerfacecolor": "none", "markersize": 7}})
    for place, delta in enumerate(deltas):
        handles.append(multiples.entry(color="#555555", linestyle=LINES[place % len(LINES)], label=f"δ = {delta:g}"))
    multiples.legend(figure, handles, ncols=4)
    return figure
