"""Share of stealthy Fourier releases against the increment t (Zhang et al. 2016, corollary 3)."""

import numpy as np

from privpost.drawing import multiples, style


def draw(tables):
    """Return the figure: the share of runs without a negative cell for some ε, and the bound 1 − exp(−t).

    Bands are one standard error over repeats.
    """
    table = tables["stealth"]
    figure, ((axes,),) = multiples.grid(1, 1, 2.5, width=style.ONE_COLUMN)
    epsilons = np.sort(table.epsilon.unique())
    shown = epsilons[[0, len(epsilons) // 2, -1]]
    look = style.look("fourier")
    for epsilon, linestyle, color in zip(shown, ("-", "--", ":"), ("#117733", look.color, "#0072B2"), strict=True):
        rows = table[table.epsilon == epsilon].sort_values("t")
        keywords = {"linestyle": linestyle, "marker": "", "color": color, "label": f"ε = {epsilon:g}"}
        style.error_band(axes, rows.t, rows.stealth_rate, rows.stealth_sem, method="fourier", **keywords)
    bound = table[table.epsilon == shown[0]].sort_values("t")
    axes.plot(bound.t, bound.bound, color="#000000", linewidth=1, label="bound 1 − exp(−t)")
    axes.axhline(0.9, color="#888888", linewidth=0.6)
    axes.annotate("90 % of the runs", (bound.t.min(), 0.9), fontsize=6, va="bottom", color="#666666")
    axes.set(xscale="log", ylim=(0, 1.02), xlabel="Increment parameter t", ylabel="Share of stealthy releases")
    axes.set_xticks([0.01, 0.1, 1], labels=["0.01", "0.1", "1"])
    axes.set_title("Fourier mechanism, naive Bayes")
    axes.legend(loc="lower right")
    return figure
