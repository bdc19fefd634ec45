"""What figures on Bayesian networks share: calibration and losses of their posteriors, side by side."""

import numpy as np
import pandas as pd

from privpost.drawing import calibration, panels

METRICS = {
    "ks": "KS distance\n÷ 95 % limit",
    "accuracy": "Accuracy lost",
    "log_likelihood": "Log-likelihood\nlost [nats]",
    "mmd2": "MMD to\nnon-private",
}
NAMES = {"paper": "", "consistent": "least-squares counts", "families": "family by family"}
LINES = ("method", "variant")
# The smallest loss that is drawn.
FLOOR = {"ks": 1e-2, "accuracy": 1e-3, "log_likelihood": 2e-3, "mmd2": 1e-3}


def losses(scores, distances, keys: list[str]):
    """Return a table of metrics (`METRICS`) with `value` and the ends `low` and `high` of 95 % intervals.

    Accuracy and log-likelihood are losses against the non-private posterior at the same `keys`; MMD is the root of its
    square; KS distances over their limit have one row per method and ε, the median over parameters.
    """
    lost = panels.excess(scores[scores.metric.isin(["accuracy", "log_likelihood"])], "mean", [*keys, "metric"])
    lost = lost.assign(mean=-lost["mean"])
    squared = scores[scores.metric == "mmd2"]
    parts = []
    for part, root in ((lost, False), (squared, True)):
        ends = [part["mean"], *panels.interval(part["mean"], part["sem"])]
        values = [np.sqrt(np.maximum(end, 0)) if root else end for end in ends]
        parts.append(part.assign(value=values[0], low=values[1], high=values[2]))
    over = calibration.over_limit(distances)
    over = over.groupby([*keys, *LINES, "epsilon"], dropna=False, sort=False).over.median().reset_index()
    low, high = calibration.ends(over)
    return pd.concat([over.assign(metric="ks", value=over.over, low=low, high=high), *parts], ignore_index=True)


def draw(table, rows: str, metrics: list[str], height: float = 1.5):
    """Return panels of metrics of `losses`, one row per value of a column, one column per metric."""
    names, values = list(metrics), panels.ordered(table[rows])
    figure, axes = panels.grid(len(values), len(names), 0.6 + height * len(values), sharex=True, sharey="col")
    looks = panels.looks(table, LINES, names=NAMES)
    for panel, value, metric in panels.Panels(figure, axes, values, names):
        here = table[(table[rows] == value) & (table.metric == metric)]
        ends = lambda part, floor=FLOOR[metric]: (np.maximum(part.low, floor), np.maximum(part.high, floor))  # noqa: E731
        panels.curves(
            panel, here.assign(value=here.value.clip(lower=FLOOR[metric])), "epsilon", "value", ends, LINES, looks, True
        )
        if metric == "ks":
            calibration.calibrated(panel)
        panel.set(xscale="log", yscale="log", xlabel="ε (pure DP)" if panel in axes[-1] else "")
        if panel in axes[0]:
            panel.set_title(METRICS[metric])
        if metric == names[0]:
            panel.set_ylabel(panels.named(rows, value) if len(values) > 1 else "")
    shown = table[table.metric.isin(names) & ~(table.method == "non_private")]
    least = shown.groupby(["metric", rows, "epsilon", shown.method == "naive"]).value.min().unstack()
    holds = {True, False} <= set(least) and (least[False] < least[True]).all()
    panels.message(figure, "Counting the noise in is better by every measure", bool(holds))
    panels.legend(figure)
    return figure
