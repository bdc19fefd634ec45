"""Panels with curves, points in rows, or tiles. seaborn draws them in the project's style from means and errors.

    grid = facets.lines(facets.named(table), "n", "mean", "sem", col="epsilon", xscale="log")
    for axes, rows in facets.each(grid):
        axes.axhline(rows.limit.iloc[0])
    return facets.finish(grid, "OPS stays behind" if holds else "", "n", "Error")

`named` gives methods their names and order. `lines`, `dots` and `tiles` draw. `each` yields the panels for your own
additions. `finish` adds the finding, the axes' labels and the legend. Rows without a value of the panels' column are in
all panels. Rows without `x` are horizontal lines.
"""

import itertools
import re
import textwrap
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from privpost.datasets import catalogue
from privpost.drawing import style

# Width of a letter relative to the font size; texts are broken into lines with it.
LETTER = 0.6
_NUMBER = r"-?\d+(\.\d+)?(e[+-]?\d+)?"
_NUMBERS = re.compile(f"{_NUMBER}( {_NUMBER})*")
_PATTERNS = {"-": "", "--": (4, 1.5), ":": (1, 1), "-.": (3, 1.25, 1.5, 1.25)}


def ordered(values: Iterable, column="", names: Iterable = ()) -> list:
    """Return the distinct values, without missing ones, in the order of `names`.

    Without names, methods are in the order of the style, data sets in that of the catalogue, and numbers by size.
    Unknown values come last.
    """
    import pandas as pd

    present = [value for value in dict.fromkeys(values) if not pd.isna(value)]
    known = [name for name in names if name in present]
    if not known and column in ("method", "dataset"):
        known = list(style.LOOKS) if column == "method" else catalogue.names()
    if known:
        return sorted(present, key=lambda value: (known.index(value) if value in known else len(known), str(value)))
    return present if any(isinstance(value, str) for value in present) else sorted(present)


def words(column: str, value, names: Mapping = {}) -> str:
    """Return the label of a column's value, such as `n = 1,000`, a method's name, or an entry of `names`."""
    import pandas as pd

    if value in names:
        return names[value]
    if column == "method":
        return style.look(value).label
    if column == "dataset":
        return catalogue.title(value)
    if pd.isna(value):
        return ""
    if isinstance(value, str) and not _NUMBERS.fullmatch(value):
        return value.replace("_", " ")
    numbers = [float(part) for part in str(value).split()]
    number = ", ".join(f"{int(n):,}" if n.is_integer() and abs(n) < 1e6 else style.power(n) for n in numbers)
    # A sweep adds `<setting>_setting` if the table already has a column of the setting's name.
    column = column.removesuffix("_setting")
    notion = " (pure DP)" if column == "epsilon" else ""
    return f"{style.SYMBOLS.get(column, column.replace('_', ' '))} = {number}{notion}".replace("-", "−")


def fixed(table, *columns: str) -> str:
    """Return the labels of a table's constant columns as one text, such as `ε = 0.1 (pure DP), n = 1,000`."""
    values = [(column, table[column].dropna().unique()) for column in columns]
    return ", ".join(words(column, found[0]) for column, found in values if len(found) == 1)


def sized(table) -> dict[str, str]:
    """Return a label for each data set of a table: the title and the number of training records."""
    sizes = table.groupby("dataset").n_train.max()
    return {name: f"{catalogue.title(name)}\nn = {sizes[name]:,.0f}" for name in ordered(sizes.index, "dataset")}


def named(table, *others: str, hue: str = "method", names: Mapping = {}):
    """Return the sorted table with a column `Method`, which joins the labels of the columns `hue` and `others`."""
    for column in (*reversed(others), hue):
        table = _sorted(table, column, names)
    parts = [table[name].map(lambda value, name=name: words(name, value, names)) for name in (hue, *others)]
    return table.assign(Method=[", ".join(filter(None, line)) or "–" for line in zip(*parts, strict=True)])


def _sorted(table, column: str, names: Mapping):
    """Return the table sorted by a column in the order of `ordered`, with missing values first."""
    place = {value: place for place, value in enumerate(ordered(table[column], column, names))}
    how: dict[str, Any] = {"kind": "stable", "ignore_index": True}
    return table.sort_values(column, key=lambda values: values.map(place).astype(float).fillna(-1), **how)


def in_all(table, *columns: str):
    """Return the table in which each row without a value in a column is repeated for all values of the column."""
    import pandas as pd

    for column in columns:
        full, values = table[table[column].notna()], ordered(table[column])
        lacking = [table[table[column].isna()].assign(**{column: value}) for value in values]
        table = pd.concat([full, *lacking], ignore_index=True) if values else table
    return table


def excess(table, y: str, keys: Iterable[str], reference: str = "non_private"):
    """Return the rows of methods other than a reference, with `y` less the reference's `y` at equal keys.

    Raises ValueError if the reference has several rows with equal keys.
    """
    keys, truth = list(keys), table[table.method == reference]
    if truth.duplicated(keys).any():
        raise ValueError(f"{reference} has several rows with equal {', '.join(keys)}")
    rest = table[table.method != reference].merge(truth[[*keys, y]], "left", keys, suffixes=("", "_reference"))
    return rest.assign(**{y: rest[y] - rest[f"{y}_reference"]})


def shades(values, first: float = 0.0, last: float = 0.72) -> dict:
    """Return a colour of the map viridis for each of the ordered values."""
    import matplotlib as mpl

    colors = mpl.colormaps["viridis"](np.linspace(first, last, len(values)))
    return dict(zip(values, map(mpl.colors.to_hex, colors), strict=True))


def looks(table, hue: str = "method", names: Mapping = {}) -> dict[str, Any]:
    """Return seaborn's palette, markers, dashes and orders for the names in a table made by `named`."""
    values = ordered(table[hue], hue, names)
    shade = {} if not values or isinstance(values[0], str) else shades(values)
    rows = _sorted(table.drop_duplicates("Method"), hue, names)
    look: dict[str, Any] = {name: {} for name in ("palette", "markers", "dashes")}
    at_each = rows.groupby(hue, dropna=False).cumcount()
    for label, value, at in zip(rows.Method, rows[hue], at_each, strict=True):
        place = values.index(value) if value in values else len(values)
        mark = style.look(value) if hue == "method" else None
        look["palette"][label] = mark.color if mark else shade.get(value) or style.COLORS[place % 6]
        look["markers"][label] = mark.marker if mark else style.MARKERS[(place + place // 12) % 12]
        look["dashes"][label] = _PATTERNS[mark.linestyle if mark and not at_each.any() else style.LINES[at % 4]]
    return {**look, "hue_order": list(look["palette"]), "style_order": list(look["palette"])}


def _facets(table, names: Mapping, width: float, **columns) -> tuple[Any, dict[str, Any]]:
    """Return the table with titles of panels, and seaborn's arguments for the panels."""
    table = in_all(table, *filter(None, columns.values())).reset_index(drop=True)
    arguments: dict[str, Any] = {}
    for part, column in columns.items():
        if column is not None:
            values = ordered(table[column], column, names)
            room = (width - 0.5) / len(values) if part == "col" else 1.5
            title = {value: filled(words(column, value, names), room) for value in values}
            table[f"panel's {part}"] = table[column].map(title)
            arguments |= {part: f"panel's {part}", f"{part}_order": list(title.values())}
    return table, arguments


def filled(text: str, width: float, size: float = 8) -> str:
    """Return a text broken into lines of at most `width` inches, at a font size in points."""
    return "\n".join(textwrap.fill(line, int(width / (size / 72 * LETTER))) for line in text.split("\n"))


def _grid(table, names: Mapping, size: tuple[float, float], share, **columns):
    """Return seaborn's grid with a panel for each value of the given columns."""
    import seaborn as sns

    class Grid(sns.FacetGrid):
        def tight_layout(self, *_, **__):
            return self

    table, panels = _facets(table, names, size[0], **columns)
    grid = Grid(table, sharex=share[0], sharey=share[1], margin_titles=True, **panels)
    grid.figure.set_size_inches(size[0], 0.75 + size[1] * grid.axes.shape[0])
    return grid.set_titles("", row_template="{row_name}", col_template="{col_name}")


def lines(
    table, x: str, y: str, error: str | tuple[str, str] | None = None, *, row=None, col=None, hue="method", solid="",
    names: Mapping = {}, size: tuple[float, float] = (style.WIDTH, 1.5), share=(True, "row"), kind="line",
    markers: bool = True, **scales,
):  # fmt: skip
    """Return seaborn's grid of curves of `y` against `x`: a panel per value of `row` and `col`, a curve per name.

    Args:
        table: each row is a point. Curves are named by `hue` unless the table comes from `named`.
        error: a column of standard errors, or two columns of ends (low, high), for 95 % intervals.
        solid: a column of truth values. Markers of rows with a false value are hollow.
        names: labels for values of `row`, `col` and `hue`, in the order of panels and curves.
        size: width of the figure and height of one panel, in inches.
        share: seaborn's `sharex` and `sharey`.
        kind: `line`, or `scatter` for points alone.
        scales: `xscale`, `yscale`, `xlim`, `xticks` and more, set on each panel.
    """
    import seaborn as sns

    # pandas names a missing column in its error; seaborn does not.
    table = table.assign(**{y: table[y].astype(float)})
    table = table if "Method" in table else named(table, hue=hue, names=names)
    look = looks(table, hue, names)
    if kind == "scatter" and any(look["dashes"].values()) and len(set(look["markers"].values())) < len(look["markers"]):
        # Points have no dashes, so markers have to tell them apart.
        look["markers"] = dict(zip(look["markers"], itertools.cycle(style.MARKERS)))
    dashes = look.pop("dashes")
    draw, how = {
        "line": (sns.lineplot, {"errorbar": None, "estimator": None, "dashes": dashes, "markeredgewidth": 0}),
        "scatter": (sns.scatterplot, {"linewidth": 0, "s": 16}),
    }[kind]
    how |= look | ({} if markers else {"markers": False})
    grid = _grid(in_all(table, x), names, size, share, row=row, col=col)
    # The legend has an entry for each name. Of many numbers, only some have an entry.
    labels = look["hue_order"]
    for label in labels[:: -(-len(labels) // 8) if len(labels) > 24 else 1]:
        stroke = "" if kind == "scatter" else (0, dashes[label]) if dashes[label] else "-"
        mark = {"color": look["palette"][label], "marker": look["markers"][label] if markers else "", "label": label}
        grid.axes.flat[0].plot([], [], linestyle=stroke, **mark)
    for axes, rows in each(grid):
        draw(rows, x=x, y=y, hue="Method", style="Method", legend=False, ax=axes, **how)
        axes.set(xlabel="", ylabel="")
        for value, part in rows.groupby("Method", sort=False):
            color = look["palette"][value]
            if error is not None:
                low, high = ends(part, y, error)
                bars = np.maximum([part[y] - low, high - part[y]], 0)
                axes.errorbar(part[x], part[y], bars, fmt="none", ecolor=(color, 0.55), elinewidth=0.8)
            if solid and len(ring := part[~part[solid].astype(bool)]):
                empty = {"markerfacecolor": "white", "markersize": 4, "markeredgewidth": 0.8, "zorder": 4}
                axes.plot(ring[x], ring[y], look["markers"][value], color=color, **empty)
    return grid.set(**scales)


def ends(rows, y: str, error: str | tuple[str, str]):
    """Return the lower and upper ends of 95 % intervals, given or computed from standard errors."""
    if isinstance(error, tuple):
        return rows[error[0]], rows[error[1]]
    return rows[y] - style.NORMAL_95 * rows[error], rows[y] + style.NORMAL_95 * rows[error]


def dots(
    table, x: str, y: str, error: str | tuple[str, str] | None = None, *, col=None, solid="", names: Mapping = {},
    size: tuple[float, float] = (style.WIDTH, 0.25), **scales,
):  # fmt: skip
    """Return seaborn's grid of points: a labelled row per value of `y`, with the methods' points below each other.

    Arguments are as in `lines`, except that `size` has the height of one row.
    """
    values, look = ordered(table[y], y, names), looks(table)
    methods, palette = look["hue_order"], look["palette"]
    step = 0.7 / len(methods)
    place = table[y].map(values.index) + step * (table.Method.map(methods.index) - (len(methods) - 1) / 2)
    grid = lines(
        table.assign(place=place), x, "place", None, col=col, solid=solid, names=names, share=(True, True),
        size=(size[0], size[1] * len(values)), kind="scatter", **scales,
    )  # fmt: skip
    labels = [words(y, value, names) for value in values]
    room = (size[0] - max(map(_longest, labels)) * 7 / 72 * LETTER) / grid.axes.shape[1]
    for axes, rows in each(grid):
        axes.set_title(filled(axes.get_title().replace("\n", " "), room))
        if error is not None:
            axes.hlines(rows.place, *ends(rows, x, error), color=rows.Method.map(palette), linewidth=0.8)
        axes.grid(axis="y", visible=False)
    axes.set_yticks(range(len(values)), labels)
    axes.set_ylim(len(values) - 0.5, -0.5)
    return grid


def tiles(
    table, x: str, y: str, value: str, text: str | None = None, *, row=None, col=None, names: Mapping = {},
    size: tuple[float, float] = (style.WIDTH, 1.6), share=(True, True), **how,
):  # fmt: skip
    """Return seaborn's grid of heat maps: a tile per pair of `x` and `y`, with the text in the column `text`.

    `how` holds further arguments of seaborn's `heatmap`. Other arguments are as in `lines`.
    """
    import seaborn as sns

    across, up = ordered(table[x], x, names), ordered(table[y], y, names)
    up = up if isinstance(up[0], str) else up[::-1]
    grid = _grid(table, names, size, share, row=row, col=col)
    for axes, rows in each(grid):
        wide = rows.set_index([y, x])[list({value, text or value})].unstack().reindex(index=up)
        numbers, written = (wide[column].reindex(columns=across) for column in (value, text or value))
        sns.heatmap(
            numbers.astype(float), annot=written if text else None, fmt="", annot_kws={"size": 7}, cbar=False, ax=axes,
            linewidths=0.5, xticklabels=_ticks(x, across, names), yticklabels=_ticks(y, up, names), **how,
        )  # fmt: skip
        axes.grid(visible=False)
        axes.tick_params(length=0)
        axes.tick_params(axis="y", rotation=0)
        axes.set(xlabel="", ylabel="")
    return grid


def _ticks(column: str, values, names: Mapping) -> list[str]:
    return [words(column, v, names) if isinstance(v, str) or v in names else style.power(v) for v in values]


def each(grid) -> Iterator[tuple[Any, Any]]:
    """Yield the axes and the rows of each panel of a grid, except panels without rows."""
    for (row, column, _), rows in grid.facet_data():
        if len(rows):
            yield grid.facet_axis(row, column, modify_state=False), rows


def band(axes, low: float, high: float, across: bool = True) -> None:
    """Shade a range of values that are no evidence, such as the range in which calibrated methods lie."""
    (axes.axhspan if across else axes.axvspan)(low, high, color=style.BAND, linewidth=0, zorder=0)


def subplots(rows: int, columns: int, height: float, *, width: float = style.WIDTH, **keywords):
    """Return a figure of Matplotlib, and the array (rows, columns) of its axes. Lengths are in inches."""
    import matplotlib.pyplot as plt

    return plt.subplots(rows, columns, figsize=(width, height), squeeze=False, **keywords)


def entry(**how):
    """Return a legend entry that is not tied to a curve."""
    from matplotlib.lines import Line2D

    return Line2D([], [], **{"color": style.GREY, **how})


def hollow(means: str):
    """Return the legend entry that says what hollow markers mean."""
    return entry(marker="s", markerfacecolor="white", linestyle="", label=f"Hollow: {means}")


def finish(grid, answer: str, xlabel="", ylabel="", handles: Iterable = (), *, note="", below=True, **keywords):
    """Write a figure's finding, labels of axes and legend, and return the figure.

    Args:
        grid: a grid of seaborn, or a figure of Matplotlib.
        answer: the finding, or "" if the drawn tables do not show it.
        xlabel, ylabel: texts, or keys of the style's `AXES`.
        handles: further entries of the legend, besides the entries of labelled curves.
        note: text below the label of the horizontal axis.
        keywords: further arguments of Matplotlib's `legend`.
    """
    figure = getattr(grid, "figure", None) or grid
    # Break the finding into lines of about equal length.
    letters = int(figure.get_figwidth() / (9 / 72 * LETTER))
    even = len(answer) // -(-len(answer) // letters) + 6 if len(answer) > letters else letters
    figure.suptitle(textwrap.fill(answer, min(letters, even)), fontsize=9, weight="bold")
    label = figure.supylabel(style.AXES.get(ylabel, ylabel), fontsize=8)
    xlabel = "\n".join(filter(None, (style.AXES.get(xlabel, xlabel), note)))
    if below:
        _legend(figure, handles, xlabel, keywords)
    else:
        figure.supxlabel(xlabel, fontsize=8)
    # The legend has added to the height, which the label has to fit into.
    label.set_text(filled(label.get_text(), figure.get_figheight()))
    return figure


def _legend(figure, handles, xlabel: str, keywords: Mapping) -> None:
    """Draw one legend with each label once."""
    entries: dict[str, Any] = {}
    for axes in figure.axes:
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
            entries.setdefault(label, handle)
    entries |= {handle.get_label(): handle for handle in handles}
    if not entries:
        figure.supxlabel(xlabel, fontsize=8)
        return
    labels, columns = list(entries), len(entries)
    while columns > 1:
        # Matplotlib fills the legend column by column. If columns differ in length, the first have one entry more.
        widest = [max(map(_longest, part)) for part in np.array_split(np.array(labels, object), columns)]
        if sum(0.41 + 7 / 72 * LETTER * length for length in widest) <= figure.get_figwidth():
            break
        columns -= 1
    depth = max(label.count("\n") for label in labels) + 1
    height = (0.03 + 0.12 * depth) * -(-len(labels) // columns) + 0.13 * xlabel.count("\n")
    figure.set_figheight(figure.get_figheight() + height)
    # The axis' label becomes the legend's title, since the layout would draw label and legend in the same place.
    title = {"title": xlabel, "title_fontsize": 8} if xlabel else {}
    how = {"loc": "outside lower center", "ncols": columns, "columnspacing": 1.2, **title, **keywords}
    figure.legend(entries.values(), entries.keys(), **how).get_title().set_multialignment("center")


def _longest(label: str) -> int:
    return max(map(len, label.split("\n")))
