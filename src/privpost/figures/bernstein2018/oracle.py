"""Where the normal approximation of the noise-aware Gibbs sampler breaks down (ours)."""

from __future__ import annotations

from privpost.figures import style

COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7")


def draw(tables):
    """Return the figure: total variation between the noise-aware and the exact posterior of bits, against n.

    Lines: the sampler's stationary law by quadrature, with bars of two standard errors over releases. Open markers:
    its pooled draws over equally likely bins, which only lose distance but carry Monte Carlo noise; dotted: that noise.
    """
    import matplotlib.pyplot as plt
    from matplotlib.lines import Line2D

    table = tables["oracle"].sort_values("n")
    figure, axes = plt.subplots(figsize=(style.ONE_COLUMN, 2.9))
    for (epsilon, rows), color in zip(table.groupby("epsilon"), COLORS, strict=False):
        error = 2 * rows.total_variation_sem
        axes.errorbar(rows.n, rows.total_variation, yerr=error, color=color, marker="s", label=f"{epsilon:g}-DP")
        axes.plot(rows.n, rows.total_variation_sampled, "o", color=color, markerfacecolor="none")
        axes.plot(rows.n, rows.sampling_floor, ":", color=color, linewidth=0.8)
    axes.set(xscale="log", yscale="log", xlabel="records n", ylabel="total variation from the exact posterior")
    handles, labels = axes.get_legend_handles_labels()
    handles += [Line2D([], [], color="#444444", marker="o", linestyle="", markerfacecolor="none")]
    handles += [Line2D([], [], color="#444444", linestyle=":", linewidth=0.8)]
    figure.legend(handles, [*labels, "draws, binned", "their noise"], loc="outside lower center", ncols=3)
    return figure
