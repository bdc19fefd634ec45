"""Which of the diffused and the concentrated sampler has the lower test error (ours; Geumlek et al. 2017, figure 3)."""

from privpost.drawing import multiples, style
from privpost.evaluation.rows import select
from privpost.experiments.geumlek2017.logistic.study import decisive
from privpost.experiments.geumlek2017.panels import TITLES


def draw(tables):
    """Return the paired difference in test error, concentrated less diffused, against ln epsilon, by data set.

    Above 0 diffused is ahead. Bars are two standard errors of the mean difference: over draws on one split, or,
    where there are more draws and markers are filled, over splits.
    """
    contest = {"variant": "paper", "first": "concentrated", "second": "diffused", "metric": "test_error"}
    rows = decisive(select(tables["logistic_pairs"], **contest))
    datasets = [name for name in TITLES if name in set(rows.dataset)]
    orders = sorted(rows.order.unique())
    width = style.TWO_COLUMNS if len(datasets) > 1 else style.ONE_COLUMN
    figure, panels = multiples.grid(1, len(datasets), 2.8, width=width)
    for axes, dataset in zip(panels[0], datasets, strict=True):
        part = rows[rows.dataset == dataset]
        axes.axhline(0, color="black", linewidth=0.8)
        for (order, shade), marker in zip(multiples.shades(orders, 0.1, 0.8).items(), "osD^v<>", strict=False):
            curve = part[part.order == order].sort_values("log_epsilon")
            # Side by side, so that bars do not cover each other.
            shift = 0.12 * (orders.index(order) - (len(orders) - 1) / 2)
            look = {"color": shade, "marker": marker}
            at, bars = curve.log_epsilon + shift, 2 * curve.difference_sem
            multiples.bars(axes, at, curve.difference_mean, bars, filled=False, label=f"λ = {order:g}", **look)
            many = curve.n_splits > 1
            axes.plot(at[many], curve.difference_mean[many], linestyle="", zorder=4, **look)
        runs = sorted(set(zip(part.n_splits, part.n_repeats * part.draws, strict=True)))
        words = [f"{draws} draws, {splits} split" + "s" * (splits > 1) for splits, draws in runs]
        axes.set_title("\n".join([TITLES[dataset], *words]))
        axes.set_xlabel("Privacy cost ln ε, (λ, ε)-RDP")
    panels[0, 0].set_ylabel("Test error, concentrated − diffused")
    title = "Above 0: diffused is ahead; bars: ± two standard errors; filled: over splits"
    multiples.legend(figure, axes=panels[0, 0], title=title, title_fontsize=7)
    return figure
