"""The figure of any sweep: keys that vary become the axis, lines and columns of panels; measures become rows."""

import itertools
import re
import textwrap
from collections.abc import Container, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from pandas.api.types import is_bool_dtype, is_numeric_dtype

from privpost.drawing import panels, style

# Most panels in a row of panels, and most rows of panels.
PANELS = 6
# Most line styles of one colour.
STYLES = 8
# Most lines in a panel.
LINES = 24
# Most lines that a legend names if they differ by a number.
NAMED = 8
LONGEST = 80  # most letters of a label
NOTHING = "There is no figure: the table has no measured number that varies with a setting."
# Names of columns that hold the spread of another column, or a count; they are no measures.
_SPREAD = re.compile(r"(.*_)?(sem|sd|error|low|high|p_value)|n_.+")
_METRICS = ("metric", "statistic", "quantity", "parameter", "score")


class Layout(NamedTuple):
    """The part that each column has in the figure."""

    x: str
    lines: list[str]
    columns: list[str]
    metrics: list[str]
    measures: list[str]


def layout(table, swept: Sequence[str], known: Container[str]) -> Layout | None:
    """Return the parts of a table's columns, None where it has no measure or no key that varies.

    Args:
        swept: columns of the sweep's settings.
        known: names of settings; columns of words are keys, too.
    """
    truths = [column for column in table if is_bool_dtype(table[column].dropna().infer_objects())]
    numeric = [column for column in table if is_numeric_dtype(table[column]) and column not in truths]
    number = table.nunique(dropna=False)
    keys = [
        c for c in table if number[c] > 1 and (c in swept or (c not in truths and (c in known or c not in numeric)))
    ]
    for key in reversed(keys):
        others = [other for other in keys if other != key]
        # A column that the others determine, such as how a method draws, is no key.
        if others and key not in (*swept, "method") and _constant(table, others, key):
            keys = others
    measures = [c for c in numeric if c not in keys and not _SPREAD.fullmatch(c) and table[c].nunique() > 1]
    keys += (places := _places(table, keys, measures))
    if not keys:
        return None
    # Seeds have no order: a curve over them says nothing, unless they are all that differs.
    # A column of words that is empty in some rows becomes the axis only if no other key can.
    lacking = {key for key in keys if key not in numeric and table[key].isna().any()}
    x, *rest = sorted(
        keys, key=lambda k: (k not in numeric, k in lacking, k == "seed", k == "method", -number[k], k not in swept)
    )
    metrics = [key for key in rest if key in _METRICS]
    rest = [key for key in rest if key not in metrics]
    rest.sort(key=lambda k: (k not in numeric or number[k] <= STYLES, k != "method", k not in swept, -number[k]))
    lines, styles = rest[:1], 1
    for key in rest[1:]:
        if styles * number[key] <= STYLES and number[lines[0]] * styles * number[key] <= LINES:
            lines, styles = [*lines, key], styles * number[key]
    columns = [key for key in rest if key not in lines]
    # A measure that does not change along the axis gives no curve.
    measures = [m for m in measures if m not in places and not _constant(table, [*lines, *columns, *metrics], m)]
    measures = [m for m in measures if error_of(table, m)] or measures
    return Layout(x, lines, columns, metrics, measures) if measures else None


def _constant(table, keys: list[str], column: str) -> bool:
    """Whether rows with equal keys always have the same value in a column; False without keys."""
    return bool(keys) and table.groupby(keys, dropna=False)[column].nunique(dropna=False).max() <= 1


def _places(table, keys: list[str], measures: list[str]) -> list[str]:
    """Return measures with recurring values, such as points of a grid, that tell rows with equal keys apart."""
    # Grouping needs a column: this one, in which all rows are equal, serves where there are no keys.
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
    """Return the column with a measure's standard error."""
    names = [f"{measure.removesuffix('_mean')}_sem", *(["sem"] if measure in ("mean", "are", "gain") else [])]
    return next((name for name in names if name in table and table[name].notna().any()), None)


def choose(tables: Mapping, swept: Mapping[str, Sequence[str]], known: Container[str]) -> str:
    """Return the table that is drawn: errors of its measures count most, then swept columns, then fewer panels."""

    def rank(name: str):
        if (parts := layout(tables[name], swept[name], known)) is None:
            return True, True, 0, 0
        number = len(panels.values_of(tables[name], tuple(parts.columns)))
        return False, not error_of(tables[name], parts.measures[0]), -len(swept[name]), max(number, PANELS)

    return min(tables, key=rank)


def draw(
    table, swept: Sequence[str], known: Container[str], title: str = "", meanings: Mapping[str, str] | None = None
):
    """Return the figure of a table, None where none makes sense, and sentences on what it leaves out or hides.

    Rows of panels are measures, for each value of the metrics; bars are 95 % intervals. `meanings`: words for columns.
    """
    if (parts := layout(table, swept, known)) is None:
        return None, [NOTHING]
    looks, columns = _looks(table, parts), panels.values_of(table, tuple(parts.columns))
    many = bool(parts.lines) and is_numeric_dtype(table[parts.lines[0]])
    if len(columns) > 2 * PANELS or (len(looks) > 2 * LINES and not many):
        return None, [f"There is no figure of {len(columns)} panels with {len(looks)} lines; the table has all."]
    rows = list(itertools.product(panels.values_of(table, tuple(parts.metrics)), parts.measures))
    rows_of = {row: panels.rows_of(table, tuple(parts.metrics), row[0]) for row in rows}
    rows = [row for row in rows if rows_of[row][row[1]].nunique() > 1]
    notes = [
        f"The figure shows {PANELS} of {len(entries)} {what} of panels; the table has all."
        for what, entries in (("rows", rows), ("columns", columns))
        if len(entries) > PANELS
    ]
    rows, columns = rows[:PANELS], columns[:PANELS]
    endless = sorted({row[1] for row in rows if np.isinf(rows_of[row][row[1]].to_numpy(float)).any()})
    notes += [f"The figure leaves out infinite values of {', '.join(endless)}; the table has all."] if endless else []
    words = {name: style.AXES.get(name, name.replace("_", " ")).removesuffix(" (pure DP)") for name in table}
    words |= {name: _short(text) for name, text in (meanings or {}).items() if name not in style.AXES}
    # If the table already has a column of a setting, the sweep adds `…_setting`: it is named like the setting.
    words |= {
        name: words.get(base := name.removesuffix("_setting"), base) for name in table if name.endswith("_setting")
    }
    width = style.NARROW if len(columns) == 1 else style.WIDTH
    figure, axes = panels.grid(len(rows), len(columns), 0.6 + 1.7 * len(rows), width=width, sharex=True, sharey="row")
    letters = int(13 * width / len(columns))
    for panel, row, column in panels.Panels(figure, axes, rows, columns):
        notes += [note for note in _draw_panel(panel, rows_of[row], parts, row[1], column, looks) if note not in notes]
        if row == rows[0]:
            panel.set_title(textwrap.fill(panels.named(tuple(parts.columns), column), letters))
        if column == columns[0]:
            panel.set_ylabel(textwrap.fill(_row_name(parts, row, words), 26))
            _scale(panel, "y", rows_of[row][row[1]])
        if row == rows[-1]:
            _finish_x(panel, table[parts.x], textwrap.fill(words[parts.x], letters))
    title += "; bars: 95 % intervals" if any(error_of(table, measure) for _, measure in rows) else ""
    figure.suptitle(textwrap.fill(title, int(14 * width)), fontsize=7)
    panels.legend(figure)
    return figure, notes


def _short(meaning: str) -> str:
    """Return a meaning, or the first clause of a long one; the dictionary has all of it."""
    return meaning if len(meaning) <= LONGEST else re.split(r"[:;,(\[]", meaning)[0].strip()


def _row_name(parts: Layout, row: tuple, words: Mapping[str, str]) -> str:
    """Return the label of a row of panels: its measure and its metric, or the metric alone for a mean."""
    metric = panels.named(tuple(parts.metrics), row[0]) if parts.metrics else ""
    return metric if metric and row[1] == "mean" else ", ".join(filter(None, [words[row[1]], metric]))


def _looks(table, parts: Layout) -> dict[tuple, dict]:
    """Return the looks of lines; the legend names only a few of many numbers."""
    if not parts.lines:
        return {(): {"color": style.COLORS[0], "marker": "o", "label": None}}
    looks = panels.looks(table, parts.lines)
    step = -(-len(looks) // NAMED) if is_numeric_dtype(table[parts.lines[0]]) else 1
    for place, look in enumerate(looks.values()):
        look["label"] = textwrap.fill(look["label"], 40) if look["label"] and place % step == 0 else None
    return looks


def _draw_panel(panel, table, parts: Layout, measure: str, column, looks: Mapping) -> list[str]:
    """Draw one panel; returns sentences on curves that coincide."""
    numeric, names = is_numeric_dtype(table[parts.x]), panels.ordered(table[parts.x], parts.x)
    rows = panels.rows_of(table, tuple(parts.columns), column)
    rows = rows[np.isfinite(rows[measure].to_numpy(float))]
    rows = rows if numeric else rows.assign(**{parts.x: rows[parts.x].map({name: at for at, name in enumerate(names)})})
    # Words, seeds and rows that no key tells apart are drawn as points, not as a curve.
    joined = numeric and parts.x != "seed" and not rows.duplicated([*parts.lines, parts.x]).any()
    hidden = {"marker": ""} if joined and len(names) > 30 else {} if joined else {"linestyle": ""}
    how = {line: {**look, **hidden} for line, look in looks.items()}
    if not joined:
        # No line style tells points apart.
        for look, marker in zip(how.values(), itertools.cycle(style.MARKERS)):
            look["marker"] = marker
    panels.curves(panel, rows, parts.x, measure, error_of(table, measure), tuple(parts.lines), how, not hidden)
    return _coinciding(rows, parts, measure, looks)


def _finish_x(panel, values, label: str) -> None:
    if is_numeric_dtype(values):
        panel.set_xlabel(label)
        _scale(panel, "x", values)
        if panel.get_xscale() == "linear":
            panel.locator_params(axis="x", nbins=5)
    else:
        names = panels.ordered(values, values.name)
        words = [panels.named(values.name, name) for name in names]
        panel.set_xticks(range(len(names)), words, rotation=45, ha="right")


def _coinciding(rows, parts: Layout, measure: str, looks: Mapping) -> list[str]:
    """Return a sentence on lines of equal values."""
    alike: dict[tuple, list[str]] = {}
    for line, look in looks.items():
        part = panels.line_of(rows, parts.lines, line).sort_values(parts.x)
        if look["label"] and len(part):
            values = (float(f"{value:.9g}") for value in part[measure])
            alike.setdefault((*part[parts.x], *values), []).append(look["label"].replace("\n", " "))
    groups = [" = ".join(labels) for labels in alike.values() if len(labels) > 1]
    return [f"These coincide in {measure}: {'; '.join(groups)}."] if groups else []


def _scale(axes, which: str, values) -> None:
    """Make an axis logarithmic if values span two decades; if they begin at 0, it is linear near 0."""
    values = values[np.isfinite(values.to_numpy(float))]
    if values.min() > 0 and values.max() >= 99.9 * values.min():
        getattr(axes, f"set_{which}scale")("log")
    elif values.min() == 0 and values.max() > 100 * values[values > 0].median():
        panels.decades(axes, 10 ** np.floor(np.log10(values.max()) - 5), values, which)
