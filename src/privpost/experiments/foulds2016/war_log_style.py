"""What the figures on war logs share: names of data sets, colours of states, maps of states."""

import numpy as np

from privpost.drawing import multiples
from privpost.evaluation.rows import select

TITLES = {
    "afghanistan": "Afghanistan",
    "afghanistan_dense": "Afghanistan, dense part",
    "iraq_sigact": "Iraq SIGACT (stand-in)",
    "iraq_simulated": "Iraq, simulated (stand-in)",
}
# Tol's muted set: dark, light and middle, so that states differ in grey too.
STATE_COLORS = ("#332288", "#DDCC77", "#CC6677", "#44AA99", "#882255")


def datasets(table, chosen=tuple(TITLES)) -> list[str]:
    """Return the data sets of a table in the order of figures."""
    present = set(table.dataset)
    return [name for name in chosen if name in present]


def reached(table):
    """Return the rows of the collapsed sampler; of the others nothing is drawn but where they are compared."""
    return table[table["sampler"] != "paper"]


def draw_nothing(axes, title: str) -> None:
    """Say in a panel that there is nothing to draw."""
    axes.text(0.5, 0.5, "chains have not converged", ha="center", va="center", transform=axes.transAxes, fontsize=7)
    # Not by removing ticks, which panels share.
    axes.tick_params(length=0, labelleft=False, labelbottom=False)
    axes.set_title(title)
    axes.grid(visible=False)


def state_grid(rows):
    """Return states as a table, regions × months, nan where a cell is missing."""
    grid = rows.pivot(index="region", columns="month", values="state")
    return grid.reindex(columns=month_range(rows.month))


def month_range(months) -> list[str]:
    """Return all months from the first to the last, as YYYY-MM."""
    import pandas as pd

    return list(pd.period_range(min(months), max(months), freq="M").astype(str))


def draw_map(axes, rows, n_states: int, title: str) -> None:
    """Draw the states of regions over months, or nothing where the chains have not converged."""
    from matplotlib.colors import ListedColormap

    if not len(rows) or not rows.converged.astype(bool).all():
        draw_nothing(axes, title)
        return
    grid = state_grid(rows)
    colors = {"cmap": ListedColormap(STATE_COLORS[:n_states]), "vmin": 0.5, "vmax": n_states + 0.5}
    axes.imshow(np.ma.masked_invalid(grid), aspect="auto", interpolation="nearest", **colors)
    axes.set_yticks(range(len(grid)), labels=[name.replace("RC ", "").title() for name in grid.index])
    year_ticks(axes, grid.columns)
    axes.set_title(title)
    axes.grid(visible=False)
    axes.tick_params(length=2)


def map_rows(table, columns: int, title_height: float):
    """Return a figure for maps side by side, and the panels of each data set by its name.

    `title_height` is the room of a panel's title in inches.
    """
    names = datasets(table)
    heights = [title_height + 0.16 * select(table, dataset=name).region.nunique() for name in names]
    figure, panels = multiples.grid(len(names), columns, 0.6 + sum(heights), height_ratios=heights, sharey="row")
    multiples.label_outer(panels, "Month")
    return figure, dict(zip(names, panels, strict=True))


def caption_maps(figure, table, note: str, extra=()) -> None:
    """Add a note above the panels, with what was chosen by looking at the records, and the states' legend below."""
    figure.suptitle(f"{note}\n{selection_note(table)}", fontsize=7)
    state_legend(figure, int(table.state.max()), extra)


def year_ticks(axes, months) -> None:
    """Label each January with its year."""
    places = [index for index, month in enumerate(months) if month.endswith("-01")]
    axes.set_xticks(places, labels=[months[index][:4] for index in places])


def state_legend(figure, n_states: int, extra=()) -> None:
    """Add a legend of the states' colours below the figure."""
    from matplotlib.patches import Patch

    states = [Patch(color=STATE_COLORS[k], label=f"State {k + 1}") for k in range(n_states)]
    multiples.legend(figure, [*states, *extra])


def selection_note(table) -> str:
    """Return what was chosen by looking at the records, as a line for a caption."""
    chosen = "Real data: empty cells left out and regions chosen by looking at the data, levels spelt as released.\n"
    order = "States are ordered and labelled by the non-private fit."
    return f"{chosen}{order}" if table.uses_private_metadata.any() else order


def worst_case(rows) -> str:
    """Return the condition and the worst case of OPS's guarantee as a phrase for a caption."""
    low, high = rows.worst_case_epsilon.min(), rows.worst_case_epsilon.max()
    span = f"{low:,.0f}" if round(low) == round(high) else f"{low:,.0f} to {high:,.0f}"
    return f"only if its chain has converged; else {span}"


def drawn_rhats(table) -> str:
    """Return the largest R-hat of both methods that are drawn side by side, of chains that have converged."""
    drawn = table.converged.astype(bool) & table.method.isin(["laplace", "non_private"])
    return rhats(table[drawn & (table.variant != "corrected")])


def crosses(axes, x, y, rows) -> None:
    """Cross the points of rows whose chains have not converged."""
    open_ones = ~rows.converged.astype(bool)
    axes.plot(x[open_ones], y[open_ones], "x", color="black", markersize=5, zorder=5)


def rhats(rows) -> str:
    """Return the largest R-hat of each method, as a phrase for a caption."""
    import pandas as pd

    values = pd.to_numeric(rows.rhat_max, errors="coerce").groupby(rows.method).max().dropna()
    found = [f"{method.replace('_', '-')} {value:.2f}" for method, value in values.items()]
    return "largest R-hat: " + (", ".join(found) if found else "not assessed")
