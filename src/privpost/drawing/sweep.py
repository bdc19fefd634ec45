"""The figure of a sweep: every key that varies is the horizontal axis, a panel, a colour or a line style."""

from __future__ import annotations

import re
from typing import NamedTuple

from privpost.drawing import multiples, style

ROWS = 6
COLUMNS = 6
# Together they give 20 looks before one comes again.
LINES = ("-", ":", "--", "-.")
MARKERS = ("o", "s", "^", "D", "v")
LOOKS = len(LINES) * len(MARKERS)
# Numbers beyond these many are read off a bar of colours, not off a legend.
ENTRIES = 8
# Curves of fewer points show them all.
MARKED = 30
# From this ratio of its ends on an axis is logarithmic.
DECADES = 50
LONGEST = 36
# Width of a letter of a title, in inches.
LETTER = 0.068
# Columns that describe the spread of another one, or count; they are not drawn.
_NOT_DRAWN = re.compile(r"(.*_)?(sem|sd|error|low|high)|n_.+")
_SPREAD = re.compile(r"\b(\w+_)?sem\b")
_PANEL_KEYS = ("metric", "statistic", "quantity", "parameter")
_AXIS = {"epsilon": "Privacy loss ε", "log_epsilon": "Log of the privacy loss ε", "n": "Records n", "delta": "δ"}


class Layout(NamedTuple):
    """Which column has which part in the figure; `numeric` says whether x, if there is one, is a number."""

    x: str | None
    numeric: bool
    metrics: list[str]
    facets: list[str]
    hue: str | None
    styles: list[str]
    measures: list[str]


def layout(table, swept: list[str], known) -> Layout:
    """Return the parts of a table's columns; `swept` are columns of the sweep's settings, `known` names of settings."""
    from pandas.api.types import is_bool_dtype, is_numeric_dtype

    truths = [column for column in table if is_bool_dtype(table[column].dropna().infer_objects())]
    columns = [column for column in table if column in swept or column not in truths]
    numeric = [column for column in columns if is_numeric_dtype(table[column]) and column not in truths]
    keys = [column for column in columns if column in swept or column in known or column not in numeric]
    measures = [column for column in numeric if column not in keys and not _NOT_DRAWN.fullmatch(column)]
    measures = [column for column in measures if table[column].nunique() > 1] or measures
    keys = _independent(table, [key for key in keys if table[key].nunique(dropna=False) > 1], swept)
    keys += (places := _coordinates(table, keys, measures))
    measures = [column for column in measures if column not in places] or measures
    crowded = "method" in keys and table["method"].nunique() > COLUMNS
    x = "method" if crowded else _horizontal(table, keys, numeric, swept)
    metrics = [key for key in _PANEL_KEYS if key in keys and key != x]
    rest = [key for key in keys if key not in (x, *metrics)]
    facets = ["method"] if "method" in rest else []
    rest = sorted((key for key in rest if key not in facets), key=lambda key: key not in swept)
    many = sorted(rest, key=lambda key: (key not in swept, key not in numeric, -table[key].nunique()))
    hue = many[0] if many else None
    styles, looks = [], 1
    for key in rest:
        if key != hue and looks * table[key].nunique(dropna=False) <= LOOKS:
            styles.append(key)
            looks *= table[key].nunique(dropna=False)
    facets += [key for key in rest if key != hue and key not in styles]
    return Layout(x, x in numeric, metrics, facets, hue, styles, measures)


def _independent(table, keys: list[str], swept: list[str]) -> list[str]:
    """Return the keys without those that the others determine, such as how the draws of a method are made."""
    kept = list(keys)
    for key in reversed(keys):
        others = [other for other in kept if other != key]
        if key in swept or key == "method" or not others:
            continue
        if table.groupby(others, dropna=False)[key].nunique(dropna=False).max() <= 1:
            kept = others
    return kept


def _coordinates(table, keys: list[str], measures: list[str]) -> list[str]:
    """Return measures that tell rows with equal keys apart by values that come again, such as the points of a grid."""
    # Where there are no keys, all rows are alike in this one.
    table, keys, found = table.assign(**{"": 0}), ["", *keys], []
    while (alike := table.duplicated([*keys, *found], keep=False)).any():
        grids = [name for name in measures if name not in found and 1 < table[name].nunique() <= alike.sum() / 2]
        left = {name: table.duplicated([*keys, *found, name]).sum() for name in grids}
        best = min(left, key=lambda name: (left[name], table[name].nunique()), default=None)
        if best is None or left[best] >= table.duplicated([*keys, *found]).sum():
            break
        found.append(best)
    return found


def _horizontal(table, keys: list[str], numeric: list[str], swept: list[str]) -> str | None:
    numbers = [key for key in keys if key in numeric]
    # Seeds have no order: a curve over them says nothing, unless they are all that differs.
    ranked = sorted(numbers, key=lambda key: (key == "seed", -table[key].nunique(), key not in swept))
    words = sorted((key for key in keys if key not in numeric), key=lambda key: (key not in swept, key == "method"))
    return next(iter(ranked + words), None)


def columns_of(table, swept: list[str], known) -> int:
    """Return how many columns of panels a table's figure would have; more than any, if the table has no measure."""
    parts = layout(table, swept, known)
    return len(_facets(table, parts.facets)) if parts.measures else len(table) + 1


def draw(table, swept: list[str], known, title: str = ""):
    """Return the figure of a table and a list of sentences about what it leaves out.

    Rows of panels are measured columns (and metrics), columns of panels methods, colours the swept setting with the
    most values, line styles and markers the other keys. Bars are one standard error.
    """
    parts = layout(table, swept, known)
    rows, columns = _panels(table, parts), _facets(table, parts.facets)
    notes = []
    for what, found, limit in (("rows", rows, ROWS), ("columns", columns, COLUMNS)):
        if len(found) > limit:
            notes.append(f"The figure shows {limit} of {len(found)} {what} of panels; the table has all.")
    rows, columns = rows[:ROWS], columns[:COLUMNS]
    endless = sorted({measure for _, measure in rows if (table[measure].abs() == float("inf")).any()})
    if endless:
        notes.append(f"The figure leaves out infinite values of {', '.join(endless)}; the table has all.")
    looks = _Looks(table, parts)
    width = max(style.ONE_COLUMN, min(style.TWO_COLUMNS, 2.3 * len(columns)))
    figure, grid = multiples.grid(
        max(1, len(rows)), len(columns), 1.9 * max(1, len(rows)) + 0.6, width=width, sharex=True, sharey="row"
    )
    for panels, (metric, measure) in zip(grid, rows, strict=False):
        for axes, facet in zip(panels, columns, strict=True):
            chosen = table[_rows(table, {**metric, **facet})].dropna(subset=[measure])
            _curves(axes, chosen, parts, measure, looks)
        words = [measure] if _same(table, parts, measure) else [measure, *map(str, metric.values())]
        panels[0].set_ylabel(_wrapped(" ".join(words).replace("_", " ")))
        _scale(panels[0], "y", table.loc[_rows(table, metric), measure], 1000)
    for axes, facet in zip(grid[0], columns, strict=True):
        words = [style.look(value).label if key == "method" else _label(key, value) for key, value in facet.items()]
        axes.set_title(_wrapped(", ".join(words), min(30, int(width / len(columns) / LETTER))))
    figure.suptitle(f"{title}; bars: one standard error" if _SPREAD.search(" ".join(table)) else title, fontsize=7)
    if not rows:
        grid[0, 0].text(0.5, 0.5, "no measured number", ha="center", transform=grid[0, 0].transAxes)
    _finish_horizontal(grid, table, parts)
    looks.explain(figure, grid)
    return figure, notes


def _panels(table, parts: Layout) -> list[tuple[dict, str]]:
    combinations = _facets(table, parts.metrics)
    found = [(metric, column) for metric in combinations for column in parts.measures]
    # A measure that is the same for all metrics has one row of panels, after those that are not.
    same = {column for column in parts.measures if _same(table, parts, column)}
    found = [(m, c) for m, c in found if c not in same] + [(combinations[0], c) for c in parts.measures if c in same]
    varying = [(m, c) for m, c in found if table.loc[_rows(table, m), c].nunique() > 1]
    return varying or [(m, c) for m, c in found if table.loc[_rows(table, m), c].notna().any()]


def _same(table, parts: Layout, column: str) -> bool:
    others = [key for key in (parts.x, parts.hue, *parts.styles, *parts.facets) if key is not None]
    if not parts.metrics or not others:
        return False
    return bool(table.groupby(others, dropna=False)[column].nunique().max() <= 1)


def _facets(table, keys: list[str]) -> list[dict]:
    if not keys:
        return [{}]
    return [dict(zip(keys, values, strict=True)) for values in table[keys].drop_duplicates().itertuples(index=False)]


def _rows(table, values: dict):
    import pandas as pd

    chosen = pd.Series(True, index=table.index)
    for key, value in values.items():
        # Missing values are equal to each other here.
        chosen &= table[key].isna() if pd.isna(value) else table[key] == value
    return chosen


def _curves(axes, rows, parts: Layout, measure: str, looks: _Looks) -> None:
    keys = [key for key in (parts.hue, *parts.styles) if key is not None]
    for _, curve in rows.groupby(keys, dropna=False, sort=False) if keys else [((), rows)]:
        if curve.empty:
            continue
        look = looks.of(curve.iloc[0])
        flat = curve[curve[parts.x].isna()] if parts.x is not None else curve
        for value in flat[measure]:
            axes.axhline(value, color=look["color"], linestyle=look["linestyle"], linewidth=0.8)
        if parts.x is None:
            continue
        line = curve.dropna(subset=[parts.x]).sort_values(parts.x)
        if not parts.numeric or parts.x == "seed":
            look["linestyle"] = ""
        elif line[parts.x].duplicated().any():
            # Rows that no key tells apart are no curve.
            look["linestyle"] = ""
        elif len(line) >= MARKED:
            # Styles of lines come again; their markers tell them apart.
            look |= {"markevery": len(line) // 8} if len(looks.combinations) > len(LINES) else {"marker": ""}
        place = line[parts.x] if parts.numeric else looks.places(line[parts.x])
        axes.plot(place, line[measure], markersize=3, **look)
        if (spread := _spread(line, measure)) is not None:
            axes.vlines(place, line[measure] - spread, line[measure] + spread, color=look["color"], linewidth=0.7)


def _spread(rows, measure: str):
    base = measure.removesuffix("_mean")
    names = [f"{base}_sem", *(["sem"] if measure in ("mean", "are") else [])]
    return next((rows[name] for name in names if name in rows and rows[name].notna().any()), None)


def _finish_horizontal(grid, table, parts: Layout) -> None:
    for axes in grid[-1]:
        axes.set_xlabel("" if parts.x is None else _AXIS.get(parts.x, parts.x.replace("_", " ")))
    if parts.x is None:
        return
    if parts.numeric:
        _scale(grid[0, 0], "x", table[parts.x], DECADES)
        return
    names = [str(value) for value in table[parts.x].dropna().unique()]
    for axes in grid[-1]:
        axes.set_xticks(range(len(names)), [_short(name, 20) for name in names], rotation=45, ha="right")


def _scale(axes, which: str, values, ratio: float) -> None:
    values = values[values.abs() < float("inf")]
    if len(values) and values.min() > 0 and values.max() > ratio * values.min():
        getattr(axes, f"set_{which}scale")("log")


class _Looks:
    """Colours of one key's values, line styles and markers of the combinations of others."""

    def __init__(self, table, parts: Layout):
        import matplotlib as mpl
        from matplotlib import colors
        from pandas.api.types import is_numeric_dtype

        self.parts = parts
        self.names = [] if parts.x is None else list(table[parts.x].dropna().unique())
        hues = [None] if parts.hue is None else list(table[parts.hue].drop_duplicates())
        self.combinations = [
            tuple(map(str, row)) for row in table[parts.styles].drop_duplicates().itertuples(index=False)
        ]
        shades = mpl.colormaps["viridis"]
        self.bar = None
        if len(hues) > ENTRIES and is_numeric_dtype(table[parts.hue]):
            low, high = table[parts.hue].min(), table[parts.hue].max()
            norm = (colors.LogNorm if low > 0 and high > DECADES * low else colors.Normalize)(low, high)
            self.bar = mpl.cm.ScalarMappable(norm, shades)
            self.colors = {str(value): shades(0.9 * norm(value)) for value in hues}
        else:
            hues = sorted(hues) if len(hues) > 1 and is_numeric_dtype(table[parts.hue]) else hues
            self.colors = {str(value): shades(0.9 * i / max(1, len(hues) - 1)) for i, value in enumerate(hues)}
        self.labels = {str(value): "" if parts.hue is None else _label(parts.hue, value) for value in hues}

    def of(self, row) -> dict:
        """Return the look of the curve that a row belongs to."""
        place = self.combinations.index(tuple(str(row[key]) for key in self.parts.styles)) if self.parts.styles else 0
        look = {"linestyle": LINES[place % len(LINES)], "marker": MARKERS[place % len(MARKERS)]}
        return {"color": self.colors["None" if self.parts.hue is None else str(row[self.parts.hue])], **look}

    def places(self, values) -> list[int]:
        """Return the places of words on the horizontal axis."""
        return [self.names.index(value) for value in values]

    def explain(self, figure, grid) -> None:
        """Draw the legend, or the bar of colours, and make room for it."""
        handles = []
        if self.bar is not None:
            figure.colorbar(self.bar, ax=grid, label=_short(self.parts.hue, LONGEST), fraction=0.05)
        elif self.parts.hue is not None:
            handles += [
                multiples.entry(color=self.colors[value], linewidth=3, label=_short(label, LONGEST))
                for value, label in self.labels.items()
            ]
        for place, values in enumerate(self.combinations if self.parts.styles else []):
            words = [_label(key, value) for key, value in zip(self.parts.styles, values, strict=True)]
            look = {"linestyle": LINES[place % len(LINES)] if self.parts.numeric else ""}
            look |= {"marker": MARKERS[place % len(MARKERS)], "markersize": 3}
            # Labels differ in their last words, too: they are broken, not cut.
            fitting = int((figure.get_figwidth() - 0.6) / LETTER)
            handles.append(multiples.entry(color="#444444", label=_wrapped(", ".join(words), fitting, 9), **look))
        if handles:
            labels = [handle.get_label().split("\n") for handle in handles]
            widest, lines = max(len(line) for label in labels for line in label), max(map(len, labels))
            columns = max(1, min(len(handles), int(figure.get_figwidth() / (0.45 + 0.062 * widest))))
            figure.set_figheight(figure.get_figheight() + 0.16 * lines * -(-len(handles) // columns))
            multiples.legend(figure, handles, ncols=columns)


def _label(key: str, value) -> str:
    name = key.replace("_", " ")
    if str(value) in ("nan", "None", "<NA>"):
        return f"no {name}"
    return f"{name} {value:g}" if isinstance(value, float) else f"{name} {str(value).removesuffix('.0')}"


def _short(text: str, length: int) -> str:
    return text if len(text) <= length else f"{text[: length - 1]}…"


def _wrapped(text: str, length: int = 22, lines: int = 3) -> str:
    import textwrap

    return "\n".join(textwrap.wrap(text, length)[:lines])
