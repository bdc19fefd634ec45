"""Draws any sweep. Settings become the axis, curves and panels, and each measure becomes a row of panels."""

import re
import textwrap
from collections.abc import Container, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from pandas.api.types import is_bool_dtype, is_numeric_dtype

from privpost.drawing import facets, style

# Most panels in a row of panels, and most rows of panels.
PANELS = 6
# Most line styles of one colour; further combinations of settings are drawn in other panels.
STYLES = 4
# Most curves in a panel, if they do not differ by a number.
LINES = 12
NOTHING = "There is no figure: the table has no measured number that varies with a setting."
# Names of columns that hold a spread, a test result or a count, and so are no measures.
_SPREAD = re.compile(r"(.*_)?(sem|sd|error|low|high|p|p_value|limit)|n_.+")
# Most letters of a note on curves that coincide, which then fits on two lines.
LONGEST = 200
_METRICS = ("metric", "statistic", "quantity", "parameter", "score")
_COUNTS = ("n_trials", "n_repeats")


class Layout(NamedTuple):
    """A table's columns by role: axis, curves, panels beside each other, rows of panels, and measures."""

    x: str
    lines: list[str]
    columns: list[str]
    metrics: list[str]
    measures: list[str]


def layout(table, swept: Sequence[str], known: Container[str]) -> Layout | None:
    """Return the roles of a table's columns, or None if no measure or no key varies.

    Args:
        swept: columns of the sweep's settings.
        known: names of settings. Keys are these settings and all columns of words.
    """
    truths = [column for column in table if is_bool_dtype(table[column].dropna().infer_objects())]
    numeric = [column for column in table if is_numeric_dtype(table[column]) and column not in truths]
    number = table.nunique(dropna=False)
    keys = [
        c for c in table if number[c] > 1 and (c in swept or (c not in truths and (c in known or c not in numeric)))
    ]
    for key in reversed(keys):
        others = [other for other in keys if other != key]
        # A column that other keys determine, such as a method's way of drawing, is no key.
        if others and key not in (*swept, "method") and _constant(table, others, key):
            keys = others
    measures = [c for c in numeric if c not in keys and not _SPREAD.fullmatch(c) and table[c].nunique() > 1]
    # A column that repeats a setting given in another column is no measure.
    measures = [c for c in measures if not any(_repeats(table, c, key) for key in (*keys, *swept))]
    keys += (places := _places(table, keys, measures))
    # Metrics have units of their own, so they never share an axis.
    if not {*keys} - {"metric"}:
        return None
    # Seeds have no order, so the column of seeds becomes the axis only if no other numeric key varies.
    # A column of words that is empty in some rows becomes the axis only if no other key can.
    lacking = {key for key in keys if key not in numeric and table[key].isna().any()}
    x, *rest = sorted(
        keys,
        key=lambda k: (
            k == "metric", k not in numeric, k in lacking, k == "seed", k == "method", -table[k].nunique(),
            k not in swept,
        ),
    )  # fmt: skip
    # The column `metric` says what was averaged, so it is kept even if it is constant.
    metrics = [key for key in _METRICS if key in rest or (key == "metric" and key in table)]
    rest = [key for key in rest if key not in metrics]
    # The method is the colour. If a second key is swept, each of its values has a panel.
    rest.sort(key=lambda k: (k != "method", k not in swept, k not in numeric, -number[k]))
    lines, styles = rest[:1], 1
    for key in reversed(rest[1:]):
        beside = lines[0] == "method" and key in swept
        if not beside and styles * number[key] <= STYLES and number[lines[0]] * styles * number[key] <= LINES:
            lines, styles = [*lines, key], styles * number[key]
    columns = [key for key in rest if key not in lines]
    # A measure that does not change along the axis gives no curve.
    measures = [m for m in measures if m not in places and not _constant(table, [*lines, *columns, *metrics], m)]
    measures = [m for m in measures if error_of(table, m)] or measures
    return Layout(x, lines, columns, metrics, measures) if measures else None


def _constant(table, keys: list[str], column: str) -> bool:
    """Return whether rows with equal keys always have the same value in a column."""
    return bool(keys) and table.groupby(keys, dropna=False)[column].nunique(dropna=False).max() <= 1


def _repeats(table, column: str, key: str) -> bool:
    """Return whether a column equals a numeric key wherever the column has a value."""
    if not is_numeric_dtype(table[key]) or column == key:
        return False
    rows = table[table[column].notna()]
    return bool(np.array_equal(rows[column].to_numpy(float), rows[key].to_numpy(float)))


def _places(table, keys: list[str], measures: list[str]) -> list[str]:
    """Return the measures that distinguish rows with equal keys. A measure's values must recur, like a grid's."""
    # Grouping needs at least one column; this constant column serves if there are no keys.
    table, chosen_measures = table.assign(**{"": 0}), [""]
    while (alike := table.duplicated([*keys, *chosen_measures], keep=False)).any():
        grids = [m for m in measures if m not in chosen_measures and 1 < table[m].nunique() <= alike.sum() / 2]
        left = {m: table.duplicated([*keys, *chosen_measures, m]).sum() for m in grids}
        best = min(left, key=lambda m: (left[m], table[m].nunique()), default=None)
        if best is None or left[best] >= table.duplicated([*keys, *chosen_measures]).sum():
            break
        chosen_measures.append(best)
    return chosen_measures[1:]


def error_of(table, measure: str) -> str | None:
    """Return the name of the column with a measure's standard error, or None if there is no such column."""
    names = [f"{measure.removesuffix('_mean')}_sem", *(["sem"] if measure in ("mean", "are", "gain") else [])]
    return next((name for name in names if name in table and table[name].notna().any()), None)


def choose(tables: Mapping, swept: Mapping[str, Sequence[str]], known: Container[str]) -> str:
    """Return the name of the table to draw, preferably with standard errors, many swept columns and few panels."""

    def rank(name: str):
        if (parts := layout(tables[name], swept[name], known)) is None:
            return True, True, 0, 0
        number = len(tables[name][parts.columns].drop_duplicates()) if parts.columns else 1
        return False, not error_of(tables[name], parts.measures[0]), -len(swept[name]), max(number, PANELS)

    return min(tables, key=rank)


def draw(table, swept: Sequence[str], known: Container[str], title: str = "", labels: Mapping[str, str] | None = None):
    """Return a table's figure (None if there is nothing to draw), and notes on what is left out.

    Each measure has a row of panels for each metric. Bars are 95 % intervals. `labels` maps columns to labels.
    """
    if "delta" in known and "delta" in table:
        # In a table with δ, ε belongs to (ε, δ)-DP, not to pure DP.
        renamed = {name: name.replace("epsilon", "epsilon_delta") for name in ("epsilon", "epsilon_setting")}
        table, swept = table.rename(columns=renamed), [renamed.get(name, name) for name in swept]
        known = {*(name for name in table if name in known), *renamed.values()}
    if (parts := layout(table, swept, known)) is None:
        return None, [NOTHING]
    said = {name: name.replace("_", " ") for name in table} | dict(labels or {})
    # A sweep adds a column `…_setting` if the setting's name is taken. It is labelled like the setting.
    bases = {name: name.removesuffix("_setting") for name in table}
    said |= {name: said.get(base, base) for name, base in bases.items() if name != base}
    said |= {
        name: style.AXES[base] for name, base in bases.items() if base in style.AXES and name not in parts.measures
    }
    table = _numbered(_in_panels(table, parts.columns), parts)
    curves, columns = table.Method.nunique(), facets.ordered(table.panel) or [""]
    many = bool(parts.lines) and is_numeric_dtype(table[parts.lines[0]])
    if len(columns) > 2 * PANELS or (curves > 4 * LINES and not many):
        return None, [f"There is no figure of {len(columns)} panels with {curves} lines; the table has all."]
    drawn, notes, shown = _measured(table, parts, said)
    for what, entries in (("rows", shown), ("columns", columns)):
        if len(entries) > PANELS:
            notes.append(f"The figure shows {PANELS} of {len(entries)} {what} of panels; the table has all.")
    rows, columns = list(shown)[:PANELS], columns[:PANELS]
    drawn = drawn[drawn["row"].isin(rows) & (drawn.panel.isin(columns) | drawn.panel.isna())]
    return _grid(table, drawn, parts, said, rows, columns, _title(table, swept, known, parts, title, drawn)), notes


def _in_panels(table, columns: list[str]):
    """Return the table with a column `panel`: the title of a row's panel, or None if all panels show the row."""
    import pandas as pd

    for column in columns:
        others = [other for other in columns if other != column]
        full, lacking = table[table[column].notna()], table[table[column].isna()]
        if others and len(lacking):
            pairs = full[[column, *others]].drop_duplicates()
            lacking = lacking.drop(columns=column).merge(pairs, "left", others)[list(table)]
            table = pd.concat([full, lacking], ignore_index=True)
    table = table.sort_values(columns, kind="stable") if columns else table
    titles = [", ".join(filter(None, (facets.words(name, value) for name, value in zip(columns, line, strict=True))))
              for line in table[columns].itertuples(index=False)]  # fmt: skip
    return table.assign(panel=[title or None for title in titles] if columns else None)


def _numbered(table, parts: Layout):
    """Return the table with a column `Method` of curve names, and with numbers in place of words on the axis."""
    hue = parts.lines[0] if parts.lines else "panel"
    table = facets.named(table, *parts.lines[1:], hue=hue) if parts.lines else table.assign(Method="")
    if not is_numeric_dtype(table[parts.x]):
        names = facets.ordered(table[parts.x], parts.x)
        table = table.assign(**{parts.x: table[parts.x].map(names.index, na_action="ignore"), "": table[parts.x]})
    return table.assign(Method=table.Method.map(lambda name: textwrap.fill(name, 40)))


def _measured(table, parts: Layout, said: Mapping[str, str]) -> tuple[Any, list[str], dict]:
    """Return the rows of all measures in long form, notes on the figure, and the measure of each row of panels."""
    import pandas as pd

    made, notes, shown, endless = [], [], {}, set()
    for metric, rows in table.groupby(parts.metrics, sort=False, dropna=False) if parts.metrics else [((), table)]:
        words = ", ".join(map(facets.words, parts.metrics, metric))
        for measure in parts.measures:
            values = rows[measure].replace([np.inf, -np.inf], np.nan).astype(float)
            if np.isinf(rows[measure].to_numpy(float)).any():
                endless.add(measure)
            if rows[measure].nunique() < 2:
                continue
            label = words if words and measure == "mean" else ", ".join(filter(None, (said[measure], words)))
            label = f"{label}, {measure.replace('_', ' ')}" if label in shown else label
            sem, limit = error_of(table, measure), f"{measure.removesuffix('_mean')}_limit"
            half = style.NORMAL_95 * (rows[sem] if sem else np.nan)
            part = rows.assign(row=label, value=values, low=values - half, high=values + half)
            made.append(part.assign(limit=rows.get(limit, np.nan)))
            shown[label] = measure
            notes += _coinciding(part, parts, measure)
    if endless:
        notes.append(f"The figure leaves out infinite values of {', '.join(sorted(endless))}; the table has all.")
    return pd.concat(made, ignore_index=True), list(dict.fromkeys(notes)), shown


def _grid(table, drawn, parts: Layout, said: Mapping[str, str], rows: list, columns: list, title: str):
    """Draw the rows and columns of panels, and return the figure."""
    keys = [*parts.lines, *parts.columns, *parts.metrics, "row", "panel", parts.x]
    # Words, seeds and rows that no key tells apart are drawn as points, not as a curve.
    joined = "" not in drawn and parts.x != "seed" and not drawn.duplicated(list(dict.fromkeys(keys))).any()
    width = style.NARROW if len(columns) == 1 else style.WIDTH
    hue = parts.lines[0] if parts.lines else "Method"
    names = {name: name for name in (*rows, *columns)}
    grid = facets.lines(
        drawn, parts.x, "value", ("low", "high"), row="row" if len(rows) > 1 else None,
        col="panel" if len(columns) > 1 else None, hue=hue, names=names, size=(width, 1.6),
        kind="line" if joined else "scatter", markers=not joined or drawn[parts.x].nunique() <= 30,
    )  # fmt: skip
    for axes, part in facets.each(grid):
        scale(axes, "y", part.value)
        if part.limit.notna().any():
            limit = part.groupby(parts.x).limit.max()
            axes.plot(limit.index, limit, "--", color=style.GREY, linewidth=0.8, label="Limit")
        if "" not in drawn:
            scale(axes, "x", drawn[parts.x])
            if axes.get_xscale() == "linear":
                axes.locator_params(axis="x", nbins=5)
    if "" in drawn:
        words = drawn.drop_duplicates(parts.x).sort_values(parts.x)
        axes.set_xticks(words[parts.x], [facets.words(parts.x, name) for name in words[""]], rotation=45, ha="right")
    ylabel = textwrap.fill(rows[0], 30) if len(rows) == 1 else ""
    facets.finish(grid, "", textwrap.fill(said[parts.x], int(12 * width)), ylabel, below=bool(parts.lines))
    grid.figure.suptitle(textwrap.fill(title, int(14 * width)), fontsize=7)
    return grid.figure


def _title(table, swept: Sequence[str], known: Container[str], parts: Layout, title: str, drawn) -> str:
    """Return a title with the settings that all rows share, and the number of trials."""
    counts = [table[c].dropna() for c in _COUNTS if c in table]
    trials = next((f"{int(c.min()):,} trials" if c.min() == c.max() else f"{int(c.min()):,} to {int(c.max()):,} trials"
                   for c in counts if len(c)), "")  # fmt: skip
    shared = {}
    for column in table.columns.drop([*_COUNTS, *(["trials"] if trials else [])], errors="ignore"):
        base = column.removesuffix("_setting")
        own = column == base or base not in table or not table[base].nunique()
        if own and (base in known or column in swept):
            words = facets.fixed(table, column)
            shared[base] = words if "=" in words or not words else f"{base.replace('_', ' ')} = {words}"
    bars = "bars: 95 % intervals" if drawn.low.notna().any() else ""
    return "; ".join(filter(None, (title, ", ".join(filter(None, shared.values())), trials, bars)))


def _coinciding(rows, parts: Layout, measure: str) -> list[str]:
    """Return at most one note, which names curves of a measure that coincide."""
    alike: dict[tuple, list[str]] = {}
    rows = rows.dropna(subset=["value"]).fillna({"panel": ""}).sort_values(parts.x, kind="stable")
    for (panel, name), part in rows.groupby(["panel", "Method"], sort=False):
        values = (float(f"{value:.9g}") for value in part.value)
        alike.setdefault((panel, *part[parts.x], *values), []).append(name.replace("\n", " "))
    groups = list(dict.fromkeys(" = ".join(dict.fromkeys(labels)) for labels in alike.values() if len(set(labels)) > 1))
    if not groups:
        return []
    text = f"These coincide in {measure}: {'; '.join(groups)}."
    return [
        text if len(text) <= LONGEST else f"{text[: LONGEST - 30].rsplit(' =', 1)[0].rsplit(';', 1)[0]}; and others."
    ]


def scale(axes, which: str, values) -> None:
    """Make an axis logarithmic if its values are positive and span two decades.

    On the x axis, one decade or a geometric sequence is enough. If the values begin at 0 and vary widely, the axis is
    linear near 0 and logarithmic beyond.
    """
    values = values[np.isfinite(values.to_numpy(float))]
    places = np.sort(values.unique())
    if values.empty:
        return
    wide = 9.99 if which == "x" else 99.9
    steps = places[1:] / places[:-1] if places.min() > 0 else np.array([1.0, 2.0])
    geometric = which == "x" and len(places) > 2 and np.allclose(steps, steps[0], rtol=0.02)
    if places.min() > 0 and (places.max() >= wide * places.min() or geometric):
        getattr(axes, f"set_{which}scale")("log")
    elif places.min() == 0 and places.max() > 100 * values[values > 0].median():
        style.decades(axes, 10 ** np.floor(np.log10(places.max()) - 5), values, which)
