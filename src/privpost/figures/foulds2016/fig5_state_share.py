"""Share of regions in each state over time (Foulds et al. 2016, figure 5)."""

from __future__ import annotations

import numpy as np

from privpost.figures import multiples
from privpost.figures.foulds2016 import war_log_style as logs


def draw(tables):
    """Return stacked shares of regions by month for the Laplace HMM; lines are the non-private HMM's boundaries.

    Shares are of the regions that have events in that month. One release; the distance from the lines shows its noise.
    """
    table = tables["war_logs_assignments"]
    names = logs.datasets(table)
    n_columns = min(2, len(names))
    n_rows = -(-len(names) // n_columns)
    figure, panels = multiples.grid(n_rows, n_columns, 0.7 + 1.6 * n_rows, sharey=True)
    for axes, name in zip(panels.ravel(), names, strict=False):
        own = logs.select(table, dataset=name)
        n_states = int(own.state.max())
        months = logs.month_range(own.month)
        laplace = _shares(logs.select(own, method="laplace", variant="paper"), months, n_states)
        plain = _shares(logs.select(own, method="non_private"), months, n_states)
        bottom = np.zeros(len(months))
        for state, share in enumerate(laplace.T):
            axes.bar(range(len(months)), share, width=1, bottom=bottom, color=logs.STATE_COLORS[state])
            bottom += share
        for boundary in np.cumsum(plain, axis=1).T[:-1]:
            axes.step(range(len(months)), boundary, where="mid", color="white", linewidth=2)
            axes.step(range(len(months)), boundary, where="mid", color="black", linewidth=0.8)
        axes.set(ylim=(0, 1), xlim=(-0.5, len(months) - 0.5), title=logs.TITLES[name])
        axes.grid(visible=False)
        logs.year_ticks(axes, months)
    for axes in panels.ravel()[len(names) :]:
        axes.set_axis_off()
    multiples.label_outer(panels, y="Share of regions")

    line = multiples.entry(color="black", linewidth=0.8, label="boundaries, non-private HMM")
    epsilon = logs.select(table, method="laplace").epsilon.iloc[0]
    multiples.label_outer(panels, "Month")
    figure.suptitle(
        f"Laplace HMM: ε = {epsilon:g} in all (pure DP, unconditional), clipped counts.\n{logs.selection_note(table)}",
        fontsize=7,
    )
    logs.state_legend(figure, int(table.state.max()), [line])
    return figure


def _shares(rows, months, n_states) -> np.ndarray:
    """Return shares (months, states) of the regions that have a state in a month; nan where none has."""
    counts = np.zeros((len(months), n_states))
    place = rows.month.map({month: index for index, month in enumerate(months)})
    np.add.at(counts, (place.to_numpy(), rows.state.to_numpy(int) - 1), 1)
    with np.errstate(invalid="ignore"):
        return counts / counts.sum(axis=1, keepdims=True)
