"""Utility bounds of the mechanisms on Bayesian networks against simulation."""

import numpy as np

from privpost.drawing import multiples
from privpost.experiments.zhang2016.graphs import label

COLORS = ("#0072B2", "#D55E00", "#117733", "#AA4499", "#E69F00", "#332288")
MARKERS = ("o", "s", "^", "D", "v", "P")
PANELS = (
    ("proposition_1", "Proposition 1: largest\nperturbation of a count [records]"),
    ("theorem_1", "Theorem 1: KL less its mean [nats]\n(grey: c without its square)"),
    ("theorem_1_expectation", "Theorem 1, printed bound on\nthe mean KL of a parameter [nats]"),
    ("theorem_3", "Theorem 3: L1 error of a\nFourier marginal [records]"),
    ("corollary_3", "Corollary 3: probability of\nno negative cell (a lower bound)"),
    ("lemma_4", "Lemma 4: tail of the MAP\nmechanism (grey: as printed)"),
)
# The formula as the text prints it, where it differs from the restored one.
PRINTED = {"theorem_1": "theorem_1_unsquared", "lemma_4": "lemma_4_printed"}
LINEAR = ("corollary_3",)
# Smaller values lie on the edge of a logarithmic panel.
SMALLEST = 1e-7


def _limits(rows) -> tuple[float, float]:
    values = np.concatenate([rows.empirical, rows.bound])
    values = values[values > SMALLEST]
    return max(values.min() / 2, SMALLEST), values.max() * 2


def _points(axes, rows, floor, **look):
    axes.scatter(np.maximum(rows.empirical, floor), np.maximum(rows.bound, floor), clip_on=False, **look)


def _panel(axes, rows, printed, looks, linear):
    low, high = (0.0, 1.0) if linear else _limits(rows)
    if not linear:
        axes.set(xscale="log", yscale="log")
    _points(axes, printed, low, s=9, c="#999999", marker="x", linewidths=0.7)
    for graph, (color, marker) in looks.items():
        own = rows[rows.graph == graph]
        for holds, face in ((True, "none"), (False, color)):
            look = {"s": 11, "marker": marker, "edgecolors": color, "facecolors": face, "linewidths": 0.7}
            _points(axes, own[own.holds == holds], low, **look)
    axes.plot([low, high], [low, high], color="#444444", linewidth=0.8)
    axes.set(xlim=(low, high), ylim=(low, high), xlabel="empirical", ylabel="bound")
    below = np.array([bound for bound in (*rows.bound, *printed.bound) if bound < low])
    if len(below):
        text = "on this edge: bounds of 0" if below.max() == 0 else f"on this edge: bounds below {low:.0e}"
        axes.annotate(text, (0.97, 0.04), xycoords="axes fraction", fontsize=6, ha="right")
    if (rows.empirical < low).any():
        axes.annotate("on this edge: never seen", (0.04, 0.12), xycoords="axes fraction", fontsize=6)


def draw(tables):
    """Return the figure: empirical value (horizontal) against bound (vertical), one panel per statement.

    One point per graph, n, ε and parameter; empirical values are quantiles, means or frequencies of 10,000 releases.
    Filled points contradict the statement beyond simulation error. Values too small for a panel lie on its edge.
    """
    table = tables["bounds"]
    table = table[table.statement.isin([*(statement for statement, _ in PANELS), *PRINTED.values()])]
    looks = dict(zip(dict.fromkeys(table.graph), zip(COLORS, MARKERS, strict=True), strict=False))
    figure, panels = multiples.grid(2, 3, 5.0)
    for axes, (statement, title) in zip(panels.flat, PANELS, strict=True):
        printed = table[table.statement == PRINTED.get(statement, "")]
        _panel(axes, table[table.statement == statement], printed, looks, statement in LINEAR)
        axes.set_title(title, fontsize=7)
    handles = [
        multiples.entry(color=color, marker=marker, linestyle="", markerfacecolor="none", label=label(graph))
        for graph, (color, marker) in looks.items()
    ]
    handles.append(multiples.entry(color="#444444", marker="o", linestyle="", label="filled: contradicted"))
    handles.append(multiples.entry(color="#444444", linewidth=0.8, label="equality"))
    multiples.legend(figure, handles, ncols=4)
    return figure
