"""Most frequent states of regions over months (Foulds et al. 2016, figure 4)."""

from __future__ import annotations

from privpost.figures import style
from privpost.figures.foulds2016 import war_log_style as logs

COLUMNS = (("laplace", "paper", "Laplace HMM"), ("non_private", None, "non-private HMM"))


def draw(tables):
    """Return the maps: one row per data set, the Laplace HMM beside the non-private one, white where no event fell.

    States have the same colour where their emissions match best. One release each; `war_logs_maps.csv` has the means
    over independent releases and their errors.
    """
    import matplotlib.pyplot as plt

    table = tables["war_logs_assignments"]
    names = logs.datasets(table)
    heights = [0.5 + 0.16 * logs.select(table, dataset=name).region.nunique() for name in names]
    figure, panels = plt.subplots(
        len(names),
        2,
        figsize=(style.TWO_COLUMNS, 0.6 + sum(heights)),
        height_ratios=heights,
        sharey="row",
        squeeze=False,
    )
    for line, name in zip(panels, names, strict=True):
        own = logs.select(table, dataset=name)
        for axes, (method, variant, label) in zip(line, COLUMNS, strict=True):
            rows = logs.select(own, method=method, variant=variant)
            logs.draw_map(axes, rows, int(own.state.max()), f"{logs.TITLES[name]}: {label}")
    epsilon = logs.select(table, method="laplace").epsilon.iloc[0]
    for axes in panels[-1]:
        axes.set_xlabel("Month")
    figure.suptitle(
        f"Laplace HMM: ε = {epsilon:g} in all (pure DP, unconditional), clipped counts.\n{logs.selection_note(table)}",
        fontsize=7,
    )
    logs.state_legend(figure, int(table.state.max()))
    return figure
