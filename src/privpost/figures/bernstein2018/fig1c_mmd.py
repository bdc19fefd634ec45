"""Distance of private posteriors from the true one (Bernstein and Sheldon 2018, figure 1c)."""

from __future__ import annotations

import numpy as np

from privpost.figures import multiples, style

LINES = ("-", "--", ":", "-.")


def draw(tables):
    """Return the figure: MMD against n, one column per model, one row per ε, and on a log scale below.

    MMD is the root of the mean over trials of the unbiased MMD², which is 0 where that is negative; bars are two
    standard errors either way, carried through the root.
    """
    table = tables["utility"]
    models, epsilons = list(dict.fromkeys(table.model)), sorted(table.epsilon.unique())
    models = [name for name in ("binomial", "multinomial") if name in models]
    figure, grid = multiples.grid(1, 2 * len(models), 2.5, sharex=True)
    for number, model in enumerate(models):
        linear, logarithmic = grid[0, 2 * number], grid[0, 2 * number + 1]
        for axes in (linear, logarithmic):
            for epsilon, line in zip(epsilons, LINES, strict=False):
                for method in ("naive", "gibbs"):
                    rows = table[(table.model == model) & (table.epsilon == epsilon) & (table.method == method)]
                    _curve(axes, rows.sort_values("n"), method, line, f"{style.look(method).label}, {epsilon:g}-DP")
            axes.set(xscale="log", xlabel="records n")
            axes.set_title(model if axes is linear else f"{model}, log scale")
        linear.set_ylim(0, 0.6)
        logarithmic.set_yscale("log")
    grid[0, 0].set_ylabel("MMD to the true posterior")
    multiples.legend(figure, axes=grid[0, 0], handlelength=3)
    return figure


def _curve(axes, rows, method, line, label):
    high = np.sqrt(np.maximum(rows.mmd2_mean + 2 * rows.mmd2_sem, 0.0))
    low = np.sqrt(np.maximum(rows.mmd2_mean - 2 * rows.mmd2_sem, 0.0))
    look = {**style.look(method).line(), "linestyle": line, "label": label}
    multiples.bars(axes, rows.n, rows.mmd, [rows.mmd - low, high - rows.mmd], **look)
