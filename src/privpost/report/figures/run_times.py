"""Where the time goes: computing time and peak memory of each study, as its cells recorded them."""

from privpost.drawing import multiples

# Whether a study is beyond the papers → its bars' colour, and what the legend calls it.
GROUPS = {True: ("#E69F00", "beyond the papers"), False: ("#56B4E9", "of the four papers")}


def draw(tables):
    """Return the figure: on the left seconds summed over a study's cells (dot: the longest cell), on the right MiB.

    Studies of the four papers stand above those beyond them. Measured on the machine that computed the cells; one
    thread per cell, all cells after another.
    """
    times = tables["studies"].sort_values(["beyond_papers", "seconds"], ascending=[False, True], ignore_index=True)
    height = 1.1 + 0.19 * len(times)
    figure, ((left, right),) = multiples.grid(1, 2, height, sharey=True, width_ratios=(3, 2))
    for beyond, (colour, words) in reversed(GROUPS.items()):
        part = times[times.beyond_papers == beyond]
        label = f"all cells, studies {words}: {part.seconds.sum() / 60:.1f} min"
        left.barh(part.index, part.seconds, color=colour, label=label)
        right.barh(part.index, part.peak_mib, color=colour)
    left.plot(times.longest_cell_seconds, times.index, "o", color="#0072B2", label="longest cell")
    left.set(xscale="log", xlabel="Wall time  [s]", yticks=times.index, ylim=(-0.7, len(times) - 0.3))
    left.set_yticklabels(times.study)
    right.set(xlabel="Peak memory of a cell  [MiB]")
    for axes in (left, right):
        axes.grid(axis="y", visible=False)
    figure.suptitle("Measured on one machine: times and memory differ elsewhere", fontsize=7)
    figure.legend(loc="outside lower center", ncols=2)
    return figure
