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
    made, ((left, right),) = panels.grid(1, 2, 2.6)
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
    panels.legend(made)
    return made
