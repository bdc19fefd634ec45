"""Mean squared error of linear regression against the prior's precision (Zhang et al. 2016, figure 2)."""

from privpost.drawing import multiples, style
from privpost.evaluation.rows import select

# From the lowest to the highest tick of the paper's figure, relative to the lowest.
AXIS = (0.0892 - 0.0884) / 0.0884

LABELS = {
    "non_private": "Ridge regression (true posterior mean)",
    "sampler_record": "Sample of the truncated posterior",
}
# Values of b that the upper axis marks with their ε.
MARKED = (1, 20, 50, 100)


def _epsilon_axis(axes, private):
    marked = private[private.prior_precision.isin(MARKED)]
    top = axes.secondary_xaxis("top")
    labels = [f"{epsilon:.0f}" if epsilon >= 10 else f"{epsilon:.2g}" for epsilon in marked.epsilon]
    top.set_xticks(marked.prior_precision, labels=labels, fontsize=6)
    top.minorticks_off()
    top.set_xlabel("ε (pure DP, per record)", fontsize=7)


def draw(tables):
    """Return the figure: squared errors over that of ridge regression at the weakest prior; one column per σ².

    The label is the income in the data set's public range, scaled to [0, 1]: in the stand-in, the husband's income of
    mothers aged 21 to 35 with two children or more, up to 157,438 dollars of 1995. σ² is the noise variance that the
    paper does not state. The grey band is as high as the paper's axis, .0884 to .0892. Below, what the private
    regression adds. Bands are one standard error over random splits, below of the paired difference.
    """
    table = tables["linear_regression"]
    datasets, variances = list(dict.fromkeys(table.dataset)), sorted(table.noise_variance.unique())
    figure, panels = multiples.grid(2 * len(datasets), len(variances), 4.6 * len(datasets), sharey="row")
    for place, dataset in enumerate(datasets):
        for column, variance in enumerate(variances):
            rows = select(table, dataset=dataset, noise_variance=variance)
            _draw(*panels[2 * place : 2 * place + 2, column], rows.sort_values("prior_precision"))
        first = table[table.dataset == dataset].iloc[0]
        name = "1980 census (stand-in)" if first.stand_in else dataset
        panels[2 * place, 0].set_ylabel(f"{name}\nMSE / ridge MSE at b = 1, less 1 [%]")
        panels[2 * place + 1, 0].set_ylabel("Private less ridge MSE\n[income range squared]")
    multiples.legend(figure, axes=panels[0, 0], ncols=2)
    return figure


def _draw(upper, lower, rows):
    private = rows[rows.method == "sampler_record"]
    base = rows[rows.method == "non_private"].mse_mean.iloc[0]
    upper.axhspan(0, 100 * AXIS, color="#bbbbbb", alpha=0.3, linewidth=0)
    upper.annotate("height of the paper's axis", (100, 70 * AXIS), fontsize=6, color="#444444", ha="right")
    for method, label in LABELS.items():
        curve = select(rows, method=method)
        error = 100 * (curve.mse_mean / base - 1)
        sem = 100 * curve[["rise_sem", "excess_sem"]].fillna(0).max(axis=1) / base
        style.error_band(upper, curve.prior_precision, error, sem, method=method, label=label)
    style.error_band(lower, private.prior_precision, private.excess_mean, private.excess_sem, method="sampler_record")
    lower.set(yscale="log", xlabel="Prior precision b")
    _epsilon_axis(upper, private)
    variance = rows.noise_variance.iloc[0]
    upper.set_title(f"Noise variance σ² = {variance:g}")
    upper.annotate(f"ridge MSE at b = 1: {base:.4f}", (0.03, 0.93), xycoords="axes fraction", fontsize=6.5, va="top")
