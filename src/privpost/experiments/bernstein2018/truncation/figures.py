"""The figure of the study."""

import numpy as np

from privpost.drawing import panels, style
from privpost.drawing.figures import figure

NAMES = {
    "public": "public bounds", "true_theta": "bounds from θ (not private)",
    "multinomial": "dependent segments", "independent": "independent segments",
}  # fmt: skip


def ends(rows):
    """Return the ends of 95 % intervals of mean z², as of a χ² law scaled by it."""
    half = 1.96 * np.sqrt(2 / rows.z2_values)
    return rows.z2 * (1 - half), rows.z2 * (1 + half)


@figure("truncation")
def truncation(truncation):
    """Calibration under redaction, by bounds and by the covariance between segments (ours).

    Mean z² of the true θ in its posterior, 1 (grey: 95 % of its values) where the posterior's width is right and above
    where it is too narrow, for exponential records: one row per choice of bounds, one column per ε of pure DP; solid
    lines take the counts of segments as dependent, which they are, dashed ones as independent, as the paper does. Bars
    are 95 % intervals. Bounds from θ are private metadata, which no ε covers.
    """
    # Without a chain, or noise, there are no segments.
    table = truncation.assign(segments=truncation.segments.where(truncation.method == "gibbs"))
    table = table.drop_duplicates(["bounds", "segments", "method", "epsilon", "n"])
    plot = panels.panels(
        table, "n", "z2", ends, "bounds", "epsilon", ("method", "segments"), names=NAMES, bars=True,
        share=(True, True), size=(5.5, 1.5), ylabel="Mean z² of θ", xscale="log", yscale="log",
        yticks=(1, 1.5, 2), yticklabels=("1", "1.5", "2"),
    )  # fmt: skip
    for axes, _, _ in plot:
        axes.axhspan(*(1 + side * 1.96 * np.sqrt(2 / table.z2_values.min()) for side in (-1, 1)), color=style.BAND)
        axes.minorticks_off()
    last = table[table.n == table.n.max()].groupby("method").z2
    holds = last.min().get("gibbs", 0) > 1.08 and last.max().get("exact", 9) < 1.08
    panels.message(plot.figure, "Gibbs is too narrow at large n, the exact posterior is not", holds)
    panels.legend(plot.figure)
    return plot.figure
