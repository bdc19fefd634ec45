"""The figures of the study: emissions, maps and shares of the states of hidden Markov models."""

import numpy as np

from privpost.drawing import panels, style
from privpost.drawing.figures import figure
from privpost.evaluation.rows import select

# Tol's muted set, in an order in which the states of one data set differ in grey too.
STATE_COLORS = ("#332288", "#DDCC77", "#CC6677", "#117733", "#882255", "#88CCEE", "#44AA99", "#AA4499")
MOST_LEVELS = 4
# Levels of a field are rare if no state of the non-private fit gives them more.
RARE = 0.01
CASUALTIES = {"friendly_or_host": "friendly or host", "civilian": "civilian", "enemy": "enemy"}
KINDS = {"final": "final sample (released)", "mode": "most frequent states (not private)"}


@figure("fig3_emissions")
def emissions_iraq(war_logs_emissions):
    """Emissions of the private HMM on the stand-ins for Iraq (Foulds et al. 2016, figure 3).

    Filled: posterior means of the Laplace HMM, which holds ε of pure DP unconditionally; rings: the non-private HMM; a
    line joins the two. Each field shows its most probable levels; those below 1 % in all non-private states are merged:
    clipping noisy counts at 0 makes them more probable, since it removes negative noise only. One release, whose noise
    the length of the lines shows; data sets whose chains have not converged are left out. A state has the colour of the
    type of event that sets it apart in the non-private fit.
    """
    return _emissions(war_logs_emissions[war_logs_emissions.stand_in.astype(bool)], _colors(war_logs_emissions))


@figure("fig3_emissions_afghanistan")
def emissions_afghanistan(war_logs_emissions):
    """Emissions of the private HMM on Afghanistan (Foulds et al. 2016, supplement).

    Drawn as figure 3: filled the Laplace HMM, rings the non-private one, rare levels together, the same colours. Empty
    cells were left out, regions chosen and levels spelt by looking at the records, which no ε covers.
    """
    return _emissions(war_logs_emissions[~war_logs_emissions.stand_in.astype(bool)], _colors(war_logs_emissions))


@figure("fig4_state_map")
def maps(war_logs_assignments, war_logs_emissions):
    """Most frequent states of regions over months (Foulds et al. 2016, figure 4).

    One row per data set: methods with ε of pure DP beside the non-private HMM, white where no event fell. Dots mark the
    cells in which a map differs from the non-private one. A state has the colour of the type of event that sets it
    apart from the other states of the non-private fit, in all data sets; those of other methods are matched with these
    by their emissions. One release each; the table of maps has means over independent releases and their errors. In
    real data, empty cells were left out and regions chosen by looking at the records.
    """
    table, colors = _shown(war_logs_assignments), _colors(war_logs_emissions)
    plot, differing = _rows_of_maps(table), {}
    for axes, dataset, method in plot:
        truth = _grid(select(table, dataset=dataset, method="non_private"))
        rows = select(table, dataset=dataset, method=method)
        states = _map(axes, rows, colors)
        if states is not None and truth is not None:
            # Cells that either map lacks are no disagreement.
            truth = truth.reindex_like(states)
            apart = np.argwhere((states != truth).to_numpy() & states.notna().to_numpy() & truth.notna().to_numpy())
            axes.plot(apart[:, 1], apart[:, 0], ".", color="white", markersize=1.8)
            differing[dataset] = max(len(apart) / states.notna().to_numpy().sum(), differing.get(dataset, 0))
    holds = differing.pop("afghanistan", 0) > 0.25 and max(differing.values(), default=1) < 0.1
    panels.message(plot.figure, "Laplace changes many states of Afghanistan, few elsewhere", holds)
    _state_legend(plot.figure, table, colors)
    return plot.figure


@figure("fig5_state_share")
def shares(war_logs_assignments, war_logs_emissions):
    """Share of regions in each state by month (Foulds et al. 2016, figure 5).

    One row per data set, states stacked, of the regions that have events in a month; the Laplace HMM with ε of pure DP
    beside the non-private one. One release each; states as in figure 4.
    """
    table, looks = _shown(war_logs_assignments), _colors(war_logs_emissions)
    plot, shares_of = _rows_of_maps(table, height=0.75), {}
    for axes, dataset, method in plot:
        grid = _grid(select(table, dataset=dataset, method=method))
        if grid is None:
            _nothing(axes)
            continue
        states = range(1, int(np.nanmax(grid)) + 1)
        of_all = [((grid == state).sum() / grid.notna().sum().clip(lower=1)).to_numpy() for state in states]
        colors = [_look(looks, dataset, state)[1] for state in states]
        shares_of.setdefault(dataset, []).append(dict(zip(states, of_all, strict=True)))
        axes.stackplot(range(grid.shape[1]), of_all, step="mid", colors=colors, linewidth=0)
        _years(axes, grid.columns)
        axes.set(ylim=(0, 1))
        axes.set_yticks([0, 0.5, 1], ["0 %", "50 %", "100 %"])
    moved = {name: _moved(*drawn) for name, drawn in shares_of.items() if len(drawn) > 1}
    holds = moved.pop("afghanistan", 0) > 0.25 and max(moved.values(), default=1) < 0.1
    panels.message(plot.figure, "Laplace changes the shares of Afghanistan, hardly others", holds)
    _state_legend(plot.figure, table, looks)
    return plot.figure


def _moved(*drawn) -> float:
    """Return the total variation between two methods' shares of states, the mean over months."""
    first, last = drawn[0], drawn[-1]
    apart = [np.abs(first.get(state, 0) - last.get(state, 0)) for state in {*first, *last}]
    return float(np.nanmean(np.sum(apart, axis=0)) / 2)


@figure("fig7_ops_final_sample")
def final_sample(war_logs_assignments, war_logs_emissions):
    """OPS's final sample above an estimate from all of its samples after burn-in (Foulds et al. 2016, figure 7).

    Afghanistan, or the first data set of which there are files; one column per truncation M. ε of pure DP pays for the
    final sample, and only if its chain has converged; the estimate is not private. One release; the table of maps has
    means over independent releases and their errors.
    """
    table, colors = _collapsed(war_logs_assignments), _colors(war_logs_emissions)
    table = table[(table.method != "laplace") & (table.method != "non_private")]
    table = select(table, dataset=panels.ordered(table.dataset, "dataset")[0])
    truncations, regions = panels.ordered(table.truncation), table.region.nunique()
    canvas, axes = panels.grid(2, len(truncations), 0.8 + 2 * (0.3 + 0.14 * regions), sharex=True, sharey=True)
    changes: dict[str, list[int]] = {}
    for panel, kind, truncation in panels.Panels(canvas, axes, list(KINDS), truncations):
        grid = _map(panel, select(table, truncation=truncation, summary=kind), colors)
        if grid is not None:
            states = grid.ffill(axis=1).to_numpy()
            changes.setdefault(kind, []).append(int((np.abs(np.diff(states, axis=1)) > 0).sum()))
        panel.set_title(f"OPS, M = {truncation:g}: {KINDS[kind]}", fontsize=7)
    holds = min(changes.get("final", [0])) > 1.2 * max(changes.get("mode", [1]))
    panels.message(canvas, "The sample that OPS releases jumps more than its chain's mode", holds)
    _state_legend(canvas, table, colors)
    return canvas


@figure("states_used")
def states_used(war_logs_states_used):
    """How many of its states a hidden Markov model uses (Foulds et al. 2016, section 5).

    Number of states with at least 5 % of the cells, and with any, by the most frequent state of each cell, of models
    with the most states; one row per data set. The paper says that private models give substantial numbers of cells to
    two or three states (grey) and that the non-private one uses all (line). Bars are 95 % intervals over releases;
    hollow markers: chains that have not converged.
    """
    table = _collapsed(war_logs_states_used)
    table = table[(table.summary == "mode") & (table.n_states == table.n_states.max()) & (table.variant != "corrected")]
    datasets, most = panels.ordered(table.dataset, "dataset"), int(table.n_states.max())
    looks, lines = panels.looks(table, ("method", "truncation")), ("method", "truncation")
    for (_, truncation), look in looks.items():
        look["marker"] = "v" if truncation == 100 else look["marker"]
    canvas, axes = panels.grid(1, 2, 0.6 + 0.42 * len(datasets), sharex=True, sharey=True)
    shown = {
        "At least 5 % of the cells": ("states_over_5_percent", "sem"),
        "Any cell": ("states_used_at_all", "used_at_all_sem"),
    }
    for panel, (title, (value, sem)) in zip(axes[0], shown.items(), strict=True):
        panel.axvspan(2, 3, color=style.BAND, linewidth=0, zorder=0)
        panel.axvline(most, color=style.GREY, linewidth=0.8)
        for place, (line, look) in enumerate(looks.items()):
            rows = panels.line_of(table, lines, line)
            y = rows.dataset.map(datasets.index) + 0.6 * (place + 0.5) / len(looks) - 0.3
            low, high = panels.interval(rows[value], rows[sem])
            panel.hlines(y, low, high, color=look["color"], linewidth=0.8)
            solid = rows.converged.astype(bool)
            mark = {**look, "linestyle": "", "markersize": 4}
            panel.plot(rows[value][solid], y[solid], **mark)
            panel.plot(rows[value][~solid], y[~solid], **{**mark, "label": None, "markerfacecolor": "white"})
        panel.set(title=title, xlim=(0, most + 0.7), xlabel=f"States, of {most}")
        panel.set_yticks(range(len(datasets)), [panels.named("dataset", name) for name in datasets])
        panel.grid(axis="y", visible=False)
    axes[0, 0].set_ylim(len(datasets) - 0.5, -0.5)
    used = table.pivot_table(index="dataset", columns="method", values="states_over_5_percent", aggfunc=["min", "max"])
    holds = {"ops", "laplace"} <= set(used["max"]) and (used["max"]["ops"] < used["min"]["laplace"]).all()
    panels.message(canvas, "OPS gives fewer states 5 % of the cells than Laplace does", bool(holds))
    hollow = panels.entry(marker="o", markerfacecolor="white", linestyle="", label="Not converged")
    # In full also where no row of a method has converged.
    full = [panels.entry(**{**look, "linestyle": "", "markersize": 4}) for look in looks.values()]
    panels.legend(canvas, [*full, hollow])
    return canvas


def _collapsed(table):
    """Return the rows of the collapsed sampler, the only one that is drawn."""
    return table[table["sampler"] != "paper"]


def _shown(table):
    """Return the most frequent states of all methods but OPS, of the paper's counts."""
    table = _collapsed(table)
    return table[(table.summary == "mode") & (table.method != "ops") & (table.variant != "corrected")]


def _grid(rows):
    """Return states as a table, regions × months, nan where a cell is missing; None where chains have not converged."""
    import pandas as pd

    if not len(rows) or not rows.converged.astype(bool).all():
        return None
    months = pd.period_range(rows.month.min(), rows.month.max(), freq="M").astype(str)
    return rows.pivot(index="region", columns="month", values="state").reindex(columns=months)


def _rows_of_maps(table, height: float = 0.0):
    """Return panels, a row per data set and a column per method, with titles and one height for each region."""
    datasets = panels.ordered(table.dataset, "dataset")
    methods = panels.ordered(table.method, "method")
    methods = [*(method for method in methods if method != "non_private"), "non_private"]
    heights = [0.3 + (height or 0.13 * select(table, dataset=name).region.nunique()) for name in datasets]
    keywords = {"height_ratios": heights, "sharey": "row"}
    canvas, axes = panels.grid(len(datasets), len(methods), 0.4 + sum(heights), **keywords)
    for panel, dataset, method in panels.Panels(canvas, axes, datasets, methods):
        title = f"{panels.named('dataset', dataset)}: {style.look(method).label}"
        panel.set_title(title if len(title) * len(methods) < 80 else title.replace(": ", ":\n"), fontsize=7)
    return panels.Panels(canvas, axes, datasets, methods)


def _colors(emissions) -> dict[tuple[str, int], tuple[str, str]]:
    """Return the meaning and the colour of each state of each data set.

    The meaning is the type of event, a level of the first field, whose probability exceeds its mean over the other
    states most. Equal meanings have equal colours, unless two states of one data set share one.
    """
    table = _collapsed(emissions)
    table, meaning_of = table[table.method == "non_private"], {}
    for dataset in panels.ordered(table.dataset, "dataset"):
        rows = select(table, dataset=dataset)
        types = rows[rows.field == rows.field.iloc[0]].pivot(index="level", columns="state", values="probability")
        others = (types.sum(axis=1).to_numpy()[:, None] - types) / max(1, types.shape[1] - 1)
        words = (types - others).idxmax()
        for state, word in words.items():
            meaning_of[dataset, state] = str(word) if (words == word).sum() == 1 else f"{word}, state {state}"
    meanings = list(dict.fromkeys(meaning_of.values()))
    return {key: (words, STATE_COLORS[meanings.index(words) % len(STATE_COLORS)]) for key, words in meaning_of.items()}


def _look(colors, dataset: str, state: int) -> tuple[str, str]:
    """Return the meaning and the colour of a state; data without emissions have numbers for meanings."""
    return colors.get((dataset, state), (f"State {state}", STATE_COLORS[(state - 1) % len(STATE_COLORS)]))


def _map(axes, rows, looks):
    """Draw the states of regions over months and return them, or say that chains have not converged."""
    from matplotlib.colors import ListedColormap

    if (grid := _grid(rows)) is None:
        _nothing(axes)
        return None
    n_states = int(np.nanmax(grid))
    shown = [_look(looks, rows.dataset.iloc[0], state)[1] for state in range(1, n_states + 1)]
    colors = {"cmap": ListedColormap(shown), "vmin": 0.5, "vmax": n_states + 0.5}
    axes.imshow(np.ma.masked_invalid(grid), aspect="auto", interpolation="nearest", **colors)
    names = [name.replace("RC ", "").title() for name in grid.index]
    axes.set_yticks(range(len(grid)), labels=names, fontsize=6)
    _years(axes, grid.columns)
    return grid


def _nothing(axes) -> None:
    axes.text(0.5, 0.5, "chains have not converged", ha="center", va="center", transform=axes.transAxes, fontsize=7)
    # Not by removing ticks, which panels share.
    axes.tick_params(length=0, labelbottom=False)
    axes.grid(visible=False)


def _years(axes, months) -> None:
    places = [index for index, month in enumerate(months) if month.endswith("-01")]
    axes.set_xticks(places, labels=[months[index][:4] for index in places], fontsize=6)
    axes.grid(visible=False)
    axes.tick_params(length=2)


def _state_legend(figure, table, colors) -> None:
    from matplotlib.patches import Patch

    states = table[["dataset", "state"]].drop_duplicates().itertuples(index=False)
    looks = dict(_look(colors, dataset, int(state)) for dataset, state in sorted(states))
    panels.legend(figure, [Patch(color=color, label=words) for words, color in looks.items()])


def _emissions(table, colors):
    """Return dumbbells of the probabilities of levels, a panel per data set and field, a colour per state."""
    table = _collapsed(table)
    table = table[table.converged.astype(bool) & (table.variant != "corrected")]
    private = table[table.method != "non_private"]
    if private.empty:
        figure, ((axes,),) = panels.grid(1, 1, 1, width=style.NARROW)
        axes.set_axis_off()
        axes.text(0.5, 0.5, "No data set is there whose chains have converged.", ha="center", va="center", fontsize=7)
        return figure
    fields = {
        (name, "casualties" if field in CASUALTIES else field): None
        for name in panels.ordered(private.dataset, "dataset")
        for field in dict.fromkeys(select(private, dataset=name).field)
    }
    columns = min(2, len(fields))
    figure, grid = panels.grid(-(-len(fields) // columns), columns, 0.4 + 1.5 * -(-len(fields) // columns))
    filled = []
    for axes, (dataset, field) in zip(grid.flat, fields, strict=False):
        filled += _dumbbells(axes, select(table, dataset=dataset), field, colors)
        axes.set_title(f"{panels.named('dataset', dataset)}:\n{field.replace('_', ' ')}", fontsize=7)
    for axes in list(grid.flat)[len(fields) :]:
        axes.set_axis_off()
    # One axis for all panels.
    top = max(axes.get_xlim()[1] for axes in list(grid.flat)[: len(fields)])
    for axes in list(grid.flat)[: len(fields)]:
        axes.set_xlim(-0.02, top)
    hollow = panels.entry(marker="o", markerfacecolor="none", markersize=5, linestyle="", label="Non-private HMM")
    marks = [panels.entry(marker=style.look(method).marker, linestyle="", label=f"{style.look(method).label} HMM")
             for method in panels.ordered(private.method, "method")]  # fmt: skip
    panels.message(figure, "Clipping makes rare levels more probable", bool(filled) and min(filled) > 0)
    states = private[["dataset", "state"]].drop_duplicates().itertuples(index=False)
    looks = dict(_look(colors, dataset, int(state)) for dataset, state in sorted(states))
    bars = [panels.entry(color=color, linewidth=3, label=words) for words, color in looks.items()]
    panels.legend(figure, [*bars, *marks, hollow])
    return figure


def _dumbbells(axes, rows, field: str, colors) -> list[float]:
    """Draw one panel and return by how much private models exceed the non-private one's share of rare levels."""
    import pandas as pd

    key = "field" if field == "casualties" else "level"
    rows = rows[rows.field.isin(CASUALTIES) if field == "casualties" else rows.field == field]
    rows = select(rows, level="casualties") if field == "casualties" else rows
    order = list(rows[rows.method != "non_private"].groupby(key).probability.max().sort_values().index[-MOST_LEVELS:])
    most = rows[rows.method == "non_private"].groupby(key).probability.max()
    rare = [] if field == "casualties" else list(most.index[(most < RARE) & ~most.index.isin(order)])
    if rare:
        together = f"{len(rare)} rare level{'s' * (len(rare) > 1)}"
        summed = rows[rows.level.isin(rare)].groupby(["dataset", "method", "state"], as_index=False).probability.sum()
        rows, order = pd.concat([rows, summed.assign(level=together)]), [together, *order]
    states, apart = sorted(rows.state.unique()), []
    for place, state in enumerate(states):
        color = _look(colors, rows.dataset.iloc[0], state)[1]
        y = np.arange(len(order)) + 0.27 - 0.54 * place / max(1, len(states) - 1)
        truth = select(rows, state=state, method="non_private").set_index(key).probability.reindex(order)
        for method, part in rows[(rows.method != "non_private") & (rows.state == state)].groupby("method"):
            value = part.set_index(key).probability.reindex(order)
            axes.hlines(y, value, truth, color=color, linewidth=0.8)
            axes.plot(value, y, style.look(method).marker, color=color, markersize=2.8)
            apart += [value[together] - truth[together]] if rare else []
        axes.plot(truth, y, "o", color=color, markerfacecolor="none", markersize=5)
    words = [CASUALTIES.get(level, str(level)) for level in order]
    axes.set_yticks(
        range(len(order)), labels=[word if len(word) < 24 else f"{word[:22]}…" for word in words], fontsize=6.5
    )
    if rare:
        axes.axhspan(-0.5, 0.5, color=style.BAND, linewidth=0, alpha=0.5, zorder=0)
    axes.set_ylim(-0.5, len(order) - 0.5)
    return apart
