"""The figure of the study."""

from privpost.drawing import facets, style
from privpost.drawing.figures import figure


@figure("logistic")
def logistic(logistic):
    """Logistic regression by private posterior samples at the same (ε, δ), on three data sets (ours).

    Test error minus that of the non-private posterior, at the larger δ. The axis is linear within 0.01. OPS with a
    Rényi charge has the same draws as the diffused sampler. OPS on its smallest ball is pure ε-DP. Bars are 95 %
    intervals of a method's own mean over draws on one train/test split.
    """
    table = logistic[logistic.delta.isna() | (logistic.delta == logistic.delta.max())]
    table = facets.excess(table[(table.metric == "test_error") & (table.method != "direct")], "mean", ["dataset"])
    ball = table.variant == "smallest_ball"
    shown = table.assign(method=table.method.where(~ball, "ops_ball"), ball=(table.method == "ops") & ~ball)
    grid = facets.lines(
        facets.named(shown, "ball", names={True: "the paper's ball", False: ""}), "epsilon", "mean", "sem",
        col="dataset", names=facets.sized(table), share=(True, True), size=(style.WIDTH, 2.0), xscale="log",
    )  # fmt: skip
    for axes, _ in facets.each(grid):
        style.decades(axes, 0.01, table["mean"])
    of = {name: rows.set_index(["dataset", "epsilon"])["mean"] for name, rows in table[~ball].groupby("method")}
    holds = {"ops", "ops_renyi", "diffused"} <= set(of)
    holds = holds and (of["ops_renyi"] - of["diffused"]).abs().max() < 0.01 < (of["ops"] - of["diffused"]).min()
    words = "Charged by Rényi DP, OPS errs as little as diffused sampling; charged as in the paper it stays behind"
    note = f"{facets.fixed(table, 'delta')}. {style.ABSENT}. OPS, Rényi charge: on Diffused"
    ylabel = "Test error above that of\nnon-private (linear below 0.01)"
    return facets.finish(grid, words if holds else "", "epsilon_delta", ylabel, note=note)
