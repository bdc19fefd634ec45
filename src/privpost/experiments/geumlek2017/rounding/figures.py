"""The figure of the study."""

import numpy as np

from privpost.drawing import panels, style
from privpost.drawing.figures import figure


@figure("rounding")
def rounding(rounding):
    """Privacy and error of a rounded posterior draw against its bits (ours, beside figure 1 of Geumlek et al. 2017).

    Left: the cost of the direct posterior by order of Rényi DP, dashed the ideal draw's where that is finite. Middle:
    pure DP of all posteriors, colours are coefficients. Right: the root mean square error that rounding adds. Computed,
    not simulated: there are no bands.
    """
    made, ((left, middle, right),) = panels.grid(1, 3, 2.3)
    direct = rounding[rounding.method == "direct"].sort_values("bits")
    for order, shade in panels.shades(sorted(direct.order.unique())).items():
        rows = direct[direct.order == order]
        left.plot(rows.bits, rows.epsilon, color=shade)
        words = "pure DP" if np.isinf(order) else f"λ = {order:g}"
        if np.isfinite(rows.ideal.iloc[0]):
            left.axhline(rows.ideal.iloc[0], color=shade, linestyle="--", linewidth=0.7)
        if order in (direct.order.min(), direct.order.max()):
            at, shift = (rows.bits.iloc[-1], rows.epsilon.iloc[-1]), (0, 4 if order == direct.order.min() else -9)
            left.annotate(words, at, shift, fontsize=7, color=shade, textcoords="offset points", ha="right")
    pure = rounding[np.isinf(rounding.order)].sort_values("bits")
    shades = panels.shades(sorted(pure.coefficient.unique()))
    markers = dict(zip(panels.ordered(pure.method, "method"), ("h", "o", "s", "^", "v"), strict=False))
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
    handles = [panels.entry(color=shade, linewidth=3, label=f"r or m = {c:g}") for c, shade in shades.items()]
    kinds = [panels.entry(marker=m, linestyle=":" if name == "concentrated" else "-", label=style.look(name).label)
             for name, m in markers.items()]  # fmt: skip
    panels.legend(made, [*handles, *kinds])
    return made
