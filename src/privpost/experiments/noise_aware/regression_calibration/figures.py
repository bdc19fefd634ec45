"""The figure of the study."""

from privpost.drawing import calibration, panels, style
from privpost.drawing.figures import figure


@figure("regression_calibration")
def calibrated(regression_calibration):
    """Calibration of the posterior of a regression's weight from noisy second moments (ours).

    KS distance from uniform of the true weight's quantile, over the limit below which 95 % of calibrated methods lie
    (grey), on ε of pure DP. Noise-naive: the moments are taken for the data's. Gibbs with normal proposals is the
    paper's (Bernstein and Sheldon 2019). Bars are 95 % intervals.
    """
    table = calibration.over_limit(regression_calibration)
    plot = panels.panels(
        table, "epsilon", "over", calibration.ends, columns="n", bars=True, xscale="log",
        ylabel=calibration.LABEL, size=(style.WIDTH, 1.9),
    )  # fmt: skip
    for axes, _, _ in plot:
        calibration.calibrated(axes)
    calibration.message(plot.figure, table)
    panels.legend(plot.figure)
    return plot.figure
