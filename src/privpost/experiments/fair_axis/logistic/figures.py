"""The figure of the study."""

from privpost.drawing import panels, style
from privpost.drawing.figures import figure

METRICS = {"test_error": "Test error above\nnon-private", "test_log_likelihood": "Loss per test\nexample [nats]"}


@figure("logistic")
def logistic(logistic):
    """Logistic regression by private posterior samples at the same (ε, δ), on three data sets (ours).

    One column per data set: test error and log-likelihood as losses against the non-private posterior, linear within
    0.01, on ε of (ε, δ)-DP at the larger δ; the smaller one gives nearly the same curves, which are in the table. OPS
    with a Rényi charge (rings) draws what the diffused sampler does, and the direct posterior, drawn where its ε is
    large enough, loses nothing. OPS on its smallest ball is pure ε-DP. Bars are 95 % intervals of the draws, on one
    train/test split.
    """
    table = panels.rows_of(logistic[logistic.metric.isin(list(METRICS))], "delta", logistic.delta.max())
    sign = (table.metric == "test_error").map({True: 1.0, False: -1.0})
    table = panels.excess(table.assign(mean=sign * table["mean"]), "mean", ["dataset", "metric"])
    table = table.assign(ball=table.variant.map({"smallest_ball": "smallest ball"}).fillna(""))
    look = {
        "ops_renyi": {"markerfacecolor": "none", "markersize": 6, "linestyle": ""},
        "direct": {"markerfacecolor": "none", "markersize": 9, "linestyle": ""},
        ("ops", "smallest ball"): {"color": style.SMALLEST_BALL, "linestyle": "-"},
    }
    plot = panels.panels(
        table, "epsilon", "mean", "sem", "metric", "dataset", ("method", "ball"), look=look, names=METRICS,
        bars=True, share=(True, "row"), size=(style.WIDTH, 1.6), xscale="log", xlabel=style.AXES["epsilon_delta"],
        ylabel=" ",
    )  # fmt: skip
    for axes, metric, _ in plot:
        panels.decades(axes, 0.01, table[table.metric == metric]["mean"])
    keys = ["dataset", "metric", "epsilon"]
    of = {name: rows.set_index(keys)["mean"] for name, rows in table[table.ball == ""].groupby("method")}
    holds = {"ops", "ops_renyi", "diffused"} <= set(of)
    holds = holds and (of["ops_renyi"] - of["diffused"]).abs().max() < 0.01 < (of["ops"] - of["diffused"]).min()
    panels.message(plot.figure, "Only its accounting sets OPS behind diffused sampling", holds)
    panels.legend(plot.figure)
    return plot.figure
