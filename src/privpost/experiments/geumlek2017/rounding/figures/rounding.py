"""Privacy and error of a rounded posterior draw against its bits (ours, beside figure 1 of Geumlek et al. 2017)."""

import numpy as np

from privpost.drawing import multiples


def draw(tables):
    """Return the figure: cost of the direct posterior by order, ε-DP of all posteriors, and error, against bits.

    Dashed lines are the ideal draw's cost, where that is finite.
    """
    table = tables["rounding"]
    figure, grid = multiples.grid(1, 3, 2.6)
    panels = grid[0]
    direct = table[table.method == "direct"]
    for order, shade in multiples.shades(sorted(direct.order.unique())).items():
        rows = direct[direct.order == order].sort_values("bits")
        label = "∞ (ε-DP)" if np.isinf(order) else f"{order:g}"
        panels[0].plot(rows.bits, rows.epsilon, "o-", color=shade, label=label, markersize=2.5)
        if np.isfinite(rows.ideal.iloc[0]):
            panels[0].axhline(rows.ideal.iloc[0], color=shade, linestyle=(0, (4, 3)), linewidth=0.7)
    panels[0].set(yscale="log", ylim=(2e-3, 30), ylabel="Privacy cost ε, (λ, ε)-RDP", title="Direct posterior")
    panels[0].legend(title="order λ", fontsize=6, title_fontsize=6, ncol=2, loc="lower right")
    pure = table[np.isinf(table.order)]
    shades = multiples.shades(sorted(pure.coefficient.unique()))
    for (method, coefficient), rows in pure.sort_values("bits").groupby(["method", "coefficient"]):
        line = {"linestyle": ":", "marker": "s"} if method == "concentrated" else {"linestyle": "-", "marker": "o"}
        line |= {"color": shades[coefficient], "markersize": 2.5}
        panels[1].plot(rows.bits, rows.epsilon, **line)
        panels[2].plot(rows.bits, 100 * (rows.error_ratio - 1), **line)
    panels[1].set(yscale="log", ylim=(5e-3, 30), ylabel="Privacy cost ε, ε-DP", title="All posteriors")
    panels[2].set(yscale="log", ylabel="Added RMS error, %", title="Price of rounding")
    handles = [
        multiples.entry(color=shade, label="1 (direct)" if coefficient == 1 else f"{coefficient:g}")
        for coefficient, shade in shades.items()
    ]
    kinds = [
        multiples.entry(color="#444444", marker="o", markersize=2.5, label="diffused, r"),
        multiples.entry(color="#444444", linestyle=":", marker="s", markersize=2.5, label="concentrated, m"),
    ]
    panels[1].legend(handles=[*handles, *kinds], fontsize=6, loc="lower right", ncol=2)
    for axes in panels:
        axes.set(xlabel="Bits after the binary point")
        axes.set_xticks(sorted(table.bits.unique()))
    return figure
