"""Calibration under redaction, by bounds and by the covariance between segments (ours)."""

import numpy as np

from privpost.drawing import multiples, style
from privpost.evaluation.rows import select

LOOKS = {
    ("public", "multinomial"): ("#009E73", "o", "-", "public bounds, dependent segments (corrected)"),
    ("public", "independent"): ("#D55E00", "s", "--", "public bounds, independent segments"),
    ("true_theta", "independent"): ("#0072B2", "D", "-.", "bounds from θ, independent segments (paper)"),
    ("true_theta", "multinomial"): ("#CC79A7", "^", ":", "bounds from θ, dependent segments"),
}


def draw(tables):
    """Return the figure: KS statistic of U against n, one panel per ε of ε-DP; exponential records.

    Curves: the Gibbs sampler; crosses: the posterior of the same normal model without a chain, in the colour of its
    bounds; black: the true posterior. Error bars reach down to what would be left of a statistic at its own 95 % limit
    1.358/√M of M trials, which differ between curves: one that reaches 0 is within its limit. Bounds from θ are private
    metadata.
    """
    table = tables["truncation"].sort_values("n")
    reference = select(table, method="non_private", variant="corrected")
    epsilons = sorted(table.epsilon.dropna().unique())
    figure, grid = multiples.grid(1, len(epsilons), 3.0, width=style.TWO_COLUMNS * 0.8, sharex=True, sharey=True)
    for axes, epsilon in zip(grid[0], epsilons, strict=True):
        for (bounds, segments), (color, marker, line, label) in LOOKS.items():
            rows = select(table, epsilon=epsilon, bounds=bounds, segments=segments)
            look = {"color": color, "marker": marker, "linestyle": line, "label": label}
            _within(axes, select(rows, method="gibbs"), look)
            cross = {"color": color, "marker": "x", "markersize": 6, "linestyle": "", "zorder": 3}
            _within(axes, select(rows, method="exact"), cross)
        _within(axes, reference, style.look("non_private").line())
        axes.set(xscale="log", xlabel="records n", title=f"ε = {epsilon:g}")
    grid[0, 0].set_ylim(bottom=0)
    grid[0, 0].set_ylabel("KS statistic of U")
    cross = multiples.entry(color="#444444", marker="x", markersize=6, linestyle="", label="the same without a chain")
    multiples.legend(figure, [cross], axes=grid[0, 0], ncols=2)
    return figure


def _within(axes, rows, look) -> None:
    if len(rows):
        below = np.minimum(rows.ks, rows.ks_limit)
        axes.errorbar(rows.n, rows.ks, yerr=[below, 0 * below], elinewidth=0.7, **look)
