"""The figure of the study."""

import numpy as np

from privpost.drawing import panels, style
from privpost.drawing.figures import figure
from privpost.evaluation.rows import select

NAMES = {"logistic": "Logistic", "probit": "Probit", "cloglog": "Complementary log-log"}


@figure("link_functions")
def links(link_functions):
    """Test error of private binary regression with two links above the logistic one's (ours, for section 4.1).

    Columns are data sets, rows methods, at one order of Rényi DP; above 0 the logistic link is better at the same cost.
    The steeper a link's loss may be, the more noise it needs. Linear below 0.01, logarithmic above. Bands are 95 %
    intervals over the draws of one split.
    """
    keys = ["dataset", "method", "order", "log_epsilon"]
    table = select(link_functions, metric="test_error")
    logistic = table[table.link == "logistic"][[*keys, "mean", "sem"]]
    table = table[table.link != "logistic"].merge(logistic, on=keys, suffixes=("", "_logistic"))
    # Links are drawn independently.
    table = table.assign(apart=table["mean"] - table.mean_logistic, error=np.hypot(table["sem"], table.sem_logistic))
    plot = panels.panels(
        table, "log_epsilon", "apart", "error", "method", "dataset", ("link",), names=NAMES, share=(True, True),
        size=(style.WIDTH if table.dataset.nunique() > 1 else style.NARROW, 1.4),
        ylabel="Test error above the logistic link's",
    )  # fmt: skip
    for axes, _, _ in plot:
        panels.decades(axes, 0.01, table.apart)
        axes.axhline(0, color="black", linewidth=0.8)
    worst = table.groupby("link").apart.min()
    panels.message(plot.figure, "No link beats the logistic one at the same ε", (worst > -0.01).all())
    panels.legend(plot.figure)
    return plot.figure
