"""RDP curves of Dirichlet-categorical posterior sampling (Geumlek et al. 2017, appendix)."""

import itertools

import numpy as np

from privpost.drawing import multiples, style
from privpost.evaluation.rows import select
from privpost.experiments.geumlek2017.rdp_curves.figures.fig1_rdp_curves import DASHES, TOP, coefficients

METHODS = "diffused", "concentrated"
RATIO = "Diffused: published bound\nover exact supremum"
LINES = {"symmetric": "-", "asymmetric": "--"}


LIMIT = 10.0  # of the bound over the supremum


def _curve(rows, top: float, last: float):
    """Points (k,), (k,) of a curve through a table's rows, up to its asymptote unless that is beyond the order `last`.

    Towards it ε grows like −ln of the distance: in u = −ln(1 − (λ − 1)/(λ* − 1)) it is smooth, and in the end a line.
    """
    from scipy.interpolate import PchipInterpolator

    reach = rows.asymptote.iloc[0] - 1
    rows = rows[np.isfinite(rows.epsilon) & (rows.order - 1 < reach * (1 - 1e-9))].sort_values("order")
    if len(rows) < 2:
        return rows.order, rows.epsilon
    u = -np.log1p(-(rows.order.to_numpy() - 1) / reach)
    fine = np.linspace(u[0], u[-1], 400)
    epsilon = PchipInterpolator(u, rows.epsilon)(fine)
    if (slope := (epsilon[-1] - epsilon[-2]) / (fine[-1] - fine[-2])) > 0 and epsilon[-1] < top and reach + 1 <= last:
        beyond = np.linspace(0, (top - epsilon[-1]) / slope, 50)
        fine, epsilon = np.append(fine, fine[-1] + beyond), np.append(epsilon, epsilon[-1] + slope * beyond)
    return 1 - reach * np.expm1(-fine), epsilon


def draw(tables):
    """Return the figure: columns are numbers of categories, one colour per coefficient.

    Two rows of exact suprema, solid for the symmetric prior and dashed for the asymmetric one, with the asymptotes as
    thin lines; below them how much more a published bound charges for the diffused mechanism.
    """
    table = tables["dirichlet"]
    table = table[table.supremum == "exact"]
    sizes = sorted(table.categories.unique())
    shades = multiples.shades(sorted(table.coefficient.unique()))
    figure, panels = multiples.grid(3, len(sizes), 6.0, sharex=True, sharey="row")
    for axes, method, place in multiples.cells(panels[:2], METHODS, range(len(sizes))):
        for (coefficient, shade), (prior, line) in itertools.product(shades.items(), LINES.items()):
            rows = select(table, method=method, categories=sizes[place], coefficient=coefficient, prior=prior)
            if method == "diffused":
                kept = rows.dropna(subset="bound_ratio")
                panels[2, place].plot(kept.order, kept.bound_ratio, line, color=shade)
            axes.plot(*_curve(rows, 1.5 * TOP, table.order.max()), line, color=shade)
            if (asymptote := rows.asymptote.iloc[0]) <= table.order.max():
                axes.axvline(asymptote, color=shade, linewidth=0.5, linestyle=DASHES if prior == "symmetric" else ":")
        axes.set(xlim=(0, table.order.max()), ylim=(0, TOP))
        axes.set_xticks(range(0, 21, 5))
    labels = [*(f"{style.look(name).label}: ε, (λ, ε)-RDP" for name in METHODS), RATIO]
    multiples.label_outer(panels, "Order λ of the Rényi divergence", labels, [f"{size} categories" for size in sizes])
    panels[2, 0].set(ylim=(1, LIMIT), yscale="log", yticks=(1, 2, 5, 10), yticklabels=("1", "2", "5", "10"))
    lines = [{"linestyle": line, "label": f"{prior} prior"} for prior, line in LINES.items()]
    for prior, line in (("symmetric", DASHES), ("asymmetric", ":")):
        lines.append({"linewidth": 0.5, "linestyle": line, "label": f"asymptote ({prior})"})
    handles = [*coefficients(shades), *(multiples.entry(color="#444444", **line) for line in lines)]
    multiples.legend(figure, handles, ncols=5, title="coefficient r or m", title_fontsize=7)
    return figure
