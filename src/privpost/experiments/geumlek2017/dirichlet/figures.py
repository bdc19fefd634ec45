"""The figure of the study."""

import numpy as np

from privpost.drawing import panels, style
from privpost.drawing.figures import figure


@figure("appendix_dirichlet")
def curves(dirichlet):
    """RDP curves of Dirichlet-categorical posterior sampling (Geumlek et al. 2017, appendix).

    Exact suprema over neighbouring data sets, columns are numbers of categories, one colour per coefficient r or m
    (others are in the table), solid for the symmetric prior and dashed for the asymmetric one. The horizontal axis is
    the order as a share of the way from 1 to the asymptote λ*, where the cost becomes infinite. Bottom: how much more a
    published bound charges for the diffused mechanism. Computed, not simulated: there are no bands.
    """
    table = dirichlet[(dirichlet.supremum == "exact") & (dirichlet.method != "direct")]
    table = table.assign(share=(table.order - 1) / (table.asymptote - 1), epsilon=table.epsilon.replace(np.inf, np.nan))
    table = table[table["share"] < 1].sort_values("order")
    coefficients = panels.ordered(table.coefficient)
    table = table[table.coefficient.isin([coefficients[0], coefficients[len(coefficients) // 2], coefficients[-1]])]
    methods, sizes = panels.ordered(table.method, "method"), panels.ordered(table.categories)
    figure, axes = panels.grid(len(methods) + 1, len(sizes), 4.6, sharex=True, sharey="row")
    looks = panels.looks(table, ("coefficient", "prior"), names={"symmetric": "", "asymmetric": ""})
    looks = {key: {**look, "marker": "", "label": None} for key, look in looks.items()}
    for panel, row, size in panels.Panels(figure, axes, [*methods, "bound"], sizes):
        rows = panels.rows_of(table, "categories", size)
        rows = panels.rows_of(rows, "method", "diffused" if row == "bound" else row)
        y = "bound_ratio" if row == "bound" else "epsilon"
        panels.curves(panel, rows, "share", y, None, ("coefficient", "prior"), looks)
        panel.set(xlim=(0, 1), xticks=[0, 0.5, 1], yscale="log", ylim=(1, 30) if row == "bound" else (1e-3, 10))
        if row == methods[0]:
            panel.set_title(f"{size} categories")
        if size == sizes[0]:
            panel.set_ylabel(
                "Published bound\n÷ supremum" if row == "bound" else f"{style.look(row).label}:\nε, (λ, ε)-RDP"
            )
    curves = table[table.method == "diffused"].groupby(["categories", "prior", "coefficient"]).bound_ratio
    holds = table.bound_ratio.min() >= 1 and curves.apply(lambda ratio: ratio.dropna().is_monotonic_increasing).all()
    panels.message(figure, "The published bound overcharges, the more the nearer to λ*", bool(holds))
    figure.supxlabel("(λ − 1) / (λ* − 1)", fontsize=8)
    shades = {key[0]: look["color"] for key, look in looks.items()}
    handles = [panels.entry(color=shade, linewidth=3, label=f"r or m = {c:g}") for c, shade in shades.items()]
    priors = [
        panels.entry(linestyle=line, label=f"{name} prior") for name, line in (("symmetric", "-"), ("asymmetric", "--"))
    ]
    panels.legend(figure, [*handles, *priors])
    return figure
