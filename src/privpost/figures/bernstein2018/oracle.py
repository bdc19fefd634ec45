"""Where the normal approximation of the noise-aware Gibbs sampler breaks down (ours)."""

from __future__ import annotations

import numpy as np

from privpost.figures import style

COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7")


def draw(tables):
    """Return the figure: total variation between the noise-aware and the exact posterior of bits, against n.

    One panel per prior. Lines: the sampler's stationary law by quadrature, with bars of two standard errors over
    releases (cut where they would reach 0). Open markers:
    its pooled draws over equally likely bins, which only lose distance but carry Monte Carlo noise; dotted: that noise.
    """
    import matplotlib.pyplot as plt
    from matplotlib.lines import Line2D

    table = tables["oracle"].sort_values("n")
    priors = sorted(table.prior.unique(), reverse=True)
    priors = sorted(priors, key=lambda prior: table[table.prior == prior].total_variation.mean())
    size = (style.TWO_COLUMNS * 0.8, 3.2)
    figure, panels = plt.subplots(1, len(priors), figsize=size, sharex=True, sharey=True, squeeze=False)
    for axes, prior in zip(panels[0], priors, strict=True):
        for (epsilon, rows), color in zip(table[table.prior == prior].groupby("epsilon"), COLORS, strict=False):
            error = 2 * rows.total_variation_sem
            low = np.minimum(error, 0.9 * rows.total_variation)
            look = {"color": color, "marker": "s", "label": f"{epsilon:g}-DP"}
            axes.errorbar(rows.n, rows.total_variation, yerr=[low, error], **look)
            axes.plot(rows.n, rows.total_variation_sampled, "o", color=color, markerfacecolor="none")
            axes.plot(rows.n, rows.sampling_floor, ":", color=color, linewidth=0.8)
        axes.set(xscale="log", yscale="log", xlabel="records n", title=f"prior {prior}")
    panels[0, 0].set_ylabel("total variation to the exact posterior")
    handles, labels = panels[0, 0].get_legend_handles_labels()
    handles += [Line2D([], [], color="#444444", marker="o", linestyle="", markerfacecolor="none")]
    handles += [Line2D([], [], color="#444444", linestyle=":", linewidth=0.8)]
    labels += ["Gibbs draws, binned", "their Monte Carlo noise"]
    figure.legend(handles, labels, loc="outside lower center", ncols=3)
    return figure
