"""Test error of private binary regression with three links against the budget (ours, for section 4.1's models)."""

from __future__ import annotations

from privpost.figures import multiples, style
from privpost.figures.geumlek2017.panels import TITLES

LABELS = {"logistic": "Logistic", "probit": "Probit", "cloglog": "Complementary log-log"}
COLORS = {"logistic": "#0072B2", "probit": "#D55E00", "cloglog": "#117733"}
MARKERS = {"logistic": "o", "probit": "s", "cloglog": "^"}


def draw(tables):
    """Return the figure: columns are data sets, rows algorithms; bands are one standard error of the draws."""
    table = tables["link_functions"]
    table = table[table.metric == "test_error"]
    datasets = [name for name in TITLES if name in set(table.dataset)]
    methods = [name for name in ("diffused", "concentrated") if name in set(table.method)]
    width = style.TWO_COLUMNS if len(datasets) > 1 else style.ONE_COLUMN
    figure, panels = multiples.grid(
        len(methods), len(datasets), 0.9 + 1.8 * len(methods), width=width, sharex=True, sharey="col"
    )
    for i, method in enumerate(methods):
        for j, dataset in enumerate(datasets):
            here = table[(table.method == method) & (table.dataset == dataset)]
            for link, rows in here.sort_values("log_epsilon").groupby("link"):
                label = f"{LABELS[link]}, B = {rows.slope_bound.iloc[0]:.3g}"
                look = {"color": COLORS[link], "label": label}
                panels[i, j].plot(rows.log_epsilon, rows["mean"], marker=MARKERS[link], markersize=3, **look)
                low, high = rows["mean"] - rows["sem"], rows["mean"] + rows["sem"]
                panels[i, j].fill_between(rows.log_epsilon, low, high, color=COLORS[link], alpha=0.2, linewidth=0)
            panels[i, j].set_title(f"{TITLES[dataset]}, {method}")
    order = table.order.iloc[0]
    multiples.label_outer(panels, f"Privacy cost ln ε, (λ = {order:g}, ε)-RDP", "Test error")
    note = f"Bands: ± one standard error over {table.n_repeats.min()} draws on one split; B bounds the loss's slope"
    multiples.legend(figure, axes=panels[0, 0], ncols=3, title=note, title_fontsize=7)
    return figure
