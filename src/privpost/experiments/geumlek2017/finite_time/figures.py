"""The figure of the study."""

from privpost.drawing import panels, style
from privpost.drawing.figures import figure
from privpost.evaluation.rows import select


@figure("finite_time")
def steps(finite_time):
    """Test error of Langevin steps that are all paid for, less that of exact draws at the same budget (ours).

    Against the number of steps, for each data set and budget of Rényi DP; the mode with noise and OPS on its smallest
    ball (pure ε), which need no steps, are horizontal lines. Linear within 0.01. Bars and bands are 95 % intervals of
    the difference over the draws of one split.
    """
    table = select(finite_time, metric="test_error")
    table = table[table.method != "diffused"]
    table = table.assign(ball=table.variant.map({"smallest_ball": "smallest ball"}).fillna(""))
    plot = panels.panels(
        table, "steps", "behind_mean", "behind_sem", columns=("dataset", "log_epsilon"), lines=("method", "ball"),
        look={("ops", "smallest ball"): {"color": style.SMALLEST_BALL, "linestyle": "-"}}, bars=True, xscale="log",
        size=(style.WIDTH, 1.7), share=(True, True), xlabel="Steps", ylabel="Test error\nabove exact draws",
    )  # fmt: skip
    for axes, _, _ in plot:
        axes.axhline(0, color=style.look("diffused").color, label=f"{style.look('diffused').label}, exact draws")
        panels.decades(axes, 0.01, table.behind_mean)
    longest = table[table.method == "langevin"].sort_values("steps").groupby(["dataset", "log_epsilon"]).last()
    near = (longest.behind_mean.abs() < 2 * longest.behind_sem).all() and len(longest) > 0
    panels.message(plot.figure, "Langevin reaches exact draws, with every step paid", bool(near))
    panels.legend(plot.figure)
    return plot.figure
