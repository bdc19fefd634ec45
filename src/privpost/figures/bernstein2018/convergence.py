"""Convergence of the noise-aware Gibbs sampler (Bernstein and Sheldon 2018, supplement)."""

from __future__ import annotations

from privpost.figures import style

COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7")
MARKERS = ("o", "s", "D", "^")
LINES = ("-", "--", ":", "-.")


def draw(tables):
    """Return the figure: worst R-hat over trials, effective draws per sweep (median over trials), and traces.

    The traces are those of one release per model, chains from independent draws of the prior; the line marks the end
    of burn-in. All at the ε-DP given.
    """
    import matplotlib.pyplot as plt

    table, traces = tables["convergence"], tables["traces"]
    models, epsilons = list(dict.fromkeys(table.model)), sorted(table.epsilon.unique())
    figure = plt.figure(figsize=(style.TWO_COLUMNS, 4.6))
    top, bottom = figure.subfigures(2, 1, height_ratios=[1.3, 1])
    left, right = top.subplots(1, 2)
    for model, color, marker in zip(models, COLORS, MARKERS, strict=False):
        for epsilon, line in zip(epsilons, LINES, strict=False):
            rows = table[(table.model == model) & (table.epsilon == epsilon)].sort_values("n")
            look = {"color": color, "marker": marker, "linestyle": line, "label": f"{model}, {epsilon:g}-DP"}
            left.plot(rows.n, rows.rhat - 1, **look)
            right.plot(rows.n, rows.ess_per_sweep, **look)
    left.axhline(0.01, color="#777777", linewidth=0.8, linestyle=":")
    left.annotate("1.01", (1, 0.01), xycoords=("axes fraction", "data"), ha="left", va="center", fontsize=7)
    left.set(xscale="log", yscale="log", xlabel="records n", ylabel="R-hat − 1 (worst trial)")
    right.set(xscale="log", yscale="log", xlabel="records n", ylabel="bulk ESS per sweep (median)")
    handles, labels = left.get_legend_handles_labels()
    top.legend(handles, labels, loc="outside right center")
    panels = bottom.subplots(1, len(models), squeeze=False)[0]
    for axes, model in zip(panels, models, strict=True):
        rows = traces[traces.model == model]
        for (_, chain), color in zip(rows.groupby("chain"), COLORS, strict=False):
            axes.plot(chain.sweep, chain.theta, color=color, linewidth=0.4)
        axes.axvline(rows.burn_in.iloc[0], color="#000000", linewidth=0.8, linestyle="--")
        axes.set(xlabel="sweep")
        axes.set_title(model)
    panels[0].set_ylabel(f"θ; n = {traces.n.iloc[0]:g}, {traces.epsilon.iloc[0]:g}-DP")
    return figure
