"""The figures of the study."""

import operator

import pandas as pd

from privpost.drawing import panels, style
from privpost.drawing.figures import figure
from privpost.evaluation.rows import one, select
from privpost.experiments.geumlek2017.logistic.study import decisive

SMALLEST = "smallest ball"
# What OPS is charged in a variant of the study beside its cost: the smaller of what that implies and theorem 17.
CHARGES = {
    "paper": {
        "own_bound": ("ops_renyi", ""),
        "smallest_ball": ("ops", SMALLEST),
    },
    "corrected": {"corrected_own_bound": ("ops_renyi", "")},
}


@figure("fig3_test_error")
def test_error(logistic):
    """Test error of private logistic regression (Geumlek et al. 2017, figure 3).

    Test error above that of the non-private mode, linear below 0.01; one row per order λ, one column per data set. OPS
    has three curves: charged as in the paper; by the smaller of what its pure cost implies and theorem 17, where it
    coincides with the diffused sampler; and, pure ε-DP, on the smallest ball sure to hold the mode (ours).
    Bands are 95 % intervals over the draws of one split. Features are scaled by the data's own range, as in the paper,
    which no ε covers.
    """
    return _losses(logistic, "test_error", "paper", "Test error above non-private")


@figure("fig3_corrected")
def corrected(logistic):
    """Test error of private logistic regression with public feature bounds (ours).

    As figure 3, at the middle order, with features scaled by public bounds: diffused sampling, OPS charged by the
    smaller of its pure cost and theorem 17, and the finite-time methods: the mode with noise, and Langevin steps that
    are all paid for, on data sets where they do not take minutes. Bands are 95 % intervals over the draws of one split.
    """
    variant = "corrected" if (logistic.variant == "corrected").any() else "paper"
    orders = panels.ordered(logistic.order)
    table = logistic[logistic.order.isna() | (logistic.order == orders[len(orders) // 2])]
    return _losses(table, "test_error", variant, "Test error\nabove non-private")


@figure("appendix_loglikelihood")
def log_likelihood(logistic):
    """Test log-likelihood of private logistic regression (Geumlek et al. 2017, appendix).

    Loss in log-likelihood per test example against the non-private mode, linear below 0.01 nats; otherwise as figure 3.
    Bands are 95 % intervals over the draws of one split.
    """
    table = logistic[logistic.metric == "test_log_likelihood"]
    return _losses(table.assign(mean=-table["mean"]), "test_log_likelihood", "paper", "Loss per test example [nats]")


@figure("method_ranking")
def ranking(logistic_pairs):
    """Which of the diffused and the concentrated sampler has the lower test error (ours; Geumlek et al. 2017, figure
    3).

    Paired difference in test error, concentrated less diffused, against ln ε; above 0 diffused is ahead. Bars are 95 %
    intervals of the mean difference: over draws on one split (hollow) or, where there are more draws, over splits
    (filled).
    """
    contest = {"variant": "paper", "first": "concentrated", "second": "diffused", "metric": "test_error"}
    table = decisive(select(logistic_pairs, **contest))
    # Side by side, so that bars do not cover each other.
    shift = 0.12 * (table.order.rank(method="dense") - (table.order.nunique() + 1) / 2)
    table = table.assign(at=table.log_epsilon + shift, splits=table.n_splits > 1)
    plot = panels.panels(
        table, "at", "difference_mean", "difference_sem", columns="dataset", lines=("order",), bars=True,
        solid="splits", size=(_width(table), 1.9), share=(True, False), xlabel=style.AXES["log_epsilon"],
        ylabel="Test error,\nconcentrated less diffused",
    )  # fmt: skip
    for axes, _, _ in plot:
        axes.axhline(0, color="black", linewidth=0.8)
    high = table.difference_mean + style.NORMAL_95 * table.difference_sem
    wins = table[high < 0]
    alone = wins.dataset.unique().tolist() == ["abalone"] and wins.order.nunique() == 1
    words = f"Concentrated wins on Abalone alone, at λ = {wins.order.min():g} and small ε" if alone else ""
    panels.message(plot.figure, words, bool(words))
    panels.legend(plot.figure)
    return plot.figure


@figure("ops_radius")
def radius(ops_radius):
    """Test error of OPS against the radius of its ball, at one pure ε (ours; Geumlek et al. 2017, section 5.2).

    Pure ε-DP, ln ε = 2; the smallest balls spend less. A larger ball R leaves a smaller power ε/(2cR) of the
    likelihood. Vertical lines: the smallest ball that is sure to hold the mode (left), and the paper's c/β (right).
    Dots: always guessing the larger class. Bands are 95 % intervals over the draws of one split.
    """
    table = select(ops_radius, metric="test_error").assign(method="ops")
    plot = panels.panels(
        table, "radius", "mean", "sem", columns="dataset", size=(style.WIDTH, 1.5), share=(True, True), xscale="log",
        xlabel="Radius R of the ball", ylabel=f"Test error at ln ε = {table.log_epsilon.iloc[0]:g}\n(pure DP)",
    )  # fmt: skip
    better = []
    for axes, _, dataset in plot:
        here = select(table, dataset=dataset)
        axes.axhline(here.majority_error.iloc[0], color=style.GREY, linestyle=":", linewidth=0.8)
        # Each name where no curve passes.
        for times, words, height in ((1, "smallest", 0.6), (None, "paper's", 0.02)):
            place, error = one(here, times_smallest=times)[["radius", "mean"]]
            axes.axvline(place, color=style.GREY, linewidth=0.8, zorder=1)
            axes.annotate(
                words, (place, height), xycoords=("data", "axes fraction"), xytext=(-2, 0), textcoords="offset points",
                rotation=90, ha="right", va="bottom", fontsize=7, color=style.GREY,
            )  # fmt: skip
        better.append(here["mean"].min() < 0.9 * error)
    panels.message(plot.figure, "OPS is better on a smaller ball than the paper's", all(better))
    return plot.figure


def _width(table, column: str = "dataset") -> float:
    return style.WIDTH if table[column].nunique() > 1 else style.NARROW


def _losses(table, metric: str, variant: str, ylabel: str):
    """Return a figure of a metric less the non-private one against ln ε: rows are orders, columns data sets."""
    table = select(table, metric=metric)
    parts = [select(table, variant=variant).assign(charge="")]
    for name, (method, words) in CHARGES[variant].items():
        charged = select(table, variant=name, method="ops")
        parts.append(charged.assign(variant=variant, method=method, charge=words))
    table = panels.excess(pd.concat(parts), "mean", ["dataset", "variant"])
    looks = {
        # Drawn around the diffused sampler, with which it coincides.
        "ops_renyi": {"markerfacecolor": "none", "markersize": 6, "linewidth": 0.8},
        # Lighter: it is no method of the paper's figure.
        ("ops", SMALLEST): {
            "color": style.SMALLEST_BALL,
            "markerfacecolor": "white",
            "linestyle": "-",
            "linewidth": 0.8,
        },
    }
    plot = panels.panels(
        table, "log_epsilon", "mean", "sem", "order", "dataset", ("method", "charge"), look=looks,
        size=(_width(table), 1.35), share=(True, True), ylabel=ylabel,
    )  # fmt: skip
    for axes, _, _ in plot:
        panels.decades(axes, 0.01, table["mean"])
    _name_the_ball(plot, table)
    # Of the corrected variant OPS is charged by its own bound alone, which leaves it what diffused sampling has.
    ops, compare, words = {
        "paper": ("ops", operator.ge, "Charged as in the paper, OPS never leads"),
        "corrected": ("ops_renyi", operator.eq, "Charged by its own bound, OPS draws what diffused sampling draws"),
    }[variant]
    keys = ["dataset", "order", "log_epsilon"]
    worst = table[(table.method == ops) & (table.charge == "")].set_index(keys)
    others = table[table.method.isin(["diffused", "concentrated"])]
    behind = others.set_index(keys).join(worst["mean"].rename("ops"), how="inner")
    holds = len(behind) > 0 and compare(behind.ops, behind["mean"]).all()
    panels.message(plot.figure, words, bool(holds))
    panels.legend(plot.figure)
    return plot.figure


def _name_the_ball(canvas, table) -> None:
    """Write the name of the line of the smallest ball above its middle in the first panel that has it."""
    for axes, order, dataset in canvas:
        line = select(table, dataset=dataset, method="ops", charge=SMALLEST)
        line = line[line.order == order] if order is not None else line
        if len(line) > 1:
            point = line.sort_values("log_epsilon").iloc[len(line) // 2]
            axes.annotate(
                SMALLEST, (point.log_epsilon, point["mean"]), xytext=(-2, 5), textcoords="offset points", fontsize=7,
                color=style.SMALLEST_BALL,
            )  # fmt: skip
            return
