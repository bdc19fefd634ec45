"""The figures of the study."""

import numpy as np

from privpost.drawing import panels, style
from privpost.drawing.figures import figure
from privpost.evaluation.rows import select

TOP = 2.0  # the paper's axis ends there


@figure("fig1_rdp_curves")
def curves(rdp_curves):
    """RDP curves of the diffused and the concentrated posterior (Geumlek et al. 2017, figure 1).

    One panel per mechanism, one curve per coefficient r or m, named at its end; dashed lines are asymptotes. Solid: the
    exact supremum over neighbouring data sets; dotted: the paper's four pairs, which charge more at low orders
    (insets). Coefficient 1 is the direct posterior. Computed, not simulated: there are no bands.
    """
    table = rdp_curves[rdp_curves.method != "direct"]
    methods, largest = panels.ordered(table.method, "method"), table.order.max()
    canvas, axes = panels.grid(1, len(methods), 2.6, sharey=True)
    shades = panels.shades(panels.ordered(table.coefficient))
    for panel, method in zip(axes[0], methods, strict=True):
        inset = panel.inset_axes((0.15, 0.58, 0.16, 0.32))
        inset.set_title("low orders", fontsize=7, pad=2)
        for coefficient, shade in shades.items():
            for supremum, line in (("exact", "-"), ("paper", ":")):
                curve = select(table, method=method, coefficient=coefficient, supremum=supremum)
                curve = curve[np.isfinite(curve.epsilon)]
                asymptote = curve.asymptote.iloc[0]
                # The curve is infinite at its asymptote: it is drawn up to there.
                end = ([asymptote], [2 * TOP]) if asymptote <= largest else ([], [])
                order, epsilon = np.append(curve.order, end[0]), np.append(curve.epsilon, end[1])
                panel.plot(order, epsilon, line, color=shade)
                if coefficient == max(shades):
                    inset.plot(order, epsilon, line, color=shade)
            if asymptote <= largest:
                panel.axvline(asymptote, color=shade, linewidth=0.6, linestyle="--")
            exact = select(table, method=method, coefficient=coefficient, supremum="exact")
            _name(panel, exact, coefficient, shade, largest, row=list(shades).index(coefficient) % 2)
        inset.set(xlim=(1, 3), ylim=(0.05, 0.35), xticks=[1, 2, 3], yticks=[0.1, 0.3])
        inset.tick_params(labelsize=6)
        panel.set(xlim=(0, largest), ylim=(0, TOP), xticks=range(0, 21, 5))
        panel.set_title(f"{style.look(method).label} posterior", pad=20)
    panels.label_x(panels.Panels(canvas, axes, [None], methods), style.AXES["order"], 70 // len(methods))
    axes[0, 0].set_ylabel("Privacy cost ε, (λ, ε)-RDP")
    exact = table[(table.supremum == "exact") & (table.coefficient < 1)]
    costs = exact.pivot_table(index=["coefficient", "order"], columns="method", values="epsilon")
    holds = {"diffused", "concentrated"} <= set(costs) and (costs.diffused <= costs.concentrated + 1e-9).all()
    panels.message(canvas, "At the same coefficient the diffused posterior costs less", bool(holds))
    kinds = [("exact supremum", "-", 1.2), ("the paper's four pairs", ":", 1.2), ("asymptote", "--", 0.6)]
    panels.legend(canvas, [panels.entry(label=label, linestyle=line, linewidth=w) for label, line, w in kinds])
    return canvas


def _name(axes, curve, coefficient: float, shade, largest: float, row: int) -> None:
    """Print a coefficient where its curve leaves the panel: at the top, or on the right."""
    curve = curve[curve.epsilon < TOP].sort_values("order")
    at, value = curve.order.iloc[-1], curve.epsilon.iloc[-1]
    words = {"fontsize": 7, "color": shade, "annotation_clip": False, "textcoords": "offset points"}
    if at < 0.97 * largest:
        # Neighbours are in two rows.
        axes.annotate(f"{coefficient:g}", (at, TOP), (0, 2 + 8 * row), ha="center", **words)
    else:
        axes.annotate(f"{coefficient:g}", (largest, value), (2, 0), va="center", **words)


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
