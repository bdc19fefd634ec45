"""The figures of the study."""

import numpy as np

from privpost.drawing import panels, style
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


@figure("bounds")
def bounds(bounds):
    """Do the utility bounds of the mechanisms hold in simulation (Zhang et al. 2016)?

    The bound over the empirical value, a point per graph, n, ε and parameter; of corollary 3, a lower bound, the
    inverse. Left of 1 the value exceeds the bound; red points contradict the statement beyond simulation error.
    Empirical values are quantiles, means or frequencies of 10,000 releases. Ratios beyond 10⁶ lie on the edge; values
    never seen have no point.
    """
    table = bounds[bounds.statement.isin(list(STATEMENTS)) & (bounds.empirical > 0)]
    low = table.statement.isin(LOWER)
    ratio = (table.empirical / table.bound).where(low, table.bound / table.empirical).clip(1 / WIDEST, WIDEST)
    table, shown = table.assign(ratio=ratio), [name for name in STATEMENTS if name in set(table.statement)]
    canvas, ((axes,),) = panels.grid(1, 1, 0.7 + 0.36 * len(shown), width=4.6)
    axes.axvspan(1 / WIDEST / 2, 1, color="#B2182B", alpha=0.08, linewidth=0)
    axes.axvline(1, color=style.GREY, linewidth=0.8)
    for place, name in enumerate(shown):
        rows = table[table.statement == name].sort_values("ratio")
        y = place + 0.28 * np.linspace(-1, 1, len(rows))
        for holds, color, marker in ((True, "#0072B2", "o"), (False, "#B2182B", "X")):
            these = (rows.holds.astype(bool) == holds).to_numpy()
            axes.plot(rows.ratio[these], y[these], marker, color=color, markersize=2.2, markeredgewidth=0, alpha=0.8)
        holding = bounds[bounds.statement == name].holds.astype(bool)
        broken = int((~holding).sum())
        words = f"{broken} of {len(holding)} broken" if broken else f"holds in all {len(holding)}"
        axes.text(WIDEST * 3, place, words, fontsize=7, va="center", color="#B2182B" if broken else style.GREY)
    axes.set(
        xscale="log", xlim=(1 / WIDEST / 2, 2 * WIDEST), ylim=(len(shown) - 0.5, -0.5), xlabel="Bound ÷ empirical value"
    )
    axes.set_yticks(range(len(shown)), [STATEMENTS[name] for name in shown])
    axes.grid(axis="y", visible=False)
    fail = int((~table.groupby("statement").holds.min().astype(bool)).sum())
    panels.message(canvas, f"{fail} of {len(shown)} statements are broken by some setting", fail > 0)
    return canvas


@figure("noise_scale")
def scales(noise_scale):
    """Noise scales of the Laplace and the Fourier mechanism as a graph gets denser (Zhang et al. 2016, remark 1).

    Fourier's noise scale over Laplace's against the largest in-degree: one point per graph, on an orthonormal
    coefficient (the paper's comparison) and, as a range over the nodes, on a published count. Lines join the banded
    graphs of ten nodes; hollow: graphs of other sizes. In the shaded part Fourier adds less noise; dotted: the paper's
    half of the nodes. Exact values: there are no bands but that of the nodes.
    """
    canvas, ((axes,),) = panels.grid(1, 1, 2.7, width=style.NARROW + 0.6)
    axes.axhspan(1e-3, 1, color=style.look("fourier").color, alpha=0.08, linewidth=0)
    looks = {
        "fourier_coefficient": (style.look("fourier").color, "h", "per coefficient\n(the paper's comparison)"),
        "fourier_cell": ("#0072B2", "o", "per published count,\nbest to worst node"),
    }
    for column, (color, marker, label) in looks.items():
        ratio = noise_scale.assign(
            ratio=noise_scale[column] / noise_scale.laplace, share=noise_scale.largest_in_degree / noise_scale.nodes
        )
        of_graph = {"low": ("ratio", "min"), "high": ("ratio", "max"), "share": ("share", "first")}
        ends = ratio.groupby("graph").agg(**of_graph, nodes=("nodes", "first"))
        ten, other = ends[ends.nodes == 10].sort_values("share"), ends[ends.nodes != 10]
        axes.plot(ten.share, ten.low, color=color, marker=marker)
        if column == "fourier_cell":
            axes.fill_between(ten.share, ten.low, ten.high, color=color, alpha=0.15, linewidth=0)
        axes.plot(other.share, other.low, color=color, linestyle="", marker=marker, fillstyle="none")
        if len(ten):
            # In the band, if there is one, else below the line.
            above, below = ten.iloc[3 * len(ten) // 4], ten.iloc[len(ten) // 2]
            band = above.high > above.low
            at = (above.share, (above.low * above.high) ** 0.5) if band else (below.share + 0.06, below.low / 2)
            place = {"ha": "center", "va": "center"} if band else {"ha": "left", "va": "top"}
            axes.text(*at, label, color=color, fontsize=7, **place)
    axes.axvline(0.5, color=style.GREY, linewidth=0.8, linestyle=":")
    axes.set(yscale="log", xlabel="Largest in-degree ÷ nodes", ylabel="Noise scale, Fourier ÷ Laplace")
    values = noise_scale[["fourier_coefficient", "fourier_cell"]].div(noise_scale.laplace, axis=0)
    axes.set_ylim(values.min().min() / 1.5, values.max().max() * 1.5)
    words = {"fontsize": 7, "transform": axes.transAxes, "color": style.GREY, "ha": "right"}
    axes.text(0.99, 0.03, "shaded: Fourier's is less", **words)
    sparse = noise_scale.largest_in_degree <= noise_scale.nodes / 2
    holds = values.fourier_coefficient[sparse].max() < 1 <= values.fourier_cell.min() + 1e-9
    panels.message(canvas, "Less noise per coefficient, more per count", bool(holds))
    return canvas
