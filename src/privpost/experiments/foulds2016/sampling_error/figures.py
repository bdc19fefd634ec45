"""The figure of the study."""

import numpy as np
import pandas as pd

from privpost.drawing import facets, style
from privpost.drawing.figures import figure

PARTS = {"error": "Mean |θ − p|\nof one sample", "ratio": "Its ratio to\nnon-private"}


@figure("fig2_sampling_error")
def errors(sampling_error):
    """L1 error of one posterior sample against the number of records (Foulds et al. 2016, figure 2).

    Above: the mean L1 error. Below: the ratio of this error to that of the non-private posterior on the same data. Bars
    are 95 % intervals, mostly smaller than the markers. Dotted above: the asymptotes √(2 ARE p(1−p) / (π n)), with ARE
    2 for the non-private posterior and 1 + T for OPS at temperature T. Dotted below: their ratio √((1+T)/2).
    """
    truth = sampling_error[sampling_error.method == "non_private"].set_index("n").l1_mean
    true = sampling_error.n.map(truth)
    ratio = sampling_error.assign(part="ratio", value=sampling_error.l1_mean / true)
    ratio = ratio.assign(sem=ratio.over_true_sem / true)[ratio.method != "non_private"]
    error = sampling_error.assign(part="error", value=sampling_error.l1_mean, sem=sampling_error.l1_sem)
    grid = facets.lines(
        facets.named(pd.concat([error, ratio])), "n", "value", "sem", row="part", names=PARTS, share=(True, False),
        size=(style.NARROW, 1.7), xscale="log", yscale="log",
    )  # fmt: skip
    (top, _), (bottom, _) = facets.each(grid)
    row = sampling_error[sampling_error.method == "ops"].iloc[0]
    T, n = row.temperature, np.sort(truth.index.to_numpy(float))
    for efficiency, words in ((2, "1"), (1 + T, "√((1+T)/2)")):
        asymptote = np.sqrt(2 * efficiency * row.p * (1 - row.p) / (np.pi * n))
        top.plot(n, asymptote, ":", color=style.GREY, linewidth=0.8, label="Asymptote")
        bottom.axhline(np.sqrt(efficiency / 2), linestyle=":", color=style.GREY, linewidth=0.8)
        bottom.text(1.2, np.sqrt(efficiency / 2) * 1.04, words, fontsize=7, color=style.GREY)
    top.set(ylim=(0.6 * truth.min(), 0.8), title=f"{facets.fixed(sampling_error, 'p', 'epsilon', 'a0')}, T = {T:.1f}")
    last = ratio[ratio.n == ratio.n.max()].groupby("method").value.max()
    holds = last.get("ops", 0) > 2 and last.get("laplace", 9) < 1.2
    words = "OPS stays behind, Laplace catches up" if holds else ""
    return facets.finish(grid, words, "n", note="T: temperature of OPS, whose θ is in [a₀, 1 − a₀]")
