"""The figure of the study."""

import numpy as np

from privpost.drawing import panels, style
from privpost.drawing.figures import figure


@figure("fig2_sampling_error")
def errors(sampling_error):
    """L1 error of one posterior sample against the number of records (Foulds et al. 2016, figure 2).

    Above, the mean L1 error; below, its ratio to that of the non-private posterior on the same data. Bands are 95 %
    intervals, mostly thinner than the lines. Dotted: the asymptotes √(2 ARE p(1−p) / (π n)), with ARE 2 for the
    non-private posterior and 1 + T for OPS, and their ratio √((1+T)/2).
    """
    table, T = sampling_error, sampling_error.temperature.max()
    truth = table[table.method == "non_private"].set_index("n").l1_mean
    true = table.n.map(truth)
    ratio = table.assign(ratio=table.l1_mean / true, sem=table.over_true_sem / true)
    canvas, ((top,), (bottom,)) = panels.grid(2, 1, 4.0, width=style.NARROW, sharex=True, height_ratios=(3, 2))
    panels.curves(top, table, "n", "l1_mean", "l1_sem")
    panels.curves(bottom, ratio[ratio.method != "non_private"], "n", "ratio", "sem")
    row = table[table.method == "ops"].iloc[0]
    n = np.sort(truth.index.to_numpy(float))
    for efficiency, words in ((2, "1"), (1 + T, "√((1+T)/2)")):
        asymptote = np.sqrt(2 * efficiency * row.p * (1 - row.p) / (np.pi * n))
        top.plot(n, asymptote, ":", color=style.GREY, linewidth=0.8, label="Asymptote")
        bottom.axhline(np.sqrt(efficiency / 2), linestyle=":", color=style.GREY, linewidth=0.8)
        bottom.text(1.2, np.sqrt(efficiency / 2) * 1.04, words, fontsize=7, color=style.GREY)
    top.set(xscale="log", yscale="log", ylim=(0.6 * truth.min(), 0.8), ylabel="Mean |θ − p| of one sample")
    top.set_title(f"p = {row.p:g}, ε = {row.epsilon:g} (pure DP), a₀ = {row.a0:g}, T = {T:.1f}")
    bottom.set(yscale="log", xlabel=style.AXES["n"], ylabel="÷ non-private")
    last = ratio[ratio.n == ratio.n.max()].groupby("method").ratio.max()
    panels.message(
        canvas, "OPS stays behind, Laplace catches up", last.get("ops", 0) > 2 and last.get("laplace", 9) < 1.2
    )
    panels.legend(canvas)
    return canvas
