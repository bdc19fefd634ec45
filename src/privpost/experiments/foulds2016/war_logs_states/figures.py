"""The figures of the study: emissions, maps and shares of the states of hidden Markov models."""

import itertools

import numpy as np

from privpost.drawing import facets, style
from privpost.drawing.figures import figure
from privpost.evaluation.rows import select

# Tol's muted colours, in an order that keeps the states of one data set apart in greyscale, too.
STATE_COLORS = ("#332288", "#DDCC77", "#CC6677", "#117733", "#882255", "#88CCEE", "#44AA99", "#AA4499")
MOST_LEVELS = 4
# Levels of a field are rare if no state of the non-private fit gives them a higher probability.
RARE = 0.01
AFGHANISTAN = "afghanistan"
# Data sets of the paper's figures. A stand-in replaces the Iraq data.
MAPPED = ("iraq_sigact", AFGHANISTAN)
# Data sets of the tables that no figure of the study draws.
OURS = ("iraq_simulated", "afghanistan_dense")
CASUALTIES = ("friendly_or_host", "civilian", "enemy")
KINDS = {"final": "final sample (released)", "mode": "most frequent states (not private)"}
METHODS = ("laplace", "non_private")


def shown(table, *datasets):
    """Return a table's rows from seeded starts on the given data sets, and the names of these data sets."""
    table = select(table, start="seeded")
    # A table that has none of the data sets shows its first one.
    known = [name for name in datasets if name in set(table.dataset)] or facets.ordered(table.dataset, "dataset")[:1]
    return table[table.dataset.isin(known)], known


@figure("fig3_emissions")
def emissions(war_logs_emissions):
    """Emissions of the private HMM on Afghanistan (Foulds et al. 2016, figure 3 and supplement).

    Posterior means from one release of the Laplace HMM, whose ε holds unconditionally, and of the non-private HMM, both
    from seeded starts. A column is a state, named by the type of event that sets it apart in the non-private fit. Rows
    are the most probable levels of each field. Levels below 1 % in all non-private states are summed. Clipping noisy
    counts at 0 makes these levels more probable, since it removes negative noise only. No ε covers the choice of cells,
    regions and levels, which was made by looking at the records.
    """
    import pandas as pd

    table, _ = shown(war_logs_emissions, AFGHANISTAN)
    failed, table = _failed(table), table[~table.field.isin(CASUALTIES)]
    meanings = {state: words for (_, state), (words, _) in _colors(table).items()}
    plain = table[table.method == "non_private"].groupby(["field", "level"]).probability.max()
    rare = table.set_index(["field", "level"]).index.map(plain).to_numpy() < RARE
    keys = ["field", "method", "state", "dataset"]
    number = {field: rows.level.nunique() for field, rows in table[rare].groupby("field")}
    rest = table[rare].groupby(keys, as_index=False).agg({"probability": "sum", "epsilon": "first"})
    rest = rest.assign(level=rest.field.map(number).map("{} rare levels".format))
    top = table[~rare].groupby(["field", "level"]).probability.max().groupby("field").nlargest(MOST_LEVELS)
    levels = [(field, level) for _, field, level in top.index]
    table = pd.concat([table[[place in levels for place in zip(table.field, table.level, strict=True)]], rest])
    table = table.assign(
        row=table.field + ": " + table.level,
        state=table.state.map(lambda state: f"State of {meanings.get(state, state)}"),
    )
    order = sorted(dict.fromkeys(table.row), key=lambda row: [row.split(":")[0], "rare levels" in row])
    grid = facets.dots(
        facets.named(table, names={"laplace": "Laplace, counts clipped at 0"}), "probability", "row", col="state",
        names={row: row for row in order}, size=(style.WIDTH, 0.2),
    )  # fmt: skip
    change = rest.pivot_table(index=["field", "state"], columns="method", values="probability")
    more = "laplace" in change and (change.laplace > change.non_private).all()
    answer = "Clipping makes rare levels more probable" if more else ""
    where = f"{facets.words('dataset', table.dataset.iloc[0])}, {facets.fixed(table, 'epsilon')}{failed}"
    return facets.finish(grid, answer, f"Probability in the state; {where}")


@figure("fig4_state_map")
def maps(war_logs_assignments, war_logs_emissions):
    """Most frequent states of regions by month, and share of regions per state (Foulds et al. 2016, figures 4 and 5).

    Each data set has two rows. Above: the map, white where no event fell, with dots where it differs from the
    non-private map. Below: the share of each state among the regions that have events in a month. Columns are the
    Laplace HMM under pure DP and the non-private HMM, from seeded starts. A colour is the type of event that sets a
    state apart in the non-private fit. States of the Laplace HMM are matched with these by their emissions. Each map is
    of one release or chain. Empty cells were left out, and regions chosen, by looking at the records.
    """
    new = set(war_logs_assignments.dataset) - {*MAPPED, *OURS}
    table, datasets = shown(war_logs_assignments[war_logs_assignments.method != "ops"], *MAPPED, *sorted(new))
    colors, heights = _colors(war_logs_emissions), []
    for name in datasets:
        heights += [0.3 + 0.13 * select(table, dataset=name).region.nunique(), 0.75]
    keywords = {"height_ratios": heights, "sharey": "row"}
    methods = [*METHODS, *(name for name in facets.ordered(table.method, "method") if name not in METHODS)]
    canvas, axes = facets.subplots(len(heights), len(methods), 0.5 + sum(heights), **keywords)
    differing = {}
    for place, dataset in enumerate(datasets):
        truth = _grid(select(table, dataset=dataset, method="non_private"))
        for column, method in enumerate(methods):
            above, under = axes[2 * place : 2 * place + 2, column]
            rows = select(table, dataset=dataset, method=method)
            if rows.empty:
                above.set_axis_off()
                under.set_axis_off()
                continue
            grid = _grid(rows)
            _map(above, rows, colors)
            # Cells that one of the maps lacks do not count as different.
            other = truth.reindex_like(grid)
            apart = (grid != other) & grid.notna() & other.notna()
            above.plot(*np.argwhere(apart.to_numpy()).T[::-1], ".", color="white", markersize=1.8)
            if method == "laplace":
                differing[dataset] = apart.to_numpy().sum() / grid.notna().to_numpy().sum()
            _stack(under, grid, dataset, colors)
            title = f"{facets.words('dataset', dataset)}:\n{style.look(method).label}{_failed(rows)}"
            above.set_title(title, fontsize=7)
    holds = differing.pop(AFGHANISTAN, 0) > 0.25 and max(differing.values(), default=1) < 0.1
    answer = "Laplace changes many states of Afghanistan, few of Iraq" if holds else ""
    dot = facets.entry(marker="o", linestyle="", markersize=2, label="White dot: differs from non-private")
    return facets.finish(
        canvas, answer, f"Laplace: {facets.fixed(table, 'epsilon')}", "", [*_state_entries(table, colors), dot]
    )


@figure("fig7_ops_final_sample")
def final_sample(war_logs_assignments, war_logs_emissions):
    """OPS's final sample and, below it, an estimate from all samples after burn-in (Foulds et al. 2016, figure 7).

    Afghanistan, from seeded starts, with one column per truncation M. The ε of pure DP covers the final sample if its
    chain has converged. The estimate is not private. Each map is of one release.
    """
    table, _ = shown(select(war_logs_assignments, method="ops"), AFGHANISTAN)
    colors = _colors(war_logs_emissions)
    truncations, regions = facets.ordered(table.truncation), table.region.nunique()
    canvas, axes = facets.subplots(2, len(truncations), 0.8 + 2 * (0.3 + 0.14 * regions), sharex=True, sharey=True)
    changes: dict[str, list[int]] = {}
    for panel, (kind, truncation) in zip(axes.flat, itertools.product(KINDS, truncations), strict=True):
        rows = select(table, truncation=truncation, summary=kind)
        states = _map(panel, rows, colors).ffill(axis=1).to_numpy()
        jumps = int((np.abs(np.diff(states, axis=1)) > 0).sum())
        changes.setdefault(kind, []).append(jumps)
        panel.set_title(f"{KINDS[kind]}, M = {truncation:g}:\n{jumps} jumps{_failed(rows)}", fontsize=7)
    holds = all(last > usual for last, usual in zip(changes["final"], changes["mode"], strict=True))
    answer = "The sample that OPS releases jumps more than its chain's most frequent states" if holds else ""
    xlabel = f"{facets.words('dataset', AFGHANISTAN)}, OPS, {facets.fixed(table, 'epsilon')}"
    return facets.finish(canvas, answer, xlabel, "", _state_entries(table, colors), note=style.TRUNCATION)


def _failed(rows) -> str:
    """Return a note for a title if a chain of the rows has not converged, else an empty text."""
    return "" if rows.converged.astype(bool).all() else " (chain not converged)"


def _grid(rows):
    """Return the states as a table of regions and months, with nan for missing cells."""
    import pandas as pd

    months = pd.period_range(rows.month.min(), rows.month.max(), freq="M").astype(str)
    return rows.pivot(index="region", columns="month", values="state").reindex(columns=months)


def _stack(axes, grid, dataset: str, looks) -> None:
    """Draw the share of regions in each state by month, as stacked areas."""
    states = range(1, int(np.nanmax(grid)) + 1)
    of_all = [((grid == state).sum() / grid.notna().sum().clip(lower=1)).to_numpy() for state in states]
    colors = [_look(looks, dataset, state)[1] for state in states]
    axes.stackplot(range(grid.shape[1]), of_all, step="mid", colors=colors, linewidth=0)
    _years(axes, grid.columns)
    axes.set(xlim=(-0.5, grid.shape[1] - 0.5), ylim=(0, 1))
    axes.set_yticks([0, 0.5, 1], ["0 %", "50 %", "100 % of\nregions"])


def _colors(emissions) -> dict[tuple[str, int], tuple[str, str]]:
    """Return the meaning and the colour of each state of each data set.

    The meaning is the type of event whose probability most exceeds its mean over the other states. States of one data
    set that share a type also get their number.
    """
    table, meaning_of = select(emissions, method="non_private", start="seeded"), {}
    for dataset in facets.ordered(table.dataset, "dataset"):
        rows = select(table, dataset=dataset)
        types = rows[rows.field == rows.field.iloc[0]].pivot(index="level", columns="state", values="probability")
        others = (types.sum(axis=1).to_numpy()[:, None] - types) / max(1, types.shape[1] - 1)
        words = (types - others).idxmax()
        for state, word in words.items():
            meaning_of[dataset, state] = str(word) if (words == word).sum() == 1 else f"{word}, state {state}"
    meanings = list(dict.fromkeys(meaning_of.values()))
    return {key: (words, STATE_COLORS[meanings.index(words) % len(STATE_COLORS)]) for key, words in meaning_of.items()}


def _look(colors, dataset: str, state: int) -> tuple[str, str]:
    """Return the meaning and the colour of a state. Without known emissions, the meaning is the state's number."""
    return colors.get((dataset, state), (f"State {state}", STATE_COLORS[(state - 1) % len(STATE_COLORS)]))


def _map(axes, rows, looks):
    """Draw the states of regions over months, and return the table of states."""
    from matplotlib.colors import ListedColormap

    grid = _grid(rows)
    n_states = int(np.nanmax(grid))
    shown = [_look(looks, rows.dataset.iloc[0], state)[1] for state in range(1, n_states + 1)]
    colors = {"cmap": ListedColormap(shown), "vmin": 0.5, "vmax": n_states + 0.5}
    axes.imshow(np.ma.masked_invalid(grid), aspect="auto", interpolation="nearest", **colors)
    names = [name.replace("RC ", "").title() for name in grid.index]
    axes.set_yticks(range(len(grid)), labels=names, fontsize=6)
    _years(axes, grid.columns)
    return grid


def _years(axes, months) -> None:
    places = [index for index, month in enumerate(months) if month.endswith("-01")]
    axes.set_xticks(places, labels=[months[index][:4] for index in places], fontsize=6)
    axes.grid(visible=False)
    axes.tick_params(length=2)


def _state_entries(table, colors) -> list:
    """Return the legend's entries of the states."""
    from matplotlib.patches import Patch

    states = table[["dataset", "state"]].drop_duplicates().itertuples(index=False)
    looks = dict(_look(colors, dataset, int(state)) for dataset, state in sorted(states))
    empty = Patch(facecolor="white", edgecolor=style.GREY, linewidth=0.6, label="No data")
    return [*(Patch(color=color, label=words) for words, color in looks.items()), empty]
