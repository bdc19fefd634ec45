"""The figures of the study."""

import numpy as np

from privpost.drawing import panels, style
from privpost.drawing.figures import figure

NAIVE = ("naive", "prior")


@figure("rivals_ranks")
def ranks(rivals):
    """Distance from the exact posterior over that of exact draws (ours).

    Medians over models; 1 is as near as can be. Empty: not served.
    """
    ratio = _over_exact(rivals)
    ratio["size"] = ratio.n.map(lambda n: min((10, 100, 1000), key=lambda size: abs(np.log(n / size))))
    median = ratio.groupby(["method", "size", "epsilon"]).ratio.median()
    sizes = panels.ordered(ratio["size"], "n")
    total = median.groupby("method").mean().sort_values()
    methods, epsilons = list(total.index), panels.ordered(ratio.epsilon, "epsilon")
    canvas, (row,) = panels.grid(1, len(sizes), 0.9 + 0.22 * len(methods), sharey=True)
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
    canvas.supxlabel(style.AXES["epsilon"], fontsize=8)
    bar = canvas.colorbar(mesh, ax=row, label="Distance over that of exact draws", ticks=[0, np.log10(3), 1])
    bar.ax.set_yticklabels(["1", "3", "10"])
    apart = median.unstack("method")
    naive = [method for method in NAIVE if method in apart]
    holds = naive and (apart[naive].min(axis=1) > apart.drop(columns=naive).max(axis=1)).all()
    panels.message(canvas, "Naive posteriors are the farthest at every n and ε", bool(holds))
    return canvas


def _over_exact(table):
    """Return a table with `ratio`, distances over those of exact draws at the same point, and their standard errors."""
    keys = ["task", "n", "epsilon"]
    floor = table[table.method == "exact"].set_index(keys).distance.reindex(table.set_index(keys).index).to_numpy()
    return table.assign(ratio=table.distance.to_numpy() / floor, ratio_sem=table.distance_sem.to_numpy() / floor)
