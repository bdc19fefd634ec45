"""The figures of the study."""

import numpy as np

from privpost.drawing import facets, style
from privpost.drawing.figures import figure
from privpost.experiments.zhang2016.statements import STATEMENTS

WIDEST = 1e6
BROKEN = "#B2182B"
NOISE = {"fourier_coefficient": "on a coefficient (the paper's)", "fourier_cell": "on a published count"}


@figure("bounds")
def bounds(bounds):
    """Bounds of the mechanisms against simulated or exact values (Zhang et al. 2016).

    A point is the bound divided by the empirical value at one graph, n, ε (pure DP) and parameter. For corollary 3, a
    lower bound, it is the inverse ratio. Left of 1 the bound is violated. Red points contradict the statement beyond
    simulation error. Empirical values are exact, or quantiles, means or frequencies of 10,000 releases. Events that
    never occurred have no point. Mended: with the mistake in print corrected, or under the statement's premise.
    """
    ratio = (bounds.bound / bounds.empirical).pow(1 - 2 * (bounds.statement == "corollary_3"))
    table = bounds.assign(ratio=ratio.clip(1 / WIDEST, WIDEST), holds=bounds.holds.astype(bool))
    every = [[(name, words), (mended, "… mended")] for name, (words, mended) in STATEMENTS.items()]
    shown = {name: words for pair in every for name, words in pair if name in set(table.statement)}
    canvas, ((axes,),) = facets.subplots(1, 1, 0.7 + 0.22 * len(shown))
    axes.axvspan(1 / WIDEST / 2, 1, color=BROKEN, alpha=0.08, linewidth=0)
    axes.axvline(1, color=style.GREY, linewidth=0.8)
    for place, name in enumerate(shown):
        rows = table[table.statement == name].sort_values("ratio")
        rows = rows.assign(y=place + 0.28 * np.linspace(-1, 1, len(rows)), out=rows.ratio.isin([WIDEST, 1 / WIDEST]))
        broken = int((~rows.holds).sum())
        for (holds, out), part in rows[rows.empirical > 0].groupby(["holds", "out"]):
            marker = ("o" if holds else "X") if not out else ">" if holds else "<"
            color, size = style.COLORS[0] if holds else BROKEN, 3.5 if out else 2.2
            axes.plot(part.ratio, part.y, marker, color=color, markersize=size, markeredgewidth=0, alpha=0.8)
        words = f"{broken} of {len(rows)} broken"
        axes.text(WIDEST * 3, place, words, fontsize=7, va="center", color=BROKEN if broken else style.GREY)
    axes.set(xscale="log", xlim=(1 / WIDEST / 2, 2 * WIDEST), ylim=(len(shown) - 0.5, -0.5))
    axes.set_yticks(range(len(shown)), list(shown.values()))
    axes.grid(axis="y", visible=False)
    holds = table[table.statement.isin(list(STATEMENTS))].groupby("statement").holds.all()
    words = f"{(~holds).sum()} of {len(holds)} printed statements are broken in some case (red)"
    note = "A point is a case: one graph, n, ε and parameter. Triangles: beyond the axis"
    return facets.finish(canvas, "" if holds.all() else words, "Bound ÷ empirical value", note=note, below=False)


@figure("noise_scale")
def scales(noise_scale):
    """Noise scales of the Laplace and the Fourier mechanism as a graph gets denser (Zhang et al. 2016, remark 1).

    A point is Fourier's noise scale divided by Laplace's, for one graph. One colour is the scale on an
    orthonormal coefficient (the paper's comparison), the other the scale on a published count. Filled points are the
    best node, hollow points the worst. Lines join the banded graphs of ten nodes. Dotted: the paper's limit, an
    in-degree of half of the nodes. In the grey band, Fourier adds less noise. Values are exact.
    """
    long = noise_scale.melt(["graph", "nodes", "largest_in_degree", "laplace"], list(NOISE), "part", "scale")
    long = long.assign(ratio=long.scale / long.laplace, share=long.largest_in_degree / long.nodes)
    ends = long.groupby(["part", "graph", "nodes", "share"]).ratio.agg(["min", "max"]).reset_index()
    grid = facets.lines(
        ends[ends.nodes == 10], "share", "min", hue="part", names=NOISE, size=(style.NARROW + 0.8, 2.2), yscale="log"
    )
    for at, (_, rows) in enumerate((part, ends[ends.part == part]) for part in NOISE):
        look = {"color": style.COLORS[at], "linestyle": "", "marker": style.MARKERS[at], "markersize": 3.5}
        grid.ax.plot(rows.share[rows.nodes != 10], rows["min"][rows.nodes != 10], **look)
        worst = rows[rows["max"] > rows["min"] * (1 + 1e-9)]
        grid.ax.plot(worst.share, worst["max"], markerfacecolor="white", **look)
    facets.band(grid.ax, 1e-9, 1)
    grid.ax.axvline(0.5, color=style.GREY, linewidth=0.8, linestyle=":", label="The paper's limit: half of the nodes")
    grid.ax.set_ylim(ends["min"].min() / 1.5, ends["max"].max() * 1.5)
    coefficient, cell = (ends[ends.part == part] for part in NOISE)
    holds = coefficient["max"][coefficient.share <= 0.5].max() < 1 <= cell["min"].min() + 1e-9
    words = "To a published count Fourier never adds less noise; to a coefficient it does up to half of the nodes"
    less = facets.entry(marker="s", color=style.BAND, linestyle="", markersize=6, label="Fourier adds less noise")
    note, ylabel = "Lines: graphs of 10 nodes; other points: other graphs", "Noise scale, Fourier ÷ Laplace"
    handles = [facets.hollow("worst node; filled: best"), less]
    return facets.finish(grid, words if holds else "", "Largest in-degree ÷ nodes", ylabel, handles, note=note)
