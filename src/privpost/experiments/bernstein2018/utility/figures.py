"""The figure of the study."""

import numpy as np

from privpost.drawing import panels, style
from privpost.drawing.figures import figure
from privpost.experiments.bernstein2018 import models


@figure("fig1c_mmd")
def distances(utility):
    """Distance of private posteriors from the non-private one (Bernstein and Sheldon 2018, figure 1c).

    MMD against n, one column per model: the root of the mean over trials of the unbiased MMD², 0 where that is
    negative. Bars are 95 % intervals, carried through the root. Line styles are ε of pure DP. The naive method of
    redacted sums (exponential) reads the noisy sum of all records, which no ε covers. The noise-aware posterior without
    a chain, which coincides with Gibbs's, is in the table only.
    """
    table = utility[utility.method != "exact"]
    plot = panels.panels(
        table, "n", "mmd", _ends, None, "model", ("method", "epsilon"), names=models.MODELS, bars=True,
        share=(True, True), size=(style.WIDTH, 1.9), xscale="log", yscale="log",
        ylabel="MMD to the non-private posterior",
    )  # fmt: skip
    ratio = table[table.method == "naive"].merge(table[table.method == "gibbs"], on=["model", "epsilon", "n"])
    ratio = ratio.assign(ratio=ratio.mmd_x / ratio.mmd_y).groupby("n").ratio
    holds = len(ratio) > 1 and ratio.min().iloc[0] > 1 and ratio.max().iloc[-1] < 1.1
    panels.message(plot.figure, "Noise-aware is nearer at small n, and no nearer at large n", holds)
    panels.legend(plot.figure)
    return plot.figure


def _ends(rows):
    return tuple(np.sqrt(np.maximum(end, 0)) for end in panels.interval(rows.mmd2_mean, rows.mmd2_sem))
