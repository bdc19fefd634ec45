"""The figures of the study."""

import numpy as np

from privpost.drawing import panels, style
from privpost.drawing.figures import figure
from privpost.evaluation.rows import select

# Fourier's rows (variant, runs) in words.
FOURIER = {
    ("paper", "stealthy"): "stealthy runs, t for 90 % (paper)",
    ("paper", "all"): "all runs, t for 90 %",
    ("bound", "all"): "all runs, t = ln 10",
    ("corrected", "all"): "all runs, exact sensitivity",
}
# Shades of the method's green.
SHADES = dict(zip(FOURIER.values(), (
    {"color": "#00381f", "linestyle": "-"}, {"color": "#00381f", "linestyle": "--", "marker": "o"},
    {"color": "#2f9e63", "linestyle": "-", "marker": "s"}, {"color": "#7a8f84", "linestyle": ":", "marker": "^"},
), strict=True))  # fmt: skip


@figure("fig1_naive_bayes")
def accuracy(naive_bayes, naive_bayes_pairs):
    """Accuracy of naive Bayes against ε of pure DP (Zhang et al. 2016, figure 1).

    Left: accuracy of the methods, for Fourier in its stealthy runs (no count negative). ε per attribute protects one
    attribute without children; a record costs as many times as much as it has attributes. The paper's figure has no
    MAP curve. Right: what the Fourier mechanism gains over Laplace, paired, by its increment t and the runs that count.
    Bands are 95 % intervals over repeats.
    """
    table = naive_bayes
    shown = table.assign(kind=_fourier(table))
    shown = shown[(shown.method != "fourier") | (shown.kind == FOURIER["paper", "stealthy"])]
    shown = shown[(shown.method == "fourier") | ((shown.runs == "all") & shown.variant.isin(["paper", "mass"]))]
    canvas, ((left, right),) = panels.grid(1, 2, 2.6)
    panels.curves(left, shown, "epsilon", "accuracy_mean", "accuracy_sem")
    left.set(ylim=(0.48, 1.0), ylabel="Accuracy on unseen examples", title="Posterior predictive")
    pairs = select(naive_bayes_pairs, method="fourier", other="laplace").dropna(subset="epsilon")
    pairs = pairs.assign(kind=_fourier(pairs)).dropna(subset="kind")
    pairs = pairs.assign(gain=100 * pairs.difference_mean, sem=100 * pairs.difference_sem)
    looks = panels.looks(pairs, ("method", "kind"), names={name: name for name in FOURIER.values()})
    for (_, kind), look in looks.items():
        look.update(SHADES[kind], label=look["label"].replace("Fourier, ", "Fourier: "))
    panels.curves(right, pairs, "epsilon", "gain", "sem", ("method", "kind"), looks)
    right.axhline(0, color=style.look("laplace").color, linewidth=1)
    right.set(ylabel="Accuracy less Laplace's [%]", ylim=(-3.9, 1.6), title="Fourier against Laplace, paired")
    most, least = pairs.gain.max(), pairs.gain.min()
    words = f"Fourier gains at most {most:.1f} % over Laplace, and loses up to {-least:.1f} %"
    panels.message(canvas, words, bool(0 < most < -least))
    for axes in (left, right):
        axes.set(xscale="log", xlabel=style.AXES["epsilon"])
    panels.legend(canvas)
    return canvas


@figure("stealth")
def stealth(stealth):
    """Share of stealthy Fourier releases against the increment t (Zhang et al. 2016, corollary 3).

    Share of runs without a negative cell, naive Bayes, for some ε of pure DP, and the bound 1 − exp(−t). Bands are 95 %
    intervals over repeats.
    """
    epsilons = panels.ordered(stealth.epsilon)
    drawn = sorted({epsilons[0], epsilons[len(epsilons) // 2], epsilons[-1]})
    shown = stealth[stealth.epsilon.isin(drawn)]
    smooth = {epsilon: {"marker": ""} for epsilon in epsilons}
    plot = panels.panels(
        shown, "t", "stealth_rate", "stealth_sem", lines=("epsilon",), look=smooth, size=(style.NARROW, 2.0),
        xscale="log", ylim=(0, 1.02), xlabel="Increment parameter t", ylabel="Share of stealthy releases",
    )  # fmt: skip
    axes, bound = plot.axes[0, 0], shown[shown.epsilon == epsilons[0]].sort_values("t")
    axes.plot(bound.t, bound.bound, "--", color="#000000", linewidth=1)
    axes.axhline(0.9, color="#888888", linewidth=0.6)
    axes.annotate("90 % of the runs", (bound.t.min(), 0.9), fontsize=7, va="bottom", color=style.GREY)
    at = np.interp(0.4, bound.bound, bound.t)
    axes.annotate("bound\n1 − exp(−t)", (at, 0.39), (4, 0), fontsize=7, textcoords="offset points", va="top")
    # Each where it has room; the last one lies left of the others.
    for line, epsilon, height, side in zip(
        axes.lines, drawn, (0.3, 0.12, 0.6), ("left", "right", "right"), strict=False
    ):
        at, shift = np.interp(height, line.get_ydata(), line.get_xdata()), {"left": 3, "right": -3}[side]
        words = {"fontsize": 7, "color": line.get_color(), "textcoords": "offset points", "va": "center", "ha": side}
        axes.annotate(f"ε = {epsilon:g}", (at, height), (shift, 0), **words)
    enough = shown[shown.stealth_rate >= 0.9].groupby("epsilon").t.min().max()
    panels.message(plot.figure, "A tenth of the bound's t is enough", bool(enough < 0.1 * np.log(10)))
    return plot.figure


def _fourier(table):
    """Return which of Fourier's rows in words each row is, missing for others."""
    return [FOURIER.get(key) for key in zip(table.variant, table.runs, strict=True)]
