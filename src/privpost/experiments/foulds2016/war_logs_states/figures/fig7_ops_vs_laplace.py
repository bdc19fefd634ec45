"""OPS's final sample above an estimate from all of its samples after burn-in (Foulds et al. 2016, figure 7)."""

from privpost.drawing import multiples
from privpost.evaluation.rows import select
from privpost.experiments.foulds2016 import war_log_style as logs

KINDS = (("final", "final sample (released)"), ("mode", "most frequent states (not private)"))


def draw(tables):
    """Return the maps of Afghanistan, OPS's final sample above its most frequent states, one column per truncation.

    The files of the first data set where Afghanistan's are missing. One release; `war_logs_maps.csv` has the means over
    independent releases and their errors.
    """
    table = select(logs.reached(tables["war_logs_assignments"]), method="ops")
    name = logs.datasets(table)[0]
    own = select(table, dataset=name)
    truncations, n_regions = sorted(own.truncation.unique()), own.region.nunique()
    figure, panels = multiples.grid(len(KINDS), len(truncations), 1.0 + 2 * (0.35 + 0.2 * n_regions), sharey=True)
    for axes, (kind, words), truncation in multiples.cells(panels, KINDS, truncations):
        rows = select(own, truncation=truncation, summary=kind)
        title = f"{logs.TITLES[name]}, OPS, M = {truncation:g}:\n{words}"
        logs.draw_map(axes, rows, int(own.state.max()), title)
    multiples.label_outer(panels, "Month")
    for line in panels:
        # Regions are named at the first map, which may stand right of chains that have not converged.
        for axes in [axes for axes in line if axes.images][:1]:
            axes.tick_params(labelleft=True)
    released = select(own, summary="final")
    note = f"ε = {own.epsilon.iloc[0]:g} (pure DP) pays for the final sample {logs.worst_case(released)} "
    logs.caption_maps(figure, own, f"{note}({logs.rhats(own)}).")
    return figure
