"""Figure of RDP curves of Dirichlet-categorical posterior sampling."""

import numpy as np
import pandas as pd

from privpost.drawing import facets, style
from privpost.drawing.figures import figure


@figure("appendix_dirichlet")
def curves(dirichlet):
    """RDP curves of Dirichlet-categorical posterior sampling (Geumlek et al. 2017, appendix).

    Each curve is an exact supremum over neighbouring data sets at one coefficient r or m. Columns are numbers of
    categories. A curve ends at its asymptote (dashed), where the cost becomes infinite. The last row shows how much
    more a published bound charges for the diffused mechanism. The values are computed, not simulated, so there are no
    bars. Other coefficients and the asymmetric prior are in the table.
    """
    table = dirichlet[(dirichlet.supremum == "exact") & (dirichlet.method != "direct")]
    holds = table.bound_ratio.min() >= 1
    keys = ["categories", "prior", "coefficient"]
    growing = table.sort_values("order").groupby(keys).bound_ratio.apply(lambda r: r.dropna().is_monotonic_increasing)
    coefficients = facets.ordered(table.coefficient)
    table = table[table.coefficient.isin([coefficients[0], coefficients[len(coefficients) // 2], coefficients[-1]])]
    table = table[(table.prior == "symmetric") & (table.order < table.asymptote)].replace(np.inf, np.nan)
    cost = table.assign(part=[f"{style.look(name).label}:\ncost ε" for name in table.method], value=table.epsilon)
    bound = table[table.bound_ratio.notna()].assign(part="Diffused: bound\n÷ exact cost", value=table.bound_ratio)
    names = {value: f"r or m = {value:g}" for value in facets.ordered(table.coefficient)}
    names |= {number: f"{number} categories" for number in facets.ordered(table.categories)}
    grid = facets.lines(
        pd.concat([cost, bound]), "order", "value", row="part", col="categories", hue="coefficient", markers=False,
        names=names, size=(style.WIDTH, 1.3), xscale="log", yscale="log",
    )  # fmt: skip
    for axes, rows in facets.each(grid):
        axes.set_ylim((0.9, 30) if "bound" in rows.part.iloc[0] else (1e-3, 10))
        for asymptote in rows.asymptote[rows.asymptote < rows.order.max() * 1.1].unique():
            axes.axvline(asymptote, color=style.GREY, linewidth=0.6, linestyle="--", label="Asymptote")
    answer = "The published bound overcharges diffused samples, the more the nearer to the asymptote"
    return facets.finish(grid, answer if holds and growing.all() else "", "order", note="ε: that of (λ, ε)-RDP")
