"""Figure of RDP curves of the diffused and the concentrated posterior."""

import numpy as np

from privpost.drawing import facets, style
from privpost.drawing.figures import figure
from privpost.evaluation.rows import select

TOP = 2.0  # end of the paper's axis


@figure("fig1_rdp_curves")
def curves(rdp_curves):
    """RDP curves of the diffused and the concentrated posterior (Geumlek et al. 2017, figure 1).

    Each panel shows one mechanism. Each curve has one coefficient (r if diffused, m if concentrated), which is printed
    at the curve's end. Coefficient 1 is the direct posterior. Dashed lines are asymptotes. Curves are exact suprema
    over neighbouring data sets; the paper's four pairs, in the table, charge more at low orders. The values are
    computed, not simulated, so there are no bars.
    """
    table = rdp_curves[rdp_curves.method != "direct"]
    methods, largest = facets.ordered(table.method, "method"), table.order.max()
    canvas, axes = facets.subplots(1, len(methods), 2.6, sharey=True)
    shades = facets.shades(facets.ordered(table.coefficient))
    names = {"diffused": "coefficient r", "concentrated": "coefficient m"}
    for panel, method in zip(axes[0], methods, strict=True):
        for coefficient, shade in shades.items():
            exact = select(table, method=method, coefficient=coefficient, supremum="exact")
            curve = exact[np.isfinite(exact.epsilon)].sort_values("order")
            asymptote = curve.asymptote.iloc[0]
            # The curve rises to infinity at its asymptote, and is drawn up to there.
            end = ([asymptote], [2 * TOP]) if asymptote <= largest else ([], [])
            panel.plot(np.append(curve.order, end[0]), np.append(curve.epsilon, end[1]), color=shade)
            if asymptote <= largest:
                panel.axvline(asymptote, color=shade, linewidth=0.6, linestyle="--")
            _name(panel, exact, coefficient, shade, largest, row=list(shades).index(coefficient) % 2)
        panel.set(xlim=(0, largest), ylim=(0, TOP), xticks=range(0, 21, 5))
        panel.set_title(f"{style.look(method).label}\n{names.get(method, 'coefficient')} at each curve", pad=20)
    exact = table[(table.supremum == "exact") & (table.coefficient < 1)]
    costs = exact.pivot_table(index=["coefficient", "order"], columns="method", values="epsilon")
    holds = {"diffused", "concentrated"} <= set(costs) and (costs.diffused <= costs.concentrated + 1e-9).all()
    answer = "At the same coefficient below 1 the diffused posterior costs less" if holds else ""
    asymptote = facets.entry(label="Asymptote", linestyle="--", linewidth=0.6)
    return facets.finish(
        canvas, answer, "order", "Privacy cost ε, (λ, ε)-RDP", [asymptote], note="Beta-Bernoulli model"
    )


def _name(axes, curve, coefficient: float, shade, largest: float, row: int) -> None:
    """Print a coefficient where its curve leaves the panel."""
    curve = curve[curve.epsilon < TOP].sort_values("order")
    at, value = curve.order.iloc[-1], curve.epsilon.iloc[-1]
    words = {"fontsize": 7, "color": shade, "annotation_clip": False, "textcoords": "offset points"}
    if at < 0.97 * largest:
        # Adjacent names alternate between two rows.
        axes.annotate(f"{coefficient:g}", (at, TOP), (0, 2 + 8 * row), ha="center", **words)
    else:
        axes.annotate(f"{coefficient:g}", (largest, value), (2, 0), va="center", **words)
