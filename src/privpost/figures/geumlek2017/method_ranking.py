"""Which of the diffused and the concentrated sampler has the lower test error (ours; Geumlek et al. 2017, figure 3)."""

from __future__ import annotations

import numpy as np

from privpost.figures import multiples, style
from privpost.figures.geumlek2017.panels import TITLES


def draw(tables):
    """Return the paired difference in test error, concentrated less diffused, against ln epsilon, by data set.

    Above 0 diffused is ahead. Bars are two standard errors of the mean difference: over draws on one split, or,
    where there are more draws, over splits.
    """
    import matplotlib.pyplot as plt

    pairs = tables["logistic_pairs"]
    rows = pairs[(pairs.variant == "paper") & (pairs["first"] == "concentrated") & (pairs["second"] == "diffused")]
    rows = rows[(rows.metric == "test_error") & (rows.draws == rows.groupby("dataset").draws.transform("max"))]
    datasets = [name for name in TITLES if name in set(rows.dataset)]
    orders = sorted(rows.order.unique())
    shades = plt.get_cmap("viridis")(np.linspace(0.1, 0.8, len(orders)))
    width = style.TWO_COLUMNS if len(datasets) > 1 else style.ONE_COLUMN
    figure, panels = multiples.grid(1, len(datasets), 2.8, width=width)
    for axes, dataset in zip(panels[0], datasets, strict=True):
        part = rows[rows.dataset == dataset]
        axes.axhline(0, color="black", linewidth=0.8)
        for order, shade, marker in zip(orders, shades, "osD^v<>", strict=False):
            curve = part[part.order == order].sort_values("log_epsilon")
            # Side by side, so that bars do not cover each other.
            shift = 0.12 * (orders.index(order) - (len(orders) - 1) / 2)
            axes.errorbar(
                curve.log_epsilon + shift,
                curve.difference_mean,
                2 * curve.difference_sem,
                color=shade,
                marker=marker,
                label=f"λ = {order:g}",
            )
        splits, draws = int(part.n_splits.iloc[0]), int(part.n_repeats.iloc[0] * part.draws.iloc[0])
        words = f"{splits} split" + "s" * (splits > 1)
        axes.set_title(f"{TITLES[dataset]}\n{draws} draws, {words}")
        axes.set_xlabel("Privacy cost ln ε, (λ, ε)-RDP")
    panels[0, 0].set_ylabel("Test error, concentrated − diffused")
    title = "Above 0: diffused is ahead; bars: ± two standard errors"
    multiples.legend(figure, axes=panels[0, 0], title=title, title_fontsize=7)
    return figure
