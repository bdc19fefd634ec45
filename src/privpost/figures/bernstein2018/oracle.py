"""Where the normal approximation of the noise-aware Gibbs sampler breaks down (ours)."""

from __future__ import annotations

import numpy as np

from privpost.figures import multiples, style

COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7")


def draw(tables):
    """Return the figure: total variation between the noise-aware and the exact posterior of bits, against n.

    One panel per prior. Lines: the sampler's stationary law by quadrature, with bars of two standard errors over
    releases (cut where they would reach 0). Open markers:
    its pooled draws over equally likely bins, which only lose distance but carry Monte Carlo noise; dotted: that noise.
    """
    table = tables["oracle"].sort_values("n")
    priors = sorted(table.prior.unique(), reverse=True)
    priors = sorted(priors, key=lambda prior: table[table.prior == prior].total_variation.mean())
    figure, panels = multiples.grid(1, len(priors), 3.2, width=style.TWO_COLUMNS * 0.8, sharex=True, sharey=True)
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
    draws = {"marker": "o", "linestyle": "", "markerfacecolor": "none", "label": "Gibbs draws, binned"}
    noise = {"linestyle": ":", "linewidth": 0.8, "label": "their Monte Carlo noise"}
    handles = [multiples.entry(color="#444444", **look) for look in (draws, noise)]
    multiples.legend(figure, handles, axes=panels[0, 0], ncols=3)
    return figure
