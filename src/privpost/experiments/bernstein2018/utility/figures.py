"""Figure of the distance of private posteriors from the non-private one."""

import numpy as np

from privpost.drawing import facets, style
from privpost.drawing.figures import figure
from privpost.experiments.bernstein2018 import models


@figure("fig1c_mmd")
def distances(utility):
    """Distance of private posteriors from the non-private one (Bernstein and Sheldon 2018, figure 1c).

    Shown is the MMD against n, one column per model. The MMD is the root of the mean over trials of the unbiased MMD²,
    or 0 if this mean is negative. Bars are 95 % intervals, transformed by the root. Hollow points are not private: the
    naive method of redacted sums reads the noisy sum of all records. The noise-aware posterior computed without MCMC
    agrees with Gibbs's; it is in the table only.
    """
    table = utility[utility.method != "exact"]
    squared = facets.ends(table, "mmd2_mean", "mmd2_sem")
    low, high = (np.sqrt(np.maximum(end, 0)) for end in squared)
    table = table.assign(low=low, high=high, covered=(table.model != "exponential") | (table.method != "naive"))
    names = {**models.MODELS, "exponential": "Exponential\n(naive: not private)"}
    grid = facets.lines(
        facets.named(table, "epsilon"), "n", "mmd", ("low", "high"), col="model", solid="covered", names=names,
        share=(True, True), size=(style.WIDTH, 1.9), xscale="log", yscale="log",
    )  # fmt: skip
    private = table[table.covered]
    ratio = private[private.method == "naive"].merge(private[private.method == "gibbs"], on=["model", "epsilon", "n"])
    ratio = ratio.assign(ratio=ratio.mmd_x / ratio.mmd_y).groupby("n").ratio
    holds = len(ratio) > 1 and ratio.min().iloc[0] > 1 and abs(ratio.max().iloc[-1] - 1) < 0.1
    words = "Where both are private, noise-aware is nearer at small n, level at large n" if holds else ""
    hollow, ylabel = [facets.hollow("not private")], "MMD to the\nnon-private posterior"
    return facets.finish(grid, words, "n", ylabel, hollow, note="Bars: 95 % intervals")
