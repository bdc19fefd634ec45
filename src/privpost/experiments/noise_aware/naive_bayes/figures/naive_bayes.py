"""Predictions and posteriors of naive Bayes from Laplace-released counts, noise-aware against noise-naive."""

from privpost.drawing import multiples
from privpost.evaluation.rows import select
from privpost.experiments.noise_aware import network_panels

METRICS = {
    "accuracy": "Accuracy",
    "log_likelihood": "Held-out log-likelihood\nper record, nats",
    "mmd2": "MMD to the\ntrue posterior",
}


def draw(tables):
    """Return the figure: one row per law of the parameters and n, one column per score, on ε of ε-DP.

    MMD: root of the mean square over three parameters and all repeats. Bars are two standard errors either side, mostly
    smaller than the markers. Beta(c, c) is the law that parameters are drawn from; all posteriors have the prior
    Beta(1, 1).
    """
    table = tables["naive_bayes"]
    cells = sorted({(row.n, row.concentration) for row in table.itertuples()}, key=lambda cell: (cell[1] != 1, *cell))
    figure, panels = multiples.grid(len(cells), len(METRICS), 1.5 * len(cells) + 0.7, sharex=True, sharey="col")
    for row, (n, concentration) in zip(panels, cells, strict=True):
        network_panels.scores(row, select(table, n=n, concentration=concentration), METRICS)
        row[1].set_title(f"n = {n}, parameters ~ Beta({concentration:g}, {concentration:g})")
    for axes in panels[:, -1]:
        axes.set_ylim(bottom=0)
    multiples.label_outer(panels, "Privacy cost ε, ε-DP")
    network_panels.legend(figure, table, ncols=3)
    return figure
