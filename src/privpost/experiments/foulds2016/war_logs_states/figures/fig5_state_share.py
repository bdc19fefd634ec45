"""Share of regions in each state over time (Foulds et al. 2016, figure 5)."""

import numpy as np

from privpost.drawing import multiples
from privpost.evaluation.rows import select
from privpost.experiments.foulds2016 import war_log_style as logs


def draw(tables):
    """Return the share of regions in each state by month, states side by side: the Laplace HMM's, and the non-private.

    Shares are of the regions that have events in that month. One release; the distance of the lines shows its noise.
    """
    table = select(logs.reached(tables["war_logs_assignments"]), summary="mode")
    names = logs.datasets(table)
    n_columns = int(table.state.max())
    figure, panels = multiples.grid(len(names), n_columns, 0.9 + 1.15 * len(names), sharey=True)
    for line, name in zip(panels, names, strict=True):
        own = select(table, dataset=name)
        months, n_states = logs.month_range(own.month), int(own.state.max())
        for place, axes in enumerate(line):
            if place >= n_states:
                axes.set_axis_off()
                continue
            _panel(axes, own, place, n_states, months)
            axes.set(ylim=(0, 1), xlim=(-0.5, len(months) - 0.5), title=f"{logs.TITLES[name]}: state {place + 1}")
            axes.title.set_fontsize(7)
            logs.year_ticks(axes, months)
            axes.tick_params(axis="x", labelsize=6)
        line[0].set_ylabel("Share of regions", fontsize=7)
    multiples.label_outer(panels, "Month")
    epsilon = select(table, method="laplace").epsilon.iloc[0]
    note = f"Laplace HMM: ε = {epsilon:g} in all (pure DP, unconditional), clipped counts; {logs.drawn_rhats(table)}."
    line = multiples.entry(color="black", linewidth=0.8, label="non-private HMM")
    logs.caption_maps(figure, table, note, [line])
    return figure


def _panel(axes, own, place: int, n_states: int, months) -> None:
    shares = {}
    for method, variant in (("laplace", "paper"), ("non_private", None)):
        rows = select(own, method=method, variant=variant)
        if len(rows) and rows.converged.astype(bool).all():
            shares[method] = _shares(rows, months, n_states)[place + 1]
    if not shares:
        logs.draw_nothing(axes, "")
        return
    x = np.arange(len(months))
    if "laplace" in shares:
        axes.bar(x, shares["laplace"], width=1, color=logs.STATE_COLORS[place])
    if "non_private" in shares:
        axes.step(x, shares["non_private"], where="mid", color="white", linewidth=2)
        axes.step(x, shares["non_private"], where="mid", color="black", linewidth=0.8)
    axes.grid(visible=False)


def _shares(rows, months, n_states):
    """Return shares, months × states from 1 on, of the regions that have a state in a month; nan where none has."""
    import pandas as pd

    shares = pd.crosstab(rows.month, rows.state.astype(int), normalize="index")
    return shares.reindex(columns=range(1, n_states + 1), fill_value=0).reindex(months)
