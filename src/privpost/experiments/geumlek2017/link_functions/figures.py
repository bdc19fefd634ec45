"""The figure of the study."""

from privpost.drawing import panels, style
from privpost.drawing.figures import figure
from privpost.evaluation.rows import select

NAMES = {"logistic": "Logistic", "probit": "Probit", "cloglog": "Complementary log-log"}


@figure("link_functions")
def links(link_functions):
    """Test error of private binary regression with three links against the budget (ours, for section 4.1's models).

    Columns are data sets, rows methods, at one order of Rényi DP; the steeper a link's loss may be, the more noise it
    needs. Bands are 95 % intervals over the draws of one split.
    """
    table = select(link_functions, metric="test_error")
    made = panels.panels(
        table, "log_epsilon", "mean", "sem", "method", "dataset", ("link",), names=NAMES, share=(True, True),
        size=(style.WIDTH if table.dataset.nunique() > 1 else style.NARROW, 1.5), yscale="log", ylabel="Test error",
    )  # fmt: skip
    panels.legend(made.figure)
    return made.figure
