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
