"""Timeline of the last complete rebuild: which cell ran when, as the cells recorded it."""

from privpost.drawing import multiples

# Neighbours in a list of studies differ clearly; which bar is which study is said by its row.
COLOURS = ("#0072B2", "#E69F00", "#009E73", "#D55E00", "#56B4E9", "#CC79A7")


def draw(tables):
    """Return the figure: a row per study with a bar per cell, and below how many cells ran at a time.

    Gaps are the starts of processes, tables and figures. Measured on the machine that made the shipped results.
    """
    import numpy as np

    cells = tables["timeline"]
    if cells.empty:
        figure, ((axes,),) = multiples.grid(1, 1, 1.0)
        axes.set_axis_off()
        axes.text(0.5, 0.5, "No complete rebuild has been recorded here.", ha="center", va="center")
        return figure
    studies = list(dict.fromkeys(cells.study))
    height = 1.3 + 0.17 * len(studies)
    figure, ((top,), (bottom,)) = multiples.grid(2, 1, height, sharex=True, height_ratios=(len(studies), 4))
    for place, study in enumerate(studies):
        part = cells[cells.study == study]
        # A cell's core decides which half of the row its bar takes, so that cells of a time do not hide each other.
        cores = int(cells.core.max()) + 1
        size = 0.8 / cores
        # Wide enough to be seen, and apart from the next one.
        width = (part.end - part.start).clip(lower=0.002 * float(cells.end.max())) - 0.0005 * float(cells.end.max())
        colour = COLOURS[place % len(COLOURS)]
        top.barh(place - 0.4 + size * (part.core + 0.5), width, size, part.start, color=colour, linewidth=0)
    top.set(yticks=range(len(studies)), ylim=(len(studies) - 0.4, -0.6))
    top.set_yticklabels(studies, fontsize=6)
    edges = np.sort(np.concatenate([cells.start, cells.end]))
    running = [int(((cells.start <= t) & (t < cells.end)).sum()) for t in edges]
    bottom.fill_between(edges, running, step="post", color="#999999", linewidth=0)
    busy = float((cells.end - cells.start).sum())
    bottom.set(
        xlabel=f"Time since the rebuild began  [s]  ({len(cells)} cells, {busy:.0f} s of computing; measured)",
        ylabel="Cells\nrunning",
        yticks=range(max(running) + 1),
        xlim=(0, float(cells.end.max()) * 1.01),
    )
    top.grid(axis="y", visible=False)
    return figure
