"""The figures of the study."""

import numpy as np

from privpost.drawing import panels, style
from privpost.drawing.figures import figure

# Records of the tasks, or the most that a task has if these are fewer.
N = 100
NAIVE = ("naive", "widened")
# Parameters of a prior of bits whose mass reaches the ends.
FLAT = "0.5, 0.5"


@figure("rivals")
def cost_and_distance(rivals):
    """Distance from the exact posterior, and CPU time (ours).

    About 100 records; a point per model, means over 20 releases with 95 % intervals; bars: medians over models. Each
    method has ε = 0.1, 1 and 10 from top to bottom. Left: over the distance of exact draws, 1 (grey line). Right: one
    release of 20 that run together.
    """
    size = rivals.n.where(rivals.n <= N).groupby(rivals.task).transform("max")
    table = _over_exact(rivals[rivals.n == size])
    methods = list(table.groupby("method").ratio.median().sort_values().index)
    epsilons = panels.ordered(table.epsilon, "epsilon")
    canvas, ((left, right),) = panels.grid(1, 2, 0.8 + 0.3 * len(methods), sharey=True, width_ratios=(3, 2))
    for place, method in enumerate(methods):
        look = style.look(method)
        for row, epsilon in enumerate(epsilons):
            rows = table[(table.method == method) & (table.epsilon == epsilon)]
            y = place + 0.24 * (row - (len(epsilons) - 1) / 2)
            for panel, column in ((left, "ratio"), (right, "seconds")):
                panel.plot(rows[column], [y] * len(rows), look.marker, color=look.color, markersize=2.2, alpha=0.6)
                panel.plot([rows[column].median()] * 2, [y - 0.11, y + 0.11], color=look.color, linewidth=2)
            ends = panels.interval(rows.ratio, rows.ratio_sem)
            left.hlines([y] * len(rows), np.maximum(ends[0], 0.1), ends[1], color=(look.color, 0.3), linewidth=0.7)
    for row, epsilon in enumerate(epsilons):
        at = (0.99, 0.24 * (row - (len(epsilons) - 1) / 2))
        left.text(*at, f"ε = {epsilon:g}", fontsize=6, va="center", ha="right", transform=left.get_yaxis_transform())
    left.axvline(1, color=style.GREY, linewidth=0.8, zorder=0)
    left.set(xscale="log", xlim=(0.5, None), xlabel="Distance ÷ that of exact draws")
    right.set(xscale="log", xlabel="CPU time per release [s]", ylim=(len(methods) - 0.5, -0.5))
    left.set_yticks(range(len(methods)), [style.look(method).label for method in methods])
    for panel in (left, right):
        panel.grid(axis="y", visible=False)
        for place in range(0, len(methods), 2):
            panel.axhspan(place - 0.5, place + 0.5, color=style.BAND, alpha=0.35, linewidth=0, zorder=0)
    medians = table.groupby(["method", "epsilon"]).ratio.median().unstack("epsilon")
    naive = medians.index.isin(NAIVE)
    holds = naive.any() and not naive.all() and (medians[naive].min() > 2 * medians[~naive].max()).all()
    panels.message(canvas, "Naive posteriors are more than twice as far off as all others at every ε", bool(holds))
    return canvas


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


@figure("approximation")
def normal_approximation(approximation):
    """Where the normal approximation of the noise-aware Gibbs sampler breaks down (Bernstein and Sheldon 2018; ours).

    Total variation between the law that the normal approximation leads to, by quadrature, and the exact noise-aware
    posterior, against n: one panel per prior of bits and for the largest of all redacted sums, one colour per ε of pure
    DP. Bars are 95 % intervals over releases.
    """
    bits = approximation.task == "binomial"
    names = "Bits,\nprior Beta(" + approximation.prior.replace(FLAT, "½, ½") + ")"
    table = approximation.assign(panel=names.where(bits, "Redacted sums,\nthe worst family"))
    table = table.sort_values("total_variation").groupby(["panel", "n", "epsilon"]).tail(1)
    table = table.sort_values(["panel", "n"])
    plot = panels.panels(
        table, "n", "total_variation", _ends, None, "panel", ("epsilon",), bars=True, share=(True, True),
        size=(style.WIDTH, 1.9), xscale="log", yscale="log", ylabel="Total variation\nto the exact posterior",
    )  # fmt: skip
    flat = approximation.prior == FLAT
    worst = [approximation.total_variation[part & (approximation.n >= 100)].max() for part in (flat, ~flat)]
    panels.message(plot.figure, "From 100 records on only the prior Beta(½, ½) makes it poor", worst[0] > 2 * worst[1])
    panels.legend(plot.figure)
    return plot.figure


def _ends(rows):
    low, high = panels.interval(rows.total_variation, rows.total_variation_sem)
    # A logarithmic axis has no 0.
    return np.maximum(low, rows.total_variation / 100), high


def _over_exact(table):
    """Return a table with `ratio`, distances over those of exact draws at the same point, and their standard errors."""
    keys = ["task", "n", "epsilon"]
    floor = table[table.method == "exact"].set_index(keys).distance.reindex(table.set_index(keys).index).to_numpy()
    return table.assign(ratio=table.distance.to_numpy() / floor, ratio_sem=table.distance_sem.to_numpy() / floor)
