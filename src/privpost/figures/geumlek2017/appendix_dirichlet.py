"""RDP curves of Dirichlet-categorical posterior sampling (Geumlek et al. 2017, appendix)."""

from __future__ import annotations

import numpy as np

from privpost.figures import multiples, style
from privpost.figures.geumlek2017.fig1_rdp_curves import DASHES, TOP

LINES = {"symmetric": "-", "asymmetric": "--"}


def draw(tables):
    """Return the figure: columns are numbers of categories, rows mechanisms, one colour per coefficient.

    Exact suprema only; solid for the symmetric prior, dashed for the asymmetric one, asymptotes as thin lines.
    """
    import matplotlib.pyplot as plt

    table = tables["dirichlet"]
    table = table[table.supremum == "exact"]
    sizes = sorted(table.categories.unique())
    coefficients = sorted(table.coefficient.unique())
    shades = plt.get_cmap("viridis")(np.linspace(0, 0.85, len(coefficients)))
    figure, panels = multiples.grid(2, len(sizes), 4.2, sharex=True, sharey=True)
    for row, method in zip(panels, ("diffused", "concentrated"), strict=True):
        for axes, size in zip(row, sizes, strict=True):
            for coefficient, shade in zip(coefficients, shades, strict=True):
                for prior, line in LINES.items():
                    rows = table[
                        (table.method == method)
                        & (table.categories == size)
                        & (table.coefficient == coefficient)
                        & (table.prior == prior)
                    ]
                    asymptote = rows.asymptote.iloc[0]
                    curve = rows[np.isfinite(rows.epsilon)]
                    # The curve is infinite at its asymptote: it is drawn up to there.
                    end = ([asymptote], [2 * TOP]) if asymptote <= table.order.max() else ([], [])
                    axes.plot(np.append(curve.order, end[0]), np.append(curve.epsilon, end[1]), line, color=shade)
                    if prior == "symmetric" and asymptote <= table.order.max():
                        axes.axvline(asymptote, color=shade, linewidth=0.5, linestyle=DASHES)
            axes.set(xlim=(0, table.order.max()), ylim=(0, TOP))
            axes.set_xticks(range(0, 21, 5))
        row[0].set_ylabel(f"{style.look(method).label}: ε, (λ, ε)-RDP")
    for axes, size in zip(panels[0], sizes, strict=True):
        axes.set_title(f"{size} categories")
    for axes in panels[1]:
        axes.set_xlabel("Order λ of the Rényi divergence")
    handles = [
        multiples.entry(color=shade, label="1 (direct posterior)" if coefficient == 1 else f"{coefficient:g}")
        for coefficient, shade in zip(coefficients, shades, strict=True)
    ]
    handles += [
        multiples.entry(color="#444444", linestyle=line, label=f"{prior} prior") for prior, line in LINES.items()
    ]
    handles.append(multiples.entry(color="#444444", linewidth=0.5, linestyle=DASHES, label="asymptote (symmetric)"))
    multiples.legend(figure, handles, ncols=5, title="coefficient r or m", title_fontsize=7)
    return figure
