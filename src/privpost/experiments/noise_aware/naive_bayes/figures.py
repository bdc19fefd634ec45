"""Figure of predictions and posteriors of naive Bayes from noisy counts."""

import numpy as np
import pandas as pd

from privpost.drawing import facets, style
from privpost.drawing.figures import figure

METRICS = {
    "accuracy": "Accuracy lost [share]",
    "log_likelihood": "Log-likelihood lost [nats]",
    "mmd2": "MMD to the non-private posterior",
}
NAMES = {"paper": "", "consistent": "least-squares counts", "families": "one node at a time"}


@figure("naive_bayes")
def losses(naive_bayes):
    """Predictions and posteriors of naive Bayes from counts with Laplace noise, noise-aware or noise-naive (ours).

    The figure is for the study's smallest n. True parameters are drawn from the posteriors' prior, Beta(1, 1).
    Accuracy and log-likelihood are losses against the non-private posterior. MMD is the root mean square over three
    parameters and all repeats. Bars are 95 % intervals. Other cases look alike, and are in the table.
    """
    table = naive_bayes[(naive_bayes.n == naive_bayes.n.min()) & (naive_bayes.concentration == 1)]
    lost = facets.excess(table[table.metric.isin(["accuracy", "log_likelihood"])], "mean", ["metric"])
    low, high = facets.ends(lost := lost.assign(mean=-lost["mean"]), "mean", "sem")
    squared = table[table.metric == "mmd2"]
    mmd, *ends = (np.sqrt(np.maximum(end, 0)) for end in (squared["mean"], *facets.ends(squared, "mean", "sem")))
    parts = [lost.assign(value=lost["mean"], low=low, high=high), squared.assign(value=mmd, low=ends[0], high=ends[1])]
    shown = pd.concat(parts)
    grid = facets.lines(
        facets.named(shown, "variant", names=NAMES), "epsilon", "value", ("low", "high"), col="metric", names=METRICS,
        share=(True, False), size=(style.WIDTH, 1.9), xscale="log", yscale="log",
    )  # fmt: skip
    least = shown.groupby(["metric", "epsilon", shown.method == "naive"]).value.min().unstack()
    holds = {True, False} <= set(least) and (least[False] < least[True]).all()
    words = "The exact noise-aware posterior is best by every measure" if holds else ""
    return facets.finish(grid, words, "epsilon", note=f"Naive Bayes, synthetic records, {facets.fixed(table, 'n')}")
