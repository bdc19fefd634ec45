"""OPS's final sample beside the Laplace HMM's most frequent states (Foulds et al. 2016, figure 7)."""

from __future__ import annotations

from privpost.figures import style
from privpost.figures.foulds2016 import war_log_style as logs


def draw(tables):
    """Return the maps: the Laplace HMM, and OPS's final sample at both truncations, one row per data set.

    Above each OPS map stands the share of cells whose state differs from the Laplace map's. One release each;
    `war_logs_maps.csv` has the means over independent releases and their errors.
    """
    import matplotlib.pyplot as plt

    table = tables["war_logs_assignments"]
    names = logs.datasets(table)
    truncations = sorted(table.truncation.dropna().unique())
    heights = [0.6 + 0.16 * logs.select(table, dataset=name).region.nunique() for name in names]
    figure, panels = plt.subplots(
        len(names),
        1 + len(truncations),
        figsize=(style.TWO_COLUMNS, 0.6 + sum(heights)),
        height_ratios=heights,
        sharey="row",
        squeeze=False,
    )
    for line, name in zip(panels, names, strict=True):
        own = logs.select(table, dataset=name)
        n_states = int(own.state.max())
        laplace = logs.select(own, method="laplace", variant="paper")
        logs.draw_map(line[0], laplace, n_states, f"{logs.TITLES[name]}:\nLaplace, most frequent")
        for axes, truncation in zip(line[1:], truncations, strict=True):
            ops = logs.select(own, method="ops", truncation=truncation)
            both = laplace.merge(ops, on=["region", "month"], suffixes=("", "_ops"))
            differs = (both.state != both.state_ops).mean()
            label = f"OPS, final sample, M = {truncation:g}\n{100 * differs:.0f} % of cells differ"
            logs.draw_map(axes, ops, n_states, label)
    ops = logs.select(table, method="ops")
    for axes in panels[-1]:
        axes.set_xlabel("Month")
    figure.suptitle(
        f"ε = {ops.epsilon.iloc[0]:g} (pure DP): Laplace unconditionally, OPS {logs.worst_case(ops)} "
        f"(R-hat: {', '.join(sorted(set(ops.rhat_max.astype(str))))}).\n{logs.selection_note(table)}",
        fontsize=7,
    )
    logs.state_legend(figure, int(table.state.max()))
    return figure
