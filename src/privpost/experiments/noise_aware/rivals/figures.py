"""The figures of the study."""

import numpy as np

from privpost.drawing import panels, style
from privpost.drawing.figures import figure

TITLES = {"naive_bayes": "Naive Bayes", "normal_unknown_variance": "Normal, σ unknown"}
# Records of the panels, or where a task has not so many the most that it has.
N = 100


@figure("rivals")
def cost_and_distance(rivals):
    """Distance from the exact posterior against CPU time (ours).

    Points grow with ε = 0.1, 1 and 10; means over 20 releases with 95 % intervals, in standard deviations of the exact
    posterior. Its own draws reach the grey band. CPU time: one release of 20 that run together.
    """
    tasks = panels.ordered(rivals.task, "task")
    columns = 3
    rows = -(-len(tasks) // columns)
    made, axes = panels.grid(rows, columns, 0.75 + 1.5 * rows, sharex=True, sharey=True)
    every = panels.looks(rivals)
    for place, task in enumerate(tasks):
        here = rivals[rivals.task == task]
        here = here[here.n == (N if (here.n == N).any() else here.n.max())]
        panel = axes.flat[place]
        for (method,), look in every.items():
            part = here[here.method == method].sort_values("epsilon")
            if part.empty:
                continue
            panel.plot(part.seconds, part.distance, color=look["color"], linewidth=0.6, label=look["label"])
            sizes = 6 + 14 * np.arange(len(part)) / max(1, len(part) - 1)
            panel.scatter(part.seconds, part.distance, s=sizes, color=look["color"], marker=look["marker"], zorder=3)
            ends = np.maximum(style.NORMAL_95 * part.distance_sem, 0)
            panel.errorbar(part.seconds, part.distance, ends, linestyle="", ecolor=(look["color"], 0.5), elinewidth=0.8)
        floor = here[here.method == "exact"].distance
        if len(floor):
            panel.axhspan(0, floor.max(), color=style.BAND, linewidth=0)
        title = TITLES.get(task, task.capitalize())
        panel.set(xscale="log", yscale="log", title=f"{title}, n = {here.n.max()}")
    for panel in axes.flat[len(tasks) :]:
        panel.axis("off")
    for panel in axes.flat[len(tasks) - columns : len(tasks)]:
        panel.tick_params(labelbottom=True)
    made.supxlabel("CPU time per release [s]", fontsize=8)
    made.supylabel("Distance from the exact posterior [its sd]", fontsize=8)
    entries = [panels.entry(**{**look, "linestyle": ""}) for look in every.values()]
    panels.legend(made, entries)
    return made


@figure("rivals_ranks")
def ranks(rivals):
    """Distance from the exact posterior over that of exact draws (ours).

    Medians over models; 1 is as near as can be. Empty: not served.
    """
    floor = rivals[rivals.method == "exact"].set_index(["task", "n", "epsilon"]).distance
    keys = rivals.set_index(["task", "n", "epsilon"]).index
    ratio = rivals.assign(ratio=rivals.distance.to_numpy() / floor.reindex(keys).to_numpy())
    ratio["size"] = ratio.n.map(lambda n: min((10, 100, 1000), key=lambda size: abs(np.log(n / size))))
    median = ratio.groupby(["method", "size", "epsilon"]).ratio.median()
    sizes = panels.ordered(ratio["size"], "n")
    total = median.groupby("method").mean().sort_values()
    methods, epsilons = list(total.index), panels.ordered(ratio.epsilon, "epsilon")
    made, (row,) = panels.grid(1, len(sizes), 0.9 + 0.22 * len(methods), sharey=True)
    for panel, size in zip(row, sizes, strict=True):
        tiles = np.array([[median.get((method, size, epsilon), np.nan) for epsilon in epsilons] for method in methods])
        mesh = panel.imshow(np.log10(np.maximum(tiles, 1)), cmap="YlOrBr", vmin=0, vmax=1.3, aspect="auto")
        for (i, j), value in np.ndenumerate(tiles):
            if np.isfinite(value):
                dark = value > 8
                panel.text(j, i, f"{value:.1f}" if value < 10 else f"{value:.0f}", ha="center", va="center",
                           fontsize=7, color="white" if dark else "black")  # fmt: skip
        panel.set_xticks(range(len(epsilons)), [f"{epsilon:g}" for epsilon in epsilons])
        panel.set_yticks(range(len(methods)), [style.look(method).label for method in methods])
        panel.grid(False)
        panel.set_title(f"n about {size:,}" if size != 1000 else "n = 1,000")
    made.supxlabel(style.AXES["epsilon"], fontsize=8)
    bar = made.colorbar(mesh, ax=row, label="Distance over that of exact draws", ticks=[0, np.log10(3), 1])
    bar.ax.set_yticklabels(["1", "3", "10"])
    return made
