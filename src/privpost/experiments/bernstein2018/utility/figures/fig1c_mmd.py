"""Distance of private posteriors from the true one (Bernstein and Sheldon 2018, figure 1c)."""

import itertools

import numpy as np

from privpost.drawing import multiples, style
from privpost.evaluation.rows import select

LINES = ("-", "--", ":", "-.")
ORDER = ["binomial", "multinomial", "exponential"]
NAMES = {"naive": "Naive", "gibbs": "Gibbs (noise-aware)", "exact": "Noise-aware, no chain"}


def draw(tables):
    """Return the figure: MMD against n, one column per model, on a linear scale above and a logarithmic one below.

    MMD is the root of the mean over trials of the unbiased MMD², which is 0 where that is negative; bars are two
    standard errors either way, carried through the root. ε of ε-DP; the naive method of redacted sums (exponential)
    reads the noisy sum of all records, which no ε covers, and its MMD is that of a rate, not of a probability. Crosses:
    the noise-aware posterior without a chain.
    """
    table = tables["utility"]
    models, epsilons = sorted(table.model.unique(), key=ORDER.index), sorted(table.epsilon.unique())
    figure, grid = multiples.grid(2, len(models), 4.0, sharex=True)
    for axes, scale, model in multiples.cells(grid, ("linear", "log"), models):
        for (epsilon, line), method in itertools.product(zip(epsilons, LINES, strict=False), NAMES):
            rows = select(table, model=model, epsilon=epsilon, method=method).sort_values("n")
            _curve(axes, rows, method, line, f"{NAMES[method]}, ε = {epsilon:g}")
        axes.set(xscale="log", yscale=scale)
        if scale == "linear":
            axes.set_ylim(0, 0.6 if model != "exponential" else None)
    titles = [model if model != "exponential" else "exponential: naive is not private" for model in models]
    multiples.label_outer(grid, "records n", "MMD to the true posterior", titles)
    multiples.legend(figure, axes=grid[0, 0], ncols=3, handlelength=3)
    return figure


def _curve(axes, rows, method, line, label):
    high = np.sqrt(np.maximum(rows.mmd2_mean + 2 * rows.mmd2_sem, 0.0))
    low = np.sqrt(np.maximum(rows.mmd2_mean - 2 * rows.mmd2_sem, 0.0))
    look = {**style.look(method).line(), "linestyle": line, "label": label}
    if method == "exact":
        look |= {"linestyle": "", "marker": "x", "markersize": 6}
    multiples.bars(axes, rows.n, rows.mmd, [rows.mmd - low, high - rows.mmd], **look)
