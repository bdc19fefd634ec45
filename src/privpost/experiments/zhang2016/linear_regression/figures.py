"""The figure of the study."""

from privpost.drawing import facets, style
from privpost.drawing.figures import figure


@figure("fig2_linear_regression")
def regression(linear_regression):
    """What a private sample costs linear regression, against the prior's precision (Zhang et al. 2016, figure 2).

    The mean squared error of one sample of the truncated posterior, in per cent above that of ridge regression (the
    mean of the non-private posterior). The paper does not state the noise variance σ², so each curve has one value. The
    ε of a record falls as σ² grows, and along each curve. The data set is a stand-in. The axis of the paper's figure
    runs from 0.0884 to 0.0892. Bars are 95 % intervals of the paired difference over random splits.
    """
    private = linear_regression[linear_regression.method != "non_private"]
    ridge = (private.mse_mean - private.excess_mean) / 100
    table = private.assign(excess=private.excess_mean / ridge, sem=private.excess_sem / ridge)
    cost = private.groupby("noise_variance").epsilon.agg(["min", "max"]).map("{:,.0f}".format).agg(" to ".join, axis=1)
    names = {value: f"σ² = {value:g}, ε from {epsilons} (pure DP)" for value, epsilons in cost.items()}
    grid = facets.lines(
        table, "prior_precision", "excess", "sem", col="dataset", hue="noise_variance", names=names,
        size=(style.NARROW + 1, 1.9), yscale="log",
    )  # fmt: skip
    most = table.groupby("noise_variance").excess.max()
    parts = [f"{most[value]:.3g} % at ε of {cost[value]}" for value in (most.idxmax(), most.idxmin())]
    words = "One private sample adds to the error at most " + " and ".join(parts) if 0 < most.max() < 10 else ""
    return facets.finish(grid, words, "Precision b of the prior", "Error above that of\nridge regression [%]")
