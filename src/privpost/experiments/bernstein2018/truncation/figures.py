"""The figure of the study."""

from privpost.drawing import calibration, panels
from privpost.drawing.figures import figure

NAMES = {
    "public": "public bounds", "true_theta": "bounds from θ (not private)",
    "multinomial": "dependent segments", "independent": "independent segments",
}  # fmt: skip


@figure("truncation")
def truncation(truncation):
    """Calibration under redaction, by bounds and by the covariance between segments (ours).

    KS distance of U over the limit below which 95 % of calibrated methods lie (grey), for exponential records: one row
    per choice of bounds, one column per ε of pure DP; solid lines take the counts of segments as dependent, which they
    are, dashed ones as independent, as the paper does. Bars are 95 % intervals; their lengths differ with the number of
    trials. Bounds from θ are private metadata, which no ε covers.
    """
    table = calibration.over_limit(truncation)
    # The non-private posterior has rows of its own for each choice of segments: those with most trials are drawn.
    table = table.assign(segments=table.segments.where(table.method != "non_private")).sort_values("n_trials")
    table = table.drop_duplicates(["bounds", "segments", "method", "epsilon", "n"], keep="last")
    made = panels.panels(
        table, "n", "over", calibration.ends, "bounds", "epsilon", ("method", "segments"), names=NAMES, bars=True,
        share=(True, True), size=(5.5, 1.5), ylabel=calibration.LABEL, xscale="log",
    )  # fmt: skip
    for axes, _, _ in made:
        calibration.calibrated(axes)
    panels.legend(made.figure)
    return made.figure
