"""The figures of the study."""

import numpy as np
import pandas as pd

from privpost.drawing import facets, style
from privpost.drawing.figures import figure
from privpost.evaluation.rows import select

PARTS = {"accuracy": "Accuracy on unseen examples [share]", "gain": "Accuracy less Laplace's [points]"}
# Labels of Fourier's rows by variant and runs: the paper's rows, and the rows with the larger t of corollary 3.
FOURIER = {("paper", "stealthy"): "runs without a negative count", ("bound", "all"): "all runs, t = ln 10"}


@figure("fig1_naive_bayes")
def accuracy(naive_bayes, naive_bayes_pairs):
    """Accuracy of naive Bayes against ε of pure DP (Zhang et al. 2016, figure 1).

    Left: accuracy of the posterior predictive, for Fourier in its stealthy runs (no negative count). An ε per attribute
    protects one attribute without children. A whole record costs ε times its number of attributes. The paper's figure
    has no MAP curve. Right: paired gain of Fourier over Laplace in percentage points, with the increment t that makes
    90 % of runs stealthy, and with t = ln 10, as the bound asks. Bars are 95 % intervals over repeats.
    """
    table = naive_bayes.assign(kind=_fourier(naive_bayes), part="accuracy")
    fourier = (table.method == "fourier") & (table.kind == FOURIER["paper", "stealthy"])
    others = (table.method != "fourier") & (table.runs == "all") & table.variant.isin(["paper", "mass"])
    table = table[fourier | others].rename(columns={"accuracy_mean": "mean", "accuracy_sem": "sem"})
    pairs = select(naive_bayes_pairs, method="fourier", other="laplace").dropna(subset="epsilon")
    pairs = pairs.assign(kind=_fourier(pairs), part="gain").dropna(subset="kind")
    pairs = pairs.assign(mean=100 * pairs.difference_mean, sem=100 * pairs.difference_sem)
    level = pd.DataFrame({"method": ["laplace"], "part": "gain", "mean": 0.0})
    grid = facets.lines(
        facets.named(pd.concat([table, pairs, level]), "kind"), "epsilon", "mean", "sem", col="part", names=PARTS,
        share=(True, False), size=(style.WIDTH, 2.2), xscale="log",
    )  # fmt: skip
    most, least = pairs["mean"].max(), pairs["mean"].min()
    words = f"Fourier gains at most {most:.1f} points of accuracy over Laplace, and loses up to {-least:.1f}"
    note = "Synthetic data. t: increment that Fourier adds against negative counts"
    return facets.finish(grid, words if 0 < most < -least else "", "epsilon", note=note)


@figure("stealth")
def stealth(stealth):
    """Share of stealthy Fourier releases against the increment t (Zhang et al. 2016, corollary 3).

    A run of naive Bayes without a negative count is stealthy. Each line is one ε. Dashed: the lower bound 1 − exp(−t),
    which holds at every ε. 95 % intervals over repeats are as narrow as the lines.
    """
    epsilons = facets.ordered(stealth.epsilon)
    shown = stealth[stealth.epsilon.isin([epsilons[0], epsilons[len(epsilons) // 2], epsilons[-1]])]
    grid = facets.lines(
        shown, "t", "stealth_rate", "stealth_sem", hue="epsilon", markers=False, size=(style.NARROW, 2.0),
        xscale="log", ylim=(0, 1.02), xlim=(0.008, 8),
    )  # fmt: skip
    line = shown[shown.epsilon == epsilons[0]].sort_values("t")
    grid.ax.plot(line.t, line.bound, "--", color="#000000", linewidth=1, label="Bound 1 − exp(−t)")
    grid.ax.axhline(0.9, color=style.GREY, linewidth=0.6)
    enough, bound = shown[shown.stealth_rate >= 0.9].groupby("epsilon").t.min().max(), np.log(10)
    for place in (enough, bound):
        grid.ax.plot([place] * 2, [0, 0.9], ":", color=style.GREY, linewidth=0.8)
        grid.ax.text(place * 1.06, 0.02, f"t = {place:.2g}", color=style.GREY, fontsize=7)
    words = f"At least 90 % of releases have no negative count at t = {enough:.2g}; the bound asks for {bound:.2g}"
    ylabel = "Share of releases without\na negative count"
    return facets.finish(grid, words if enough < bound / 10 else "", "Increment t of the counts", ylabel)


def _fourier(table):
    """Return each row's label in `FOURIER`, or None."""
    return [FOURIER.get(key) for key in zip(table.variant, table.runs, strict=True)]
