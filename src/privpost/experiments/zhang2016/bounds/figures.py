"""The figures of the study."""

import numpy as np

from privpost.drawing import facets, style
from privpost.drawing.figures import figure

STATEMENTS = {
    "proposition_1": "Proposition 1: largest\nperturbation of a count",
    "theorem_1": "Theorem 1: KL less its mean",
    "theorem_1_unsquared": "… c without its square\n(as printed)",
    "theorem_1_expectation": "Theorem 1: mean KL\nof a parameter (as printed)",
    "theorem_3": "Theorem 3: L1 error of\na Fourier marginal",
    "corollary_3": "Corollary 3: chance of\nno negative cell",
    "lemma_4": "Lemma 4: tail of the MAP\nmechanism (restored)",
    "lemma_4_printed": "… as printed",
    "corollary 4": "Corollary 4: privacy loss of\nalgorithm 3, Δ = L r",
    "corollary 4 with enumerated sensitivity": "… with the enumerated\nsensitivity",
}
LOWER = ("corollary_3",)  # bounds from below
WIDEST = 1e6
BROKEN = "#B2182B"
NOISE = {"fourier_coefficient": "per coefficient (the paper's)", "fourier_cell": "per published count"}


@figure("bounds")
def bounds(bounds):
    """Do the utility bounds of the mechanisms hold in simulation (Zhang et al. 2016)?

    The bound over the empirical value, a point per graph, n, ε (pure DP) and parameter; of corollary 3, a lower bound,
    the inverse. Left of 1 the value exceeds the bound; red points contradict the statement beyond simulation error.
    Empirical values are quantiles, means or frequencies of 10,000 releases, sorted within a row. Arrows: ratios beyond
    10⁶; values never seen have no point.
    """
    table = bounds[bounds.statement.isin(list(STATEMENTS)) & (bounds.empirical > 0)]
    ratio = (table.bound / table.empirical).pow(1 - 2 * table.statement.isin(LOWER))
    table, shown = table.assign(ratio=ratio.clip(1 / WIDEST, WIDEST)), facets.ordered(bounds.statement, "", STATEMENTS)
    shown = [name for name in shown if name in STATEMENTS]
    canvas, ((axes,),) = facets.subplots(1, 1, 0.7 + 0.36 * len(shown), width=4.6)
    axes.axvspan(1 / WIDEST / 2, 1, color=BROKEN, alpha=0.08, linewidth=0)
    axes.axvline(1, color=style.GREY, linewidth=0.8)
    for place, name in enumerate(shown):
        rows = table[table.statement == name].sort_values("ratio")
        rows = rows.assign(y=place + 0.28 * np.linspace(-1, 1, len(rows)), out=rows.ratio.isin([WIDEST, 1 / WIDEST]))
        for (holds, out), part in rows.groupby([rows.holds.astype(bool), "out"]):
            marker = ("o" if holds else "X") if not out else ">" if holds else "<"
            color, size = style.COLORS[0] if holds else BROKEN, 3.5 if out else 2.2
            axes.plot(part.ratio, part.y, marker, color=color, markersize=size, markeredgewidth=0, alpha=0.8)
        holding = bounds[bounds.statement == name].holds.astype(bool)
        broken = int((~holding).sum())
        words = f"{broken} of {len(holding)} broken" if broken else f"holds in all {len(holding)}"
        axes.text(WIDEST * 3, place, words, fontsize=7, va="center", color=BROKEN if broken else style.GREY)
    axes.set(xscale="log", xlim=(1 / WIDEST / 2, 2 * WIDEST), ylim=(len(shown) - 0.5, -0.5))
    axes.set_yticks(range(len(shown)), [STATEMENTS[name] for name in shown])
    axes.grid(axis="y", visible=False)
    fail = int((~table.groupby("statement").holds.min().astype(bool)).sum())
    words = f"{fail} of {len(shown)} statements are broken by some setting" if fail else ""
    return facets.finish(canvas, words, "Bound ÷ empirical value", below=False)


@figure("noise_scale")
def scales(noise_scale):
    """Noise scales of the Laplace and the Fourier mechanism as a graph gets denser (Zhang et al. 2016, remark 1).

    Fourier's noise scale over Laplace's against the largest in-degree, one point per graph: on an orthonormal
    coefficient (the paper's comparison) and on a published count, of the best node (filled) and of the worst
    (hollow). Lines join the banded graphs of ten nodes; dotted: the paper's half of the nodes. Below 1 (grey) Fourier
    adds less noise. Exact values.
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
    grid.ax.axvline(0.5, color=style.GREY, linewidth=0.8, linestyle=":")
    grid.ax.set_ylim(ends["min"].min() / 1.5, ends["max"].max() * 1.5)
    coefficient, cell = (ends[ends.part == part] for part in NOISE)
    holds = coefficient["max"][coefficient.share <= 0.5].max() < 1 <= cell["min"].min() + 1e-9
    words = "Fourier adds less noise per coefficient, more per count" if holds else ""
    hollow = facets.entry(marker="s", markerfacecolor="white", linestyle="", label="Hollow: worst node")
    less = facets.entry(marker="s", color=style.BAND, linestyle="", markersize=6, label="Fourier adds less noise")
    return facets.finish(grid, words, "Largest in-degree ÷ nodes", "Noise scale, Fourier ÷ Laplace", [hollow, less])
