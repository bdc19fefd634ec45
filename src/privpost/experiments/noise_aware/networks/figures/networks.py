"""Bayesian networks with several parents from Laplace-released counts, noise-aware against noise-naive."""

from privpost.drawing import multiples
from privpost.evaluation.calibration import ks_limit
from privpost.experiments.noise_aware import network_panels

METRICS = {
    "accuracy": "Accuracy,\nmean over nodes",
    "log_likelihood": "Log-likelihood per\nnew record, nats",
    "mmd2": "MMD to the\ntrue posterior",
}


def draw(tables):
    """Return the figure: one row per network, one column per score, on ε of ε-DP.

    First column: median over parameters of the KS statistic of U, the quantile of the true parameter; below the grey
    limit lie 95 % of those of uniform U. Accuracy is the chance to predict a node from all others. Bars are two
    standard errors either side.
    """
    table, calibration = tables["networks"], tables["networks_calibration"]
    graphs = list(dict.fromkeys(table.graph))
    figure, panels = multiples.grid(len(graphs), len(METRICS) + 1, 1.6 * len(graphs) + 0.6, sharex=True, sharey="col")
    for row, graph in zip(panels, graphs, strict=True):
        here = calibration[calibration.graph == graph]
        keys = ["method", "variant", "epsilon"]
        network_panels.curves(row[0], here.groupby(keys, dropna=False).ks.median().reset_index(), "ks")
        row[0].axhspan(0, ks_limit(int(here.n_trials.max())), color="#cccccc", alpha=0.5, linewidth=0)
        name = graph.replace("_", " ")
        row[0].set(ylabel=f"network: {name}\n\nKS statistic of U,\nmedian", ylim=(0, None))
        network_panels.scores(row[1:], table[table.graph == graph], METRICS)
        row[-1].set_ylim(bottom=0)
    multiples.label_outer(panels, "Privacy cost ε, ε-DP")
    network_panels.legend(figure, table, ncols=4)
    return figure
