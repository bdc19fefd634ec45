"""The figure of the study."""

import numpy as np

from privpost.drawing import panels, style
from privpost.drawing.figures import figure

TERMS = {
    "local_epsilon": ("Local ε", "-", "#D55E00"),
    "likelihood_term": ("Log-likelihoods", "-.", "#56B4E9"),
    "partition_term": ("Log-partition functions", "--", "#009E73"),
}


@figure("fig8_adversary")
def adversary(adversary):
    """Local ε of posterior sampling on an adversary's data (Foulds et al. 2016, figure 8).

    Left, for the first a₀, the paper's: the local ε of pure DP and its two terms along the adversary's path, with the
    sensitivity Δ and the guarantee 2Δ (dotted). Right: the gap of the local ε to 2Δ for every a₀, dotted 1/(n a₀), its
    value to first order. Computed exactly, so there are no bands.
    """
    truncations = sorted(adversary.a0.unique(), reverse=True)
    canvas, ((left, right),) = panels.grid(1, 2, 2.6)
    path, sensitivity = adversary[adversary.a0 == truncations[0]].sort_values("n"), np.log(1 / truncations[0] - 1)
    for factor, name in ((1, "Δ"), (2, "2Δ")):
        left.axhline(factor * sensitivity, color=style.GREY, linestyle=":", linewidth=0.9)
        words = f"{name} = {factor * sensitivity:.3f}"
        left.text(
            path.n.max(), factor * sensitivity * 1.01, words, fontsize=7, color=style.GREY, va="bottom", ha="right"
        )
    for column, (label, line, color) in TERMS.items():
        left.plot(path.n, path[column], line, color=color, label=label)
    left.set(xscale="log", xlabel=style.AXES["n"], ylabel="Privacy loss (pure DP) [nats]", ylim=(0, 2.3 * sensitivity))
    left.set_title(f"a₀ = {truncations[0]:g}, T = 1")
    for a0, shade in panels.shades(truncations).items():
        path = adversary[adversary.a0 == a0].sort_values("n")
        gap = 2 * np.log(1 / a0 - 1) - path.local_epsilon
        right.plot(path.n, gap, color=shade, label=f"a₀ = {a0:g}")
        far = path[path.n * a0 >= 2]
        right.plot(far.n, 1 / (far.n * a0), ":", color="#000000", linewidth=1, label="1/(n a₀)")
    right.set(xscale="log", yscale="log", xlabel=style.AXES["n"], ylabel="2Δ − local ε [nats]")
    right.set_title("Distance from the worst case")
    last = adversary[adversary.n == adversary.n.max()]
    near = (last.local_epsilon > 0.99 * 2 * np.log(1 / last.a0 - 1)).all()
    panels.message(canvas, "An adversary's data push the loss to its bound 2Δ", near)
    panels.legend(canvas)
    return canvas


@figure("stopped_chains")
def stopped(stopped_chains):
    """Privacy of a Markov chain that stops after some steps (Foulds et al. 2016, proposition 3).

    One column per ε of the posterior that the chain draws from. Above: the smallest δ at which the state is (ε, δ)-DP
    at an exact draw's ε, of which values below 10⁻⁹ lie on the edge. Below: pure ε of the state over an exact draw's;
    dotted the bound for an independence chain. A start at the mode of the data gives it away, a uniform start does not.
    Computed on grids, not simulated: there are no bands.
    """
    least, over = 1e-9, (stopped_chains.cost / stopped_chains.exact_cost).replace(np.inf, np.nan)
    table = stopped_chains.assign(delta=stopped_chains.delta.clip(lower=least), over=over)
    table = table.assign(bound=table.cost_bound / table.exact_cost)
    epsilons, lines = panels.ordered(table.epsilon), ("chain", "start")
    canvas, axes = panels.grid(2, len(epsilons), 3.4, sharex=True, sharey="row")
    looks = panels.looks(table, lines, names={"mode": "from the mode", "uniform": "from a uniform start"})
    for panel, row, epsilon in panels.Panels(canvas, axes, ["delta", "over"], epsilons):
        rows = table[table.epsilon == epsilon]
        panels.curves(panel, rows, "steps", row, None, lines, looks)
        panel.set(xscale="log", yscale="log")
        if row == "over":
            dotted = {key: {**look, "linestyle": ":", "marker": "", "label": None} for key, look in looks.items()}
            panels.curves(panel, rows, "steps", "bound", None, lines, dotted)
            panel.set(xlabel="Steps", ylim=(0.01, 200))
            panel.axhline(1, color=style.GREY, linewidth=0.8)
        else:
            panel.set(title=f"ε = {epsilon:g}", ylim=(least, 2))
    axes[0, 0].set_ylabel("δ at the exact\ndraw's ε")
    axes[1, 0].set_ylabel("Pure ε ÷ that of\nan exact draw")
    most = table.groupby("start").over.max()
    holds = most.get("uniform", 9) < 1.01 and most.get("mode", 0) > 2
    panels.message(canvas, "A start at the mode gives it away, a uniform one does not", holds)
    panels.legend(canvas, [panels.entry(linestyle=":", label="bound, independence chain")])
    return canvas


@figure("stopped_hmm")
def hidden_markov(stopped_hmm):
    """Privacy of a Gibbs chain on a hidden Markov model that stops after some sweeps (ours).

    All data sets of a few events, two states; one column per ε that the sampler is given. Above: pure ε of the sample
    of states and emissions over that of an exact draw, and the bounds that can be stated for it (dashed: pay for every
    update; dotted: share of an exact draw in each sweep). Below: how far the sample is from an exact draw, the largest
    over data sets; for the neighbours that lose most it is less. Less than 10⁻⁹ lies on the edge. Computed on all data
    sets, not simulated: there are no bands.
    """
    least, scaled = 1e-9, ["cost", "composed_bound", "minorised_bound"]
    table = stopped_hmm.copy()
    table[scaled] = table[scaled].div(table.exact_cost, axis=0)
    table["distance"] = table.distance.clip(lower=least)
    epsilons = panels.ordered(table.epsilon)
    canvas, axes = panels.grid(2, len(epsilons), 3.6, sharex=True, sharey="row")
    looks = panels.looks(table, ("start",), names={"mode": "from the mode", "uniform": "from a uniform start"})
    lines = {"cost": (0, "-"), "composed_bound": (0, "--"), "minorised_bound": (0, ":"), "distance": (1, "-")}
    for place, epsilon in enumerate(epsilons):
        rows = table[table.epsilon == epsilon]
        for column, (row, line) in lines.items():
            plain = line == "-"
            drawn = {
                key: {**look, "linestyle": line} | ({} if plain else {"marker": "", "label": None})
                for key, look in looks.items()
            }
            panels.curves(axes[row, place], rows, "sweeps", column, None, ("start",), drawn)
        axes[0, place].axhline(1, color=style.GREY, linewidth=0.8)
        axes[0, place].set(xscale="log", yscale="log", ylim=(0.7, 100), title=f"ε = {epsilon:g}")
        axes[1, place].set(xscale="log", yscale="log", ylim=(least, 2), xlabel="Sweeps")
    axes[0, 0].set_ylabel("Pure ε ÷ that of\nan exact draw")
    axes[1, 0].set_ylabel("Total variation from\nan exact draw")
    words = {"--": "bound: every update pays", ":": "bound: share of an exact draw"}
    uniform = table[(table.start == "uniform") & (table.sweeps > 1)]
    panels.message(canvas, "Two sweeps from a uniform start cost what an exact draw costs", (uniform.cost < 1.01).all())
    panels.legend(canvas, [panels.entry(linestyle=line, label=label) for line, label in words.items()])
    return canvas
