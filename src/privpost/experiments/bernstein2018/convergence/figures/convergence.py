"""Convergence of the noise-aware Gibbs sampler (Bernstein and Sheldon 2018, supplement)."""

from privpost.drawing import multiples, style
from privpost.evaluation.rows import select

COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#000000")
MARKERS = ("o", "s", "D", "^", "v")
LINES = ("-", "--", ":", "-.")


def draw(tables):
    """Return the figure: share of releases with stuck chains, effective draws per sweep (median), and traces.

    Stuck: R-hat of four chains above 1.1. Hollow: the sampler that integrates the sum out of the update of θ. The
    traces are those of one release per model, chains from independent draws of the prior; the line marks the end of
    burn-in. Exponential and normal with public bounds unless it is said otherwise; ε of ε-DP.
    """
    import matplotlib.pyplot as plt

    table, traces = tables["convergence"], tables["traces"]
    columns = list(dict.fromkeys(zip(table.model, table.variant, strict=True)))
    epsilons = sorted(table.epsilon.unique())
    figure = plt.figure(figsize=(style.TWO_COLUMNS, 4.8))
    top, bottom = figure.subfigures(2, 1, height_ratios=[1.3, 1])
    left, right = top.subplots(1, 2)
    for (model, variant), color, marker in zip(columns, COLORS, MARKERS, strict=False):
        for epsilon, line in zip(epsilons, LINES, strict=False):
            rows = select(table, model=model, variant=variant, epsilon=epsilon).sort_values("n")
            look = {"color": color, "marker": marker, "linestyle": line}
            gibbs = select(rows, sampler="gibbs")
            left.plot(gibbs.n, gibbs.stuck_share, **look, label=f"{named(model, variant)}, ε = {epsilon:g}")
            for sampler, face in (("gibbs", color), ("collapsed", "white")):
                part = select(rows, sampler=sampler)
                right.plot(part.n, part.ess_per_sweep, **look, markerfacecolor=face)
    left.set(xscale="log", xlabel="records n", ylabel="share of releases, stuck chains")
    right.set(xscale="log", yscale="log", xlabel="records n", ylabel="bulk ESS per sweep (median)")
    hollow = {"color": "#444444", "marker": "o", "markerfacecolor": "white", "label": "sum integrated out"}
    hollow = multiples.entry(linestyle="", **hollow)
    multiples.legend(top, [hollow], axes=left, ncols=1, loc="outside right center")
    panels = bottom.subplots(1, len(columns), squeeze=False)[0]
    for axes, (model, variant) in zip(panels, columns, strict=True):
        rows = select(traces, model=model, variant=variant)
        for (_, chain), color in zip(rows.groupby("chain"), COLORS, strict=False):
            axes.plot(chain.sweep, chain.theta, color=color, linewidth=0.4)
        axes.axvline(rows.burn_in.iloc[0], color="#000000", linewidth=0.8, linestyle="--")
        axes.set(xlabel="sweep", title=named(model, variant).replace(", ", ",\n"))
    panels[0].set_ylabel(f"θ; n = {traces.n.iloc[0]:g}, ε = {traces.epsilon.iloc[0]:g}")
    return figure


def named(model: str, variant: str) -> str:
    """Return the words for a model and its bounds."""
    return f"{model}, bounds of the paper" if variant == "paper" else model
