"""The figure of the study."""

import numpy as np

from privpost.drawing import panels, style
from privpost.drawing.figures import figure


@figure("rounding")
def rounding(rounding):
    """Privacy and error of a rounded posterior draw against its bits (ours, beside figure 1 of Geumlek et al. 2017).

    Left: the cost of the direct posterior by order λ of Rényi DP, dashed the ideal draw's where that is finite. Middle:
    pure DP of all posteriors, colours are coefficients. Right: the root mean square error that rounding adds. Computed,
    not simulated: there are no bands.
    """
    canvas, ((left, middle, right),) = panels.grid(1, 3, 2.3)
    direct = rounding[rounding.method == "direct"].sort_values("bits")
    wide = direct.pivot(index="bits", columns="order", values="epsilon")
    left.plot(wide.index, wide, color="black")
    for ideal in direct.ideal[np.isfinite(direct.ideal)].unique():
        left.axhline(ideal, color="black", linestyle="--", linewidth=0.7)
    # Curves that end together have one name.
    ends = direct[direct.bits == direct.bits.max()].sort_values("order")
    for _, rows in ends.groupby((ends.epsilon / ends.epsilon.shift()).gt(1.2).cumsum()):
        words = ", ".join("pure DP" if np.isinf(order) else f"λ = {order:g}" for order in rows.order)
        height = np.nanmax([rows.epsilon.max(), rows.ideal.replace(np.inf, np.nan).max()])
        words = words.replace(", λ = ", ", ")
        left.annotate(words, (rows.bits.iloc[0], height), (0, 2), fontsize=7, textcoords="offset points", ha="right")
    pure = rounding[np.isinf(rounding.order)].sort_values("bits")
    shades = panels.shades(sorted(pure.coefficient.unique()))
    markers = {method: style.look(method).marker for method in panels.ordered(pure.method, "method")}
    for (method, coefficient), rows in pure.groupby(["method", "coefficient"]):
        line = {
            "color": shades[coefficient],
            "marker": markers[method],
            "linestyle": ":" if method == "concentrated" else "-",
        }
        middle.plot(rows.bits, rows.epsilon, **line)
        right.plot(rows.bits, 100 * (rows.error_ratio - 1), **line)
    left.set(title="Direct posterior", ylabel="Privacy cost ε, (λ, ε)-RDP")
    middle.set(title="All posteriors", ylabel=style.AXES["epsilon"])
    right.set(title="Price of rounding", ylabel="Added RMS error [%]")
    for axes in (left, middle, right):
        axes.set(yscale="log", xlabel="Bits after the point", xticks=sorted(rounding.bits.unique())[1::2])
    left.set_ylim(top=3 * ends.epsilon.max())
    enough = rounding[rounding.bits >= 8]
    holds = np.isfinite(enough.epsilon).all() and 100 * (enough.error_ratio.max() - 1) < 1
    panels.message(canvas, "Eight bits: a finite pure cost, and less than 1 % of error added", bool(holds))
    handles = [panels.entry(color=shade, linewidth=3, label=f"r or m = {c:g}") for c, shade in shades.items()]
    kinds = [panels.entry(marker=m, linestyle=":" if name == "concentrated" else "-", label=style.look(name).label)
             for name, m in markers.items()]  # fmt: skip
    panels.legend(canvas, [*handles, *kinds])
    return canvas
