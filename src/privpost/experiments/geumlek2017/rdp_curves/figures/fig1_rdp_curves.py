"""RDP curves of the diffused and the concentrated posterior (Geumlek et al. 2017, figure 1)."""

import numpy as np

from privpost.drawing import multiples, style
from privpost.evaluation.rows import select

TOP = 2.0  # the paper's axis ends there
DASHES = (0, (4, 3))


def draw(tables):
    """Return the figure: one panel per mechanism, one curve per coefficient, asymptotes marked.

    Solid lines are the exact supremum over neighbouring data sets, dotted ones the paper's four pairs, which charge
    more at low orders (insets).
    """
    table = tables["rdp_curves"]
    figure, panels = multiples.grid(1, 2, 2.8, sharey=True)
    shades = multiples.shades(sorted(table.coefficient[table.method != "direct"].unique()))
    for axes, method, symbol in zip(panels[0], ("diffused", "concentrated"), "rm", strict=True):
        inset = axes.inset_axes((0.69, 0.6, 0.29, 0.34))
        inset.set_title(f"{symbol} = {max(shades):g}, low orders", fontsize=6, pad=2)
        for coefficient, shade in shades.items():
            for supremum, line in (("exact", "-"), ("paper", ":")):
                curve = select(table, method=method, coefficient=coefficient, supremum=supremum)
                curve = curve[np.isfinite(curve.epsilon)]
                asymptote = curve.asymptote.iloc[0]
                # The curve is infinite at its asymptote: it is drawn up to there.
                end = ([asymptote], [2 * TOP]) if asymptote <= table.order.max() else ([], [])
                order, epsilon = np.append(curve.order, end[0]), np.append(curve.epsilon, end[1])
                axes.plot(order, epsilon, line, color=shade)
                if coefficient == max(shades):
                    inset.plot(order, epsilon, line, color=shade)
            if asymptote <= table.order.max():
                axes.axvline(asymptote, color=shade, linewidth=0.6, linestyle=DASHES)
        inset.set(xlim=(1, 3), ylim=(0.05, 0.35))
        inset.tick_params(labelsize=6)
        axes.set(xlim=(0, table.order.max()), ylim=(0, TOP), xlabel="Order λ of the Rényi divergence")
        axes.set_title(f"{style.look(method).label} posterior, coefficient {symbol}")
        axes.set_xticks(range(0, 21, 5))
    panels[0, 0].set_ylabel("Privacy cost ε, (λ, ε)-RDP")
    kinds = [
        multiples.entry(color="#444444", label="exact supremum"),
        multiples.entry(color="#444444", linestyle=":", label="the paper's four pairs"),
        multiples.entry(color="#444444", linewidth=0.6, linestyle=DASHES, label="asymptote"),
    ]
    figure.legend(handles=[*coefficients(shades), *kinds], loc="outside right center", title="r or m", title_fontsize=7)
    return figure


def coefficients(shades) -> list:
    """Return the entries of a legend for the coefficients' colours."""
    return [
        multiples.entry(color=shade, label="1 (direct posterior)" if coefficient == 1 else f"{coefficient:g}")
        for coefficient, shade in shades.items()
    ]
