"""Mean squared error of linear regression against the prior's precision (Zhang et al. 2016, figure 2)."""

from __future__ import annotations

import numpy as np

from privpost.figures import multiples, style

LABELS = {
    "non_private": "Ridge regression (true posterior mean)",
    "sampler_record": "Sample of the truncated posterior",
}
# Values of b that the upper axis marks with their ε.
MARKED = (1, 20, 50, 100)


def _epsilon_axis(axes, private):
    marked = private[private.prior_precision.isin(MARKED)]
    top = axes.secondary_xaxis("top")
    top.set_xticks(marked.prior_precision, labels=[f"{epsilon:.0f}" for epsilon in marked.epsilon])
    top.minorticks_off()
    top.set_xlabel("ε (pure DP)")


def draw(tables):
    """Return the figure, one row per data set: mean squared errors (left), the private one's excess (right).

    Bands are one standard error over random splits, on the right that of the paired difference.
    """
    table = tables["linear_regression"]
    groups = list(table.groupby("dataset"))
    figure, panels = multiples.grid(len(groups), 2, 2.7 * len(groups))
    for (left, right), (dataset, rows) in zip(panels, groups, strict=True):
        for method, label in LABELS.items():
            curve = rows[rows.method == method].sort_values("prior_precision")
            style.error_band(left, curve.prior_precision, curve.mse_mean, curve.mse_sem, method=method, label=label)
        private = rows[rows.method == "sampler_record"].sort_values("prior_precision")
        style.error_band(
            right, private.prior_precision, private.excess_mean, private.excess_sem, method="sampler_record"
        )
        outside = private[private.radius < private.mean_norm].prior_precision
        for axes in (left, right):
            axes.set_xlabel("Prior precision b")
            if len(outside):
                edge = private[private.radius >= private.mean_norm].prior_precision.max()
                axes.axvspan((edge + outside.min()) / 2, outside.max(), color="#bbbbbb", alpha=0.3, linewidth=0)
            _epsilon_axis(axes, private)
        left.set_ylabel("Mean squared error, test part")
        right.set(yscale="log", ylabel="Excess of the private MSE (paired)")
        name = "1980 census, a stand-in" if rows.stand_in.any() else dataset
        left.set_title(f"Income, {name}: error")
        right.set_title(f"Income, {name}: excess")
        low, high = rows.mse_mean.min(), rows.mse_mean.max()
        left.set_ylim(low - 0.1 * (high - low), high + 0.15 * (high - low))
        left.ticklabel_format(axis="y", useOffset=False)
        if len(outside):
            right.annotate(
                "posterior mean\noutside ‖w‖ ≤ 10/√b",
                (edge, np.sqrt(private.excess_mean.min() * private.excess_mean.max())),
                ha="right",
                fontsize=6,
                color="#555555",
            )
    multiples.legend(figure, axes=panels[0, 0], ncols=2)
    return figure
