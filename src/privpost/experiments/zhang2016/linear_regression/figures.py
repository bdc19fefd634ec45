"""The figure of the study."""

from privpost.drawing import panels
from privpost.drawing.figures import figure


@figure("fig2_linear_regression")
def regression(linear_regression):
    """Mean squared error of linear regression against the prior's precision (Zhang et al. 2016, figure 2).

    Left: MSE of the mean of the non-private posterior, which is ridge regression, and of one sample of the truncated
    posterior, at the middle noise variance σ², which the paper does not state. Right: what the sample adds, for every
    σ². The privacy cost of pure DP, per record, is printed along the curves. The label is the income in the data set's
    public range, scaled to [0, 1]; the data set stands in for the paper's, whose axis runs from 0.0884 to 0.0892. Bands
    are 95 % intervals over random splits, on the right of the paired difference.
    """
    table = linear_regression.assign(stand_in=linear_regression.stand_in.astype(bool))
    datasets, variances = panels.ordered(table.dataset, "dataset"), panels.ordered(table.noise_variance)
    canvas, axes = panels.grid(len(datasets), 2, 0.3 + 2.2 * len(datasets))
    for (left, right), dataset in zip(axes, datasets, strict=True):
        rows = table[table.dataset == dataset]
        middle = rows[rows.noise_variance == variances[len(variances) // 2]]
        panels.curves(left, middle.assign(sem=middle.rise_sem.fillna(0)), "prior_precision", "mse_mean", "sem")
        private = rows[rows.method != "non_private"]
        looks = panels.looks(private, ("noise_variance",))
        panels.curves(right, private, "prior_precision", "excess_mean", "excess_sem", ("noise_variance",), looks)
        for (variance,), look in looks.items():
            end = private[private.noise_variance == variance].sort_values("prior_precision").iloc[-1]
            at = (end.prior_precision, end.excess_mean)
            right.annotate(
                f"ε = {end.epsilon:,.{int(end.epsilon < 10)}f}",
                at,
                (0, 4),
                textcoords="offset points",
                fontsize=7,
                color=look["color"],
                ha="right",
            )
        left.set(ylabel="MSE", title=f"{panels.named('dataset', dataset)}, σ² = {middle.noise_variance.iloc[0]:g}")
        right.set(yscale="log", ylabel="MSE above ridge regression", title=panels.named("dataset", dataset))
        right.set_ylim(top=3 * private.excess_mean.max())
        left.locator_params(axis="y", nbins=4)
        for panel in (left, right):
            panel.set(xlabel="Prior precision b")
    private = table[table.method != "non_private"]
    most = 100 * (private.excess_mean / (private.mse_mean - private.excess_mean)).max()
    panels.message(canvas, f"One private sample adds at most {most:.2g} % to the MSE", bool(0 < most < 10))
    panels.legend(canvas)
    return canvas
