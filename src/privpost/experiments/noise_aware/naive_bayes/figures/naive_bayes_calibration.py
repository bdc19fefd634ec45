"""Calibration of naive Bayes posteriors from Laplace-released counts, noise-aware against noise-naive."""

from privpost.drawing import multiples
from privpost.evaluation.calibration import ks_limit
from privpost.evaluation.rows import select
from privpost.experiments.noise_aware import network_panels


def draw(tables):
    """Return the figure: one row per n, one column per parameter, and the empirical CDF of one at the ε next to 1.

    U is the quantile of the true parameter in its posterior, parameters drawn from the prior. Grey: the limit that the
    KS statistic of uniform U exceeds with probability 5 %, and the band of their CDF.
    """
    table, ecdf = (select(tables[f"naive_bayes_{name}"], concentration=1) for name in ("calibration", "ecdf"))
    sizes, parameters = sorted(table.n.unique()), list(dict.fromkeys(table.parameter))
    figure, panels = multiples.grid(len(sizes), len(parameters) + 1, 1.7 * len(sizes) + 0.6)
    for row, n in zip(panels, sizes, strict=True):
        here = table[table.n == n]
        limit = ks_limit(int(here.n_trials.max()))
        for axes, parameter in zip(row, parameters, strict=False):
            network_panels.curves(axes, here[here.parameter == parameter], "ks")
            axes.axhspan(0, limit, color="#cccccc", alpha=0.5, linewidth=0)
            axes.set(title=f"n = {n}, θ of {parameter}", ylim=(0, 1.05 * table.ks.max()))
        row[0].set_ylabel("KS statistic of U")
        chosen = select(ecdf, n=n, parameter=parameters[-1])
        network_panels.ecdf_differences(row[-1], chosen, int(here.n_trials.max()))
        row[-1].set(title=f"{parameters[-1]}, ε = {chosen.epsilon.max():.2g}", ylabel="CDF of U minus u")
    multiples.label_outer(panels, "Privacy cost ε, ε-DP")
    panels[-1, -1].set_xlabel("u")
    network_panels.legend(figure, table, ncols=3)
    return figure
