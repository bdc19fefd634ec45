"""Bars of a hidden Markov model's emissions, per state and field."""

from privpost.drawing import multiples, style
from privpost.evaluation.rows import select
from privpost.experiments.foulds2016 import war_log_style as logs

MOST_LEVELS = 8
CASUALTIES = {"friendly_or_host": "friendly or host", "civilian": "civilian", "enemy": "enemy"}
FIELDS = {"attack_type": "Type of attack", "type": "Type", "category": "Category"}


def draw(tables, names):
    """Return the figure of some data sets: bars are the Laplace HMM's posterior means, ticks the non-private ones.

    Fields with many levels show the most probable ones of the Laplace HMM and the sum of the others. The three fields
    of casualties share a panel. Probabilities of one release; their error is the noise that the ticks make visible.
    """
    table = logs.reached(tables["war_logs_emissions"])
    table = table[table.converged.astype(bool)]
    table = table[table.dataset.isin(select(table, method="laplace", variant="paper").dataset)]
    names = logs.datasets(table, names)
    panels = [(name, panel) for name in names for panel in _panels(table, name)]
    if not panels:
        figure, ((axes,),) = multiples.grid(1, 1, 1, width=style.ONE_COLUMN)
        axes.text(0.5, 0.5, "No data set is there whose chains have converged.", ha="center", va="center")
        axes.set_axis_off()
        return figure
    per_row = 3 if len(panels) > 4 else 2
    n_rows = -(-len(panels) // per_row)
    figure, grid = multiples.grid(n_rows, per_row, 0.4 + 2.6 * n_rows)
    for axes, (name, (field, label)) in zip(grid.ravel(), panels, strict=False):
        rows = select(table, dataset=name)
        _bars(axes, _levels(rows, field), f"{logs.TITLES[name]}\n{label}")
    for axes in grid.ravel()[len(panels) :]:
        axes.set_axis_off()
    multiples.label_outer(grid, "Probability")

    tick = multiples.entry(color="black", marker="|", linestyle="", markersize=8, label="non-private HMM")
    logs.state_legend(figure, int(select(table, dataset=names[0]).state.max()), [tick])
    laplace = select(table, method="laplace", variant="paper")
    figure.suptitle(
        f"Laplace HMM, ε = {laplace.epsilon.iloc[0]:g} in all (pure DP, unconditional); clipped counts (paper).\n"
        + logs.selection_note(table[table.dataset.isin(names)])
        + f"\n{logs.rhats(table[table.dataset.isin(names) & table.method.isin(['laplace', 'non_private'])])}.",
        fontsize=7,
    )
    return figure


def _panels(table, name) -> list[tuple[str, str]]:
    fields = set(select(table, dataset=name).field)
    single = [(field, label) for field, label in FIELDS.items() if field in fields]
    return single + [("casualties", "events with casualties")] * ("civilian" in fields)


def _levels(rows, field):
    """Return {method: table of probabilities, levels × states}, most probable levels last (bars grow upwards)."""
    import pandas as pd

    casualties = field == "casualties"
    rows = rows[rows.field.isin(CASUALTIES) & (rows.level == field) if casualties else rows.field == field]
    chosen = {}
    for method, variant in (("laplace", "paper"), ("non_private", None)):
        part = select(rows, method=method, variant=variant)
        wide = part.pivot(index="field" if casualties else "level", columns="state", values="probability")
        if len(wide):
            chosen[method] = wide
    if casualties:
        return {method: wide.loc[list(CASUALTIES)[::-1]].rename(index=CASUALTIES) for method, wide in chosen.items()}
    order = chosen["laplace"].max(axis=1).sort_values(ascending=False).index
    shown = list(order[:MOST_LEVELS])
    for method, wide in chosen.items():
        chosen[method] = wide.loc[shown[::-1]]
        if len(order) > len(shown):
            others = wide.drop(index=shown).sum().to_frame(f"{len(order) - len(shown)} other levels").T
            chosen[method] = pd.concat([others, chosen[method]])
    return chosen


def _bars(axes, chosen, title: str) -> None:
    states = list(chosen["laplace"].columns)
    height = 0.8 / len(states)
    for place, state in enumerate(states):
        centre = [index + 0.4 - height * (place + 0.5) for index in range(len(chosen["laplace"]))]
        axes.barh(centre, chosen["laplace"][state], height=height * 0.92, color=logs.STATE_COLORS[place])
        if "non_private" in chosen:
            axes.plot(chosen["non_private"][state], centre, "|", color="black", markersize=4.5, markeredgewidth=1)
    axes.set_yticks(range(len(chosen["laplace"])), labels=list(chosen["laplace"].index))
    axes.grid(visible=False, axis="y")
    axes.set_xlim(left=0)
    axes.set_title(title, fontsize=7)
