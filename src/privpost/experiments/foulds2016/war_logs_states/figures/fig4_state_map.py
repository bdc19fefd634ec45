"""Most frequent states of regions over months (Foulds et al. 2016, figure 4)."""

from privpost.evaluation.rows import select
from privpost.experiments.foulds2016 import war_log_style as logs

COLUMNS = (("laplace", "paper", "Laplace HMM"), ("non_private", None, "non-private HMM"))


def draw(tables):
    """Return the maps: one row per data set, the Laplace HMM beside the non-private one, white where no event fell.

    States have the same colour where their emissions match best. One release each; `war_logs_maps.csv` has the means
    over independent releases and their errors.
    """
    table = select(logs.reached(tables["war_logs_assignments"]), summary="mode")
    figure, panels = logs.map_rows(table, len(COLUMNS), 0.5)
    for name, line in panels.items():
        own = select(table, dataset=name)
        for axes, (method, variant, label) in zip(line, COLUMNS, strict=True):
            rows = select(own, method=method, variant=variant)
            logs.draw_map(axes, rows, int(own.state.max()), f"{logs.TITLES[name]}: {label}")
    epsilon = select(table, method="laplace").epsilon.iloc[0]
    note = f"Laplace HMM: ε = {epsilon:g} in all (pure DP, unconditional), clipped counts; {logs.drawn_rhats(table)}."
    logs.caption_maps(figure, table, note)
    return figure
