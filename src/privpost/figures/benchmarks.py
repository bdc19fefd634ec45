"""Measured speed against its bars, from results/benchmarks.csv."""

from __future__ import annotations

import textwrap

from privpost.figures import style

MET, MISSED = "#0072B2", "#D55E00"


def draw(tables):
    """Return the figure: one line per ratio, a dot where it was measured and a mark where its bar is.

    The line runs from the bar to the dot: to the right of a speed-up's bar, to the left of a cost's, if it is met.
    """
    import matplotlib.pyplot as plt
    from matplotlib.lines import Line2D

    table = tables["benchmarks"].iloc[::-1].reset_index(drop=True)
    figure, axes = plt.subplots(figsize=(style.TWO_COLUMNS, 0.9 + 0.42 * len(table)))
    for i, row in table.iterrows():
        sense, limit = row.bar.split()
        colour = MET if row.met else MISSED
        axes.plot([float(limit), row.ratio], [i, i], color=colour, linewidth=2.5, alpha=0.4, solid_capstyle="butt")
        axes.plot(float(limit), i, marker=">" if sense == ">=" else "<", color="#444444", markersize=5)
        axes.plot(row.ratio, i, marker="o" if row.met else "X", color=colour, markersize=5)
        axes.annotate(f"{row.ratio:.3g}", (row.ratio, i), (0, 5), textcoords="offset points", ha="center", fontsize=6)
    words = [textwrap.fill(f"{row.what}: {row.against}", 52) for row in table.itertuples()]
    axes.set_yticks(range(len(table)), words, fontsize=6)
    axes.set(xscale="log", ylim=(-0.6, len(table) - 0.3), xlabel="ratio, measured in one run")
    axes.margins(x=0.08)
    axes.grid(axis="y", visible=False)
    axes.set_title(f"Measured, not reproducible to the digit: {'; '.join(table.machine.unique())}", fontsize=7)
    handles = [
        Line2D([], [], linestyle="", color=MET, marker="o", label="met"),
        Line2D([], [], linestyle="", color=MISSED, marker="X", label="missed"),
        Line2D([], [], linestyle="", color="#444444", marker=">", label="bar: at least"),
        Line2D([], [], linestyle="", color="#444444", marker="<", label="bar: at most"),
    ]
    figure.legend(handles=handles, loc="outside lower center", ncols=len(handles))
    return figure
