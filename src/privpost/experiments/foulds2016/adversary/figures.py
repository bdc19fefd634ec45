"""The figures of the study."""

import numpy as np
import pandas as pd

from privpost.drawing import facets, style
from privpost.drawing.figures import figure

TERMS = {
    "local_epsilon": ("Local ε", "-", "#D55E00"),
    "likelihood_term": ("Log-likelihoods", "-.", "#56B4E9"),
    "partition_term": ("Log-partition functions", "--", "#009E73"),
}
STARTS = {"mode": "from the mode", "uniform": "from a uniform start"}
BOUNDS = {"bound": ":", "composed_bound": "-."}
LIMITS = {"Metropolis steps, bits": (0.01, 200), "Gibbs sweeps, HMM": (0.4, 100)}


@figure("fig8_adversary")
def adversary(adversary):
    """Local ε of posterior sampling on an adversary's data (Foulds et al. 2016, figure 8).

    Left: the local ε of pure DP and its two terms as the adversary adds records, for the largest a₀ (the paper's). Grey
    lines are the sensitivity Δ and the guarantee 2Δ. Right: the gap between 2Δ and the local ε for every a₀. Dotted
    lines are its first-order value 1/(n a₀). Values are exact, so there are no bands.
    """
    truncations = sorted(adversary.a0.unique(), reverse=True)
    canvas, ((left, right),) = facets.subplots(1, 2, 2.8)
    path, sensitivity = adversary[adversary.a0 == truncations[0]].sort_values("n"), np.log(1 / truncations[0] - 1)
    for factor, name in ((1, "Δ"), (2, "2Δ")):
        left.axhline(factor * sensitivity, color="#aaaaaa", linewidth=0.8, zorder=0)
        words = f"{name} = {factor * sensitivity:.3f}"
        left.text(
            path.n.max(), factor * sensitivity * 1.01, words, fontsize=7, color=style.GREY, va="bottom", ha="right"
        )
    for column, (label, line, color) in TERMS.items():
        left.plot(path.n, path[column], line, color=color, label=label)
    left.set(xscale="log", ylabel="Privacy loss (pure DP) [nats]", ylim=(0, 2.3 * sensitivity))
    left.set_title(f"a₀ = {truncations[0]:g}, temperature T = 1")
    for a0, shade in facets.shades(truncations).items():
        path = adversary[adversary.a0 == a0].sort_values("n")
        gap = 2 * np.log(1 / a0 - 1) - path.local_epsilon
        right.plot(path.n, gap, color=shade, label=f"a₀ = {a0:g}")
        far = path[path.n * a0 >= 2]
        right.plot(far.n, 1 / (far.n * a0), ":", color="#000000", linewidth=1, label="First order, 1/(n a₀)")
    right.set(xscale="log", yscale="log", ylabel="2Δ − local ε [nats]")
    right.set_title("Distance from the worst case")
    last = adversary[adversary.n == adversary.n.max()]
    near = (last.local_epsilon > 0.99 * 2 * np.log(1 / last.a0 - 1)).all()
    for axes in (left, right):
        # Each panel has its own curves.
        entries = dict(zip(*reversed(axes.get_legend_handles_labels()), strict=True))
        axes.legend(entries.values(), entries, loc="lower center", bbox_to_anchor=(0.5, 1.1), ncols=2, columnspacing=1)
    words = "An adversary's data push the loss to its bound 2Δ" if near else ""
    note = "Local ε: loss on these data. Δ: sensitivity of the log-likelihood. θ is in [a₀, 1 − a₀]"
    return facets.finish(canvas, words, "n", note=note, below=False)


@figure("stopped_chains")
def stopped(stopped_chains, stopped_hmm):
    """Privacy of Markov chains that stop early (Foulds et al. 2016, proposition 3).

    Pure ε of a chain's state divided by the pure ε of an exact draw, both the largest over all neighbours. A column is
    one ε of the posterior. Above: Metropolis chains on bits. Below (ours): the Gibbs chain of a hidden Markov model
    with two states, which releases states and emissions. Thin lines are bounds. The dotted bound uses the probability
    with which a step is an exact draw. The dash-dotted bound adds up the costs of all updates after a start that
    ignores the data. Values are computed on all data sets, so there are no bars.
    """
    upper = stopped_chains.assign(part="Metropolis steps, bits", bound=stopped_chains.cost_bound)
    lower = stopped_hmm.assign(part="Gibbs sweeps, HMM", steps=stopped_hmm.sweeps, bound=stopped_hmm.minorised_bound)
    table = pd.concat([upper, lower.assign(chain="Gibbs")], ignore_index=True)
    table = table.assign(**{name: table[name] / table.exact_cost for name in ("cost", "bound", "composed_bound")})
    chain = table.chain.where(table.chain != "Gibbs", "independence") + " or Gibbs"
    kinds = table.start.map(STARTS) + ", " + chain.str.replace("random walk or Gibbs", "random walk")
    drawn = table.assign(kind=kinds).replace(np.inf, np.nan)
    grid = facets.lines(
        drawn, "steps", "cost", row="part", col="epsilon", hue="kind", size=(style.WIDTH, 1.5), share=("row", "row"),
        xscale="log", yscale="log",
    )  # fmt: skip
    most = table.groupby(["chain", "epsilon", "start"]).cost.max().unstack()
    added = most["uniform"].max() - 1
    palette = facets.looks(facets.named(drawn, hue="kind"), "kind")["palette"]
    for axes, rows in facets.each(grid):
        for column, line in BOUNDS.items():
            for kind, part in rows.sort_values("steps").groupby("kind"):
                axes.plot(part.steps, part[column], line, color=palette[kind], linewidth=0.8)
        axes.axhline(1, color=style.GREY, linewidth=0.8)
        axes.set_ylim(LIMITS[rows.part.iloc[0]])
        for row in rows[(rows.start == "uniform") & (rows.cost == added + 1)].itertuples():
            axes.text(row.steps, row.cost / 2, f"+{added * 100:.0f} %", fontsize=7)
    holds = added < 0.1 and (most["mode"] > most["uniform"].clip(lower=1) * 1.05).all()
    words = f"Short chains from the mode cost more than an exact draw; a uniform start adds {added * 100:.0f} % at most"
    bounds = ("bound: share of an exact draw", ":"), ("bound: every update pays", "-.")
    handles = [facets.entry(linestyle=line, linewidth=0.8, label=label) for label, line in bounds]
    note = "Thin: bounds. Left of its first point a chain from the mode costs infinitely much"
    ylabel = "Pure ε ÷ that of an exact draw (below 1: less)"
    return facets.finish(grid, words if holds else "", "Steps or sweeps of the chain", ylabel, handles, note=note)
