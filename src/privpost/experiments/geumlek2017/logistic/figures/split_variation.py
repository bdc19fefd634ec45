"""How much one random split adds to the standard error, on Abalone (ours)."""

from privpost.drawing import multiples, style
from privpost.evaluation.rows import select
from privpost.experiments.geumlek2017.panels import curve

METHODS = ("concentrated", "diffused", "ops")


def draw(tables):
    """Return test error against ln epsilon with one split for all draws, and with a split for each.

    Bands are one standard error of the mean: over the draws alone (solid), over draws and splits (dashed).
    """
    table = tables["logistic_splits"]
    table = table[table.metric == "test_error"]
    orders = sorted(table.order.dropna().unique())
    width = style.TWO_COLUMNS if len(orders) > 1 else style.ONE_COLUMN
    figure, panels = multiples.grid(1, len(orders), 2.4, width=width, sharey=True)
    most = int(table.n_splits.max())
    for axes, order in zip(panels[0], orders, strict=True):
        for method in METHODS:
            for n_splits, line in ((1, "-"), (most, "--")):
                rows = select(table, method=method, order=order, n_splits=n_splits)
                curve(axes, rows, method, linestyle=line, marker="")
        axes.set(title=f"Abalone, λ = {order:g}", xlabel="Privacy cost ln ε, (λ, ε)-RDP")
    panels[0, 0].set_ylabel("Test error")
    looks = (style.look(method) for method in METHODS)
    handles = [multiples.entry(color=look.color, label=look.label) for look in looks]
    handles.append(multiples.entry(color="#444444", label="one split"))
    handles.append(multiples.entry(color="#444444", linestyle="--", label=f"{most} splits"))
    note = f"Bands: ± one standard error over {most} draws (one split), over {most} splits with one draw each (dashed)"
    multiples.legend(figure, handles, title=note, title_fontsize=7)
    return figure
