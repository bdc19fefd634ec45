"""Test error of private binary regression with three links against the budget (ours, for section 4.1's models)."""

from privpost.drawing import multiples, style
from privpost.evaluation.rows import select
from privpost.experiments.geumlek2017.panels import TITLES

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
    size = len(methods), len(datasets), 0.9 + 1.8 * len(methods)
    figure, panels = multiples.grid(*size, width=width, sharex=True, sharey="col")
    for axes, method, dataset in multiples.cells(panels, methods, datasets):
        here = select(table, method=method, dataset=dataset).sort_values("log_epsilon")
        for link, rows in here.groupby("link"):
            look = {"color": COLORS[link], "marker": MARKERS[link], "linestyle": "-", "markersize": 3}
            look["label"] = f"{LABELS[link]}, B = {rows.slope_bound.iloc[0]:.3g}"
            style.error_band(axes, rows.log_epsilon, rows["mean"], rows["sem"], method=link, **look)
        axes.set_title(f"{TITLES[dataset]}, {method}")
    order = table.order.iloc[0]
    multiples.label_outer(panels, f"Privacy cost ln ε, (λ = {order:g}, ε)-RDP", "Test error")
    note = f"Bands: ± one standard error over {table.n_repeats.min()} draws on one split; B bounds the loss's slope"
    multiples.legend(figure, axes=panels[0, 0], ncols=3, title=note, title_fontsize=7)
    return figure
