"""OPS's final sample beside the Laplace HMM's most frequent states (Foulds et al. 2016, figure 7)."""

from __future__ import annotations

from privpost.figures.foulds2016 import war_log_style as logs


def draw(tables):
    """Return the maps: the Laplace HMM, and OPS's final sample at both truncations, one row per data set.

    Above each OPS map stands the share of cells whose state differs from the Laplace map's. One release each;
    `war_logs_maps.csv` has the means over independent releases and their errors.
    """
    table = tables["war_logs_assignments"]
    truncations = sorted(table.truncation.dropna().unique())
    figure, panels = logs.map_rows(table, 1 + len(truncations), 0.6)
    for name, line in panels.items():
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
    logs.caption_maps(
        figure,
        table,
        f"ε = {ops.epsilon.iloc[0]:g} (pure DP): Laplace unconditionally, OPS {logs.worst_case(ops)} "
        f"(R-hat: {', '.join(sorted(set(ops.rhat_max.astype(str))))}).",
    )
    return figure
