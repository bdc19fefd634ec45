"""The figure of the study."""

from privpost.drawing import panels, style
from privpost.drawing.figures import figure


@figure("kl_curves")
def divergence(posterior_divergence):
    """KL divergence from the non-private posterior to the private ones (Foulds et al. 2016, lemma 1).

    Mean divergence against the number of records, one panel per p, one line style per ε of pure DP. Bands are 95 %
    intervals, mostly thinner than the lines; grey: theory, the term in 1/n for Laplace and the limit
    ½(ln T + 1/T − 1) for OPS, whose non-private posterior is truncated to [a₀, 1 − a₀] as it is itself.
    """
    table = posterior_divergence
    plot = panels.panels(
        table, "n", "kl_mean", "kl_sem", columns="p", lines=("method", "epsilon"), size=(style.WIDTH, 2.0),
        xscale="log", yscale="log", ylabel="E KL(non-private ‖ private) [nats]",
    )  # fmt: skip
    for axes, _, p in plot:
        theory = table[(table.p == p) & (table.kl_theory < 10)].sort_values("n")
        for _, rows in theory.groupby(["method", "epsilon"]):
            axes.plot(rows.n, rows.kl_theory, color="#bbbbbb", linewidth=2.5, zorder=0, label="Theory for large n")
    last = table[table.n == table.n.max()].groupby("method").kl_mean
    holds = {"laplace", "ops"} <= set(last.groups) and last.get_group("laplace").max() < last.get_group("ops").min() / 5
    panels.message(plot.figure, "The divergence of Laplace vanishes, that of OPS does not", holds)
    panels.legend(plot.figure)
    return plot.figure
