"""Utility bounds of the mechanisms on Bayesian networks against simulation."""

from __future__ import annotations

import numpy as np

from privpost.figures import multiples, style

COLORS = ("#0072B2", "#D55E00", "#117733", "#AA4499", "#E69F00", "#332288")
MARKERS = ("o", "s", "^", "D", "v", "P")
PANELS = (
    ("proposition_1", "Proposition 1: largest\nperturbation of a count [records]"),
    ("theorem_1", "Theorem 1: KL less its mean\n[nats]"),
    ("theorem_1_expectation", "Theorem 1, printed bound on\nthe mean KL of a parameter [nats]"),
    ("theorem_3", "Theorem 3: L1 error of a\nFourier marginal [records]"),
    ("corollary_3", "Corollary 3: probability of\nno negative cell (a lower bound)"),
    ("lemma_4", "Lemma 4: tail of the MAP\nmechanism (grey: as printed)"),
)
LINEAR = ("corollary_3",)


def _limits(rows) -> tuple[float, float]:
    values = np.concatenate([rows.empirical, rows.bound])
    values = values[values > 0]
    return values.min() / 2, values.max() * 2


def _scatter(axes, rows, looks, floor):
    for graph, (color, marker) in looks.items():
        own = rows[rows.graph == graph]
        for holds, face in ((True, "none"), (False, color)):
            part = own[own.holds == holds]
            x, y = np.maximum(part.empirical, floor), np.maximum(part.bound, floor)
            axes.scatter(x, y, s=11, marker=marker, edgecolors=color, facecolors=face, linewidths=0.7, clip_on=False)


def draw(tables):
    """Return the figure: empirical value (horizontal) against bound (vertical), one panel per statement.

    One point per graph, n, ε and parameter; empirical values are quantiles, means or frequencies of 10,000 releases.
    Filled points contradict the statement beyond simulation error. Zeros lie on the edge of a logarithmic panel.
    """
    import matplotlib.pyplot as plt

    table = tables["bounds"]
    graphs = [graph for graph in dict.fromkeys(table.graph) if graph != "one parameter"]
    looks = dict(zip(graphs, zip(COLORS, MARKERS, strict=True), strict=False))
    figure, panels = plt.subplots(2, 3, figsize=(style.TWO_COLUMNS, 5.0))
    for axes, (statement, title) in zip(panels.flat, PANELS, strict=True):
        rows = table[table.statement == statement]
        if statement in LINEAR:
            low, high, floor = 0.0, 1.0, 0.0
        else:
            low, high = floor, _ = _limits(rows)
            axes.set(xscale="log", yscale="log")
        if statement == "lemma_4":
            printed = table[table.statement == "lemma_4_printed"]
            low = floor = 1e-7
            grey = dict.fromkeys(looks, ("#999999", "x"))
            for graph, (color, marker) in grey.items():
                own = printed[printed.graph == graph]
                axes.scatter(
                    np.maximum(own.empirical, floor), np.maximum(own.bound, floor), s=9, c=color, marker=marker
                )
        _scatter(axes, rows, looks, floor)
        axes.plot([low, high], [low, high], color="#444444", linewidth=0.8)
        axes.set_title(title, fontsize=7)
        axes.set_xlim(low, high)
        axes.set_ylim(low, high)
        axes.set_xlabel("empirical")
        axes.set_ylabel("bound")
    handles = [
        multiples.entry(color=color, marker=marker, linestyle="", markerfacecolor="none", label=graph)
        for graph, (color, marker) in looks.items()
    ]
    handles.append(multiples.entry(color="#444444", marker="o", linestyle="", label="filled: contradicted"))
    handles.append(multiples.entry(color="#444444", linewidth=0.8, label="equality"))
    multiples.legend(figure, handles, ncols=4)
    return figure
