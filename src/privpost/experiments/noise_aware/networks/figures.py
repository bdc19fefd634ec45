"""The figure of the study."""

from privpost.drawing.figures import figure
from privpost.experiments.noise_aware import score_panels


@figure("networks")
def networks(networks, networks_calibration):
    """Bayesian networks with several parents from Laplace-released counts, noise-aware against noise-naive (ours).

    One row per network, on ε of pure DP. First column: KS distance from uniform of the quantile of the true parameter,
    over the limit below which 95 % of calibrated methods lie (grey), the median over parameters, with the 95 % interval
    of one. Accuracy is the chance to predict a node from all others; it and the log-likelihood are losses against the
    non-private posterior. Bars are 95 % intervals.
    """
    table = score_panels.losses(networks, networks_calibration, ["graph"])
    return score_panels.draw(table, "graph", list(score_panels.METRICS), 1.45)
