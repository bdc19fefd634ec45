"""The figure of the study."""

import numpy as np

from privpost.drawing import facets, style
from privpost.drawing.figures import figure

METRICS = {"l1_error": "Least error\nof a draw", "kl": "Least KL\ndivergence"}
# Smaller divergences are 0 up to rounding.
SMALLEST = 1e-7


@figure("bits_winners")
def winners(beta_bernoulli):
    """The best mechanism for bits at the same (ε, δ), by exact privacy curves (ours).

    A tile is one number of records n and one ε, and a column is one δ. Colour and marker show the method with the least
    error E |draw − θ| of one draw of θ (above), or with the least divergence of the draw's law from the non-private
    posterior (below). A tile is light if the 95 % interval of another method's lag behind the best begins below 10⁻⁷.
    """
    from matplotlib.colors import ListedColormap, to_rgba

    keys = ["metric", "delta", "n", "epsilon"]
    table = beta_bernoulli[(beta_bernoulli.statistic != "mean") & (beta_bernoulli.accounting != "converted")]
    table = table[table.metric.isin(list(METRICS)) & (table.method != "non_private")].sort_values("mean", kind="stable")
    best = table.drop_duplicates(keys)
    others = table.drop(best.index).merge(best, "left", keys, suffixes=("", "_best"))
    limit = SMALLEST + style.NORMAL_95 * np.hypot(others["sem"], others.sem_best)
    near = others.assign(near=others["mean"] - others.mean_best <= limit).groupby(keys).near.any()
    leaders = facets.ordered(best.method, "method")
    best = best.join(near, on=keys).fillna({"near": False})
    looks = [style.look(method) for method in leaders]
    grid = facets.tiles(
        best.assign(code=best.method.map(leaders.index) + len(leaders) * best.near), "epsilon", "n", "code",
        row="metric", col="delta", names=METRICS, size=(style.WIDTH, 1.1), vmin=-0.5, vmax=2 * len(leaders) - 0.5,
        cmap=ListedColormap([to_rgba(look.color, alpha) for alpha in (0.9, 0.3) for look in looks]),
    )  # fmt: skip
    epsilons, sizes = facets.ordered(best.epsilon), facets.ordered(best.n)[::-1]
    for axes, rows in facets.each(grid):
        for row in rows.itertuples():
            look, at = style.look(row.method), (epsilons.index(row.epsilon) + 0.5, sizes.index(row.n) + 0.5)
            axes.plot(*at, look.marker, color=look.color if row.near else "white", markersize=4)
    handles = [facets.entry(**{**look.line(), "linestyle": "", "markersize": 5}) for look in looks]
    handles.append(facets.entry(marker="s", color="#cccccc", linestyle="", markersize=6, label="Light: undecided"))
    words = "No mechanism is best everywhere" if len(leaders) > 2 else ""
    note = "Beta-Bernoulli model. Undecided: another method is within a 95 % interval"
    return facets.finish(grid, words, "epsilon_delta", "Records n", handles, note=note)
