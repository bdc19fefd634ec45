"""Figures of private logistic regression: errors of all methods, a ranking of two samplers, and balls of OPS."""

import pandas as pd

from privpost.drawing import facets, style
from privpost.drawing.figures import figure
from privpost.evaluation.rows import one, select
from privpost.experiments.geumlek2017.logistic.study import decisive


@figure("fig3_test_error")
def test_error(logistic):
    """Test error of private logistic regression (Geumlek et al. 2017, figure 3).

    Shown is the mean test error, less the value for draws from the non-private posterior. The axis is linear below
    0.01. Rows are orders λ, and columns are data sets. OPS has two curves: charged as in the paper, and as pure DP on
    the smallest ball sure to contain the mode (ours). The dotted line is the error of guessing the larger class.
    Features are scaled by the data's own range, as in the paper; no ε covers this range. In the last row, features have
    public bounds (ours). Bars are 95 % intervals of a method's own mean over draws on one split. All methods share
    random numbers.
    """
    table = _losses(logistic, "test_error", "paper").assign(bounds="")
    public = _losses(logistic, "test_error", "corrected").assign(bounds=", public bounds (ours)")
    orders = facets.ordered(table.order)
    both = pd.concat([table, public[public.order == orders[len(orders) // 2]]])
    grid = _curves(both.assign(row=both.order.map(lambda order: facets.words("order", order)) + both.bounds), "row")
    for axes, rows in facets.each(grid):
        style.decades(axes, 0.01, [*both["mean"], 0.5])
        axes.axhline(
            (rows.majority_error - rows.mean_reference).iloc[0], color=style.GREY, linestyle=":", linewidth=0.8
        )
    guess = facets.entry(linestyle=":", linewidth=0.8, label="Guess the larger class")
    ylabel = "Test error above non-private (linear below 0.01)"
    return facets.finish(grid, _answer(table), "log_epsilon", ylabel, [guess], note=style.ABSENT)


@figure("appendix_loglikelihood")
def log_likelihood(logistic):
    """Negative test log-likelihood of private logistic regression (Geumlek et al. 2017, appendix).

    Shown is the negative mean log-likelihood, less the value for draws from the non-private posterior. The axis is
    linear below 0.01. Rows are orders λ of Rényi DP, and columns are data sets.
    """
    table = _losses(logistic, "test_log_likelihood", "paper")
    table = table.assign(mean=-table["mean"])
    grid = _curves(table, "order")
    for axes, _ in facets.each(grid):
        style.decades(axes, 0.01, table["mean"])
    words = _answer(table) and "By log-likelihood, too, OPS on the paper's ball never leads"
    ylabel = "Negative log-likelihood above non-private\n[nats, linear below 0.01]"
    return facets.finish(grid, words, "log_epsilon", ylabel)


@figure("method_ranking")
def ranking(logistic_pairs):
    """Test error of the concentrated sampler against the diffused one (ours; Geumlek et al. 2017, figure 3).

    Shown is the paired difference in test error, concentrated minus diffused, against ln ε. Above 0, diffused is
    better. Filled points are means over several splits, and hollow points are means over draws on one split. Bars are
    95 % intervals.
    """
    contest = {"variant": "paper", "first": "concentrated", "second": "diffused", "metric": "test_error"}
    table = decisive(select(logistic_pairs, **contest))
    # Points of different orders are shifted, so that bars do not cover each other.
    shift = 0.12 * (table.order.rank(method="dense") - (table.order.nunique() + 1) / 2)
    table = table.assign(at=table.log_epsilon + shift, splits=table.n_splits > 1)
    grid = facets.lines(
        table, "at", "difference_mean", "difference_sem", col="dataset", hue="order", solid="splits",
        size=(style.WIDTH, 1.9), share=(True, False), xticks=[-4, -2, 0, 2],
    )  # fmt: skip
    for axes, _ in facets.each(grid):
        axes.axhline(0, color="black", linewidth=0.8)
    wins = table[table.difference_mean + style.NORMAL_95 * table.difference_sem < 0]
    alone = wins.dataset.unique().tolist() == ["abalone"] and wins.order.nunique() == 1
    words = f"Concentrated wins on Abalone alone, at λ = {wins.order.min():g} and small ε" if alone else ""
    one_split = facets.hollow("draws of one split")
    ylabel = "Test error, concentrated\nless diffused (> 0: diffused better)"
    return facets.finish(grid, words, "log_epsilon", ylabel, [one_split], note="Each panel has its own scale")


@figure("ops_radius")
def radius(ops_radius):
    """Test error of OPS against the radius of its ball, at one pure ε (ours; Geumlek et al. 2017, section 5.2).

    At radius R, the likelihood has the power min(1, ε/(2cR)). The smallest balls have power 1 and cost less than ε. The
    left vertical line marks the smallest ball sure to hold the mode, and the right line the paper's radius c/β. Bars
    are 95 % intervals over the draws of one split.
    """
    table = select(ops_radius, metric="test_error").assign(method="ops")
    grid = facets.lines(
        facets.named(table), "radius", "mean", "sem", col="dataset", names=facets.sized(table), share=(True, True),
        size=(style.WIDTH, 1.7), xscale="log",
    )  # fmt: skip
    better = []
    for axes, rows in facets.each(grid):
        axes.axhline(rows.majority_error.iloc[0], color=style.GREY, linestyle=":", linewidth=0.8)
        # Heights at which no curve crosses the names.
        for times, words, height in ((1, "smallest", 0.6), (None, "paper's", 0.02)):
            place, error = one(rows, times_smallest=times)[["radius", "mean"]]
            axes.axvline(place, color=style.GREY, linewidth=0.8, zorder=1)
            axes.annotate(
                words, (place, height), xycoords=("data", "axes fraction"), xytext=(-2, 0), textcoords="offset points",
                rotation=90, ha="right", va="bottom", fontsize=7, color=style.GREY,
            )  # fmt: skip
        better.append(rows["mean"][rows.radius < place / 10].min() < 0.9 * error)
    words = "OPS errs least on a ball far smaller than the paper's" if all(better) else ""
    guess = facets.entry(linestyle=":", linewidth=0.8, label="Guess the larger class")
    ylabel = f"Test error at\n{facets.fixed(table, 'log_epsilon')} (pure DP)"
    note = "Smallest: the smallest ball that is sure to hold the mode"
    return facets.finish(grid, words, "Radius R of the ball that weights are drawn from", ylabel, [guess], note=note)


def _losses(table, metric: str, variant: str):
    """Return a variant's rows of a metric, less the metric's non-private value."""
    table = select(table, metric=metric)
    ball = select(table, variant="smallest_ball", method="ops").assign(variant="paper", method="ops_ball")
    return facets.excess(select(pd.concat([table, ball]), variant=variant), "mean", ["dataset"])


def _curves(table, row: str):
    shown = table.assign(ball=(table.method == "ops").map({True: "the paper's ball", False: ""}))
    return facets.lines(
        facets.named(shown, "ball"), "log_epsilon", "mean", "sem", row=row, col="dataset", names=facets.sized(table),
        size=(style.WIDTH, 1.3), share=(True, True), xticks=[-4, -2, 0, 2],
    )  # fmt: skip


def _answer(table) -> str:
    """Return a sentence if OPS, charged as in the paper, never leads a sampler. Return "" if it leads in some cell."""
    worst = table[table.method == "ops"].set_index(["dataset", "order", "log_epsilon"])["mean"].rename("ops")
    others = table[table.method.isin(["diffused", "concentrated"])]
    behind = others.set_index(worst.index.names).join(worst, how="inner")
    holds = len(behind) > 0 and (behind.ops >= behind["mean"]).all()
    return "OPS on the paper's ball never leads" if holds else ""
