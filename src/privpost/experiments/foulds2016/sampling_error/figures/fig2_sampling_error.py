"""L1 error of one posterior sample against the number of records (Foulds et al. 2016, figure 2)."""

import numpy as np

from privpost.drawing import multiples, style

METHODS = ("non_private", "laplace", "ops")


def draw(tables):
    """Return the figure: mean L1 error (top), and its ratio to the true posterior's on the same data (bottom).

    Bands are two standard errors either side, mostly thinner than the lines; dotted: the asymptotes
    sqrt(2 ARE p(1−p) / (π n)) with ARE 2 for the true posterior and 1+T for OPS, and their ratio sqrt((1+T)/2).
    """
    table = tables["sampling_error"]
    p, temperature = table.p.iloc[0], table.temperature.max()
    truth = table[table.method == "non_private"].set_index("n").sort_index()
    n = truth.index.to_numpy(float)
    figure, ((top,), (bottom,)) = multiples.grid(2, 1, 4.2, width=style.ONE_COLUMN, sharex=True, height_ratios=(3, 2))
    for efficiency in (2, 1 + temperature):
        top.plot(n, np.sqrt(2 * efficiency * p * (1 - p) / (np.pi * n)), ":", color="#888888", linewidth=0.8)
    for efficiency, text in ((2, "1"), (1 + temperature, r"$\sqrt{(1+T)/2}$")):
        bottom.axhline(np.sqrt(efficiency / 2), linestyle=":", color="#888888", linewidth=0.8)
        bottom.text(1.2, np.sqrt(efficiency / 2) * 1.05, text, fontsize=7, color="#555555")
    for method in METHODS:
        rows = table[table.method == method].set_index("n").sort_index()
        style.error_band(top, rows.index, rows.l1_mean, 2 * rows.l1_sem, method=method)
        if method != "non_private":
            ratio, sem = rows.l1_mean / truth.l1_mean, rows.over_true_sem / truth.l1_mean
            style.error_band(bottom, rows.index, ratio, 2 * sem, method=method)
    top.set(xscale="log", yscale="log", ylabel="mean |θ − p| of one sample")
    top.set_ylim(0.6 * truth.l1_mean.min(), 0.8)
    row = table[table.method == "ops"].iloc[0]
    top.set_title(f"p = {p:g}, ε = {row.epsilon:g} (pure DP), a₀ = {row.a0:g}, T = {temperature:.1f}")
    handles, labels = top.get_legend_handles_labels()
    top.legend([*handles, top.lines[0]], [*labels, "asymptote"], loc="lower left")
    bottom.set(yscale="log", xlabel="number of records n", ylabel="ratio to true posterior")
    bottom.set_yticks([1, 2, 5, 10], labels=["1", "2", "5", "10"])
    bottom.minorticks_off()
    return figure
