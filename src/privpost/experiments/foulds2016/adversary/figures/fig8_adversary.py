"""Local ε of posterior sampling on an adversary's data (Foulds et al. 2016, figure 8)."""

import numpy as np

from privpost.drawing import multiples

TERMS = (
    ("local_epsilon", "local ε", "-", "#D55E00"),
    ("likelihood_term", "log-likelihoods", "-.", "#56B4E9"),
    ("partition_term", "log-partition functions", "--", "#009E73"),
)
LINES = ("-", "--", "-.")


def _terms(axes, path, a0):
    sensitivity = np.log((1 - a0) / a0)
    for factor, name in ((1, "Δ"), (2, "2Δ")):
        axes.axhline(factor * sensitivity, color="#555555", linestyle=":", linewidth=0.9)
        look = {"fontsize": 7, "color": "#555555", "va": "bottom", "ha": "right"}
        axes.text(path.n.max(), factor * sensitivity * 1.01, f"{name} = {factor * sensitivity:.3f}", **look)
    for column, label, line, color in TERMS:
        axes.plot(path.n, path[column], line, color=color, label=label)
    axes.set(xscale="log", ylabel="privacy loss, pure ε  [nats]", ylim=(0, 2.25 * sensitivity))
    axes.set_title(f"a₀ = {a0:g}, T = 1")


def draw(tables):
    """Return the figure: the local ε and its two terms along the path for each a0, and last its gap to 2Δ.

    Dotted: the limits Δ and 2Δ, and for the gap 1/(n a0), its value to first order. Deterministic, so without bands.
    """
    table = tables["adversary"]
    truncations = sorted(table.a0.unique(), reverse=True)
    rows = (len(truncations) + 2) // 2
    figure, panels = multiples.grid(rows, 2, 2.2 * rows, sharex=True)
    *used, last = panels.flat[: len(truncations) + 1]
    for axes in panels.flat[len(truncations) + 1 :]:
        axes.set_visible(False)
    for index, (axes, a0) in enumerate(zip(used, truncations, strict=True)):
        path = table[table.a0 == a0].sort_values("n")
        _terms(axes, path, a0)
        gap = 2 * np.log((1 - a0) / a0) - path.local_epsilon
        last.plot(path.n, gap, LINES[index % len(LINES)], color="#D55E00", label=f"a₀ = {a0:g}")
        far = path[path.n * a0 >= 2]
        last.plot(far.n, 1 / (far.n * a0), ":", color="#222222", linewidth=1, zorder=3)
    used[0].legend(loc="lower right")
    last.plot([], [], ":", color="#222222", linewidth=1, label="1/(n a₀)")
    last.set(yscale="log", ylabel="2Δ − local ε  [nats]", title="Distance from the worst case")
    last.legend(loc="lower left")
    multiples.label_outer(panels, "number of records n")
    return figure
