"""Where the time goes: computing time and peak memory of each study, as its cells recorded them."""

from __future__ import annotations

from privpost.figures import style


def draw(tables):
    """Return the figure: on the left seconds summed over a study's cells (dot: the longest cell), on the right MiB.

    Measured on the machine that computed the cells; one thread per cell, all cells after another.
    """
    import matplotlib.pyplot as plt

    times = tables["studies"].sort_values("seconds")
    height = 0.9 + 0.19 * len(times)
    figure, (left, right) = plt.subplots(1, 2, figsize=(style.TWO_COLUMNS, height), sharey=True, width_ratios=(3, 2))
    place = range(len(times))
    left.barh(place, times.seconds, color="#56B4E9", label="all cells")
    left.plot(times.longest_cell_seconds, place, "o", color="#0072B2", label="longest cell")
    left.set(xscale="log", xlabel="Wall time  [s]", yticks=list(place), ylim=(-0.7, len(times) - 0.3))
    left.set_yticklabels(times.study)
    left.legend(loc="lower right")
    right.barh(place, times.peak_mib, color="#CC79A7")
    right.set(xlabel="Peak memory of a cell  [MiB]")
    for axes in (left, right):
        axes.grid(axis="y", visible=False)
    figure.suptitle("Measured on one machine: times and memory differ elsewhere", fontsize=7)
    return figure
