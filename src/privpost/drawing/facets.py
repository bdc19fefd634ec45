"""seaborn with the project's looks: curves, rows of points and tiles of given means and errors, in panels.

    grid = facets.lines(facets.named(table), "n", "mean", "sem", col="epsilon", xscale="log")
    for axes, rows in facets.each(grid):
        axes.axhline(rows.limit.iloc[0])
    return facets.finish(grid, "OPS stays behind" if holds else "", "n", "Error")

`named` gives methods the names and the order of the style, `lines`, `dots` and `tiles` draw, `each` yields the panels
for what seaborn does not draw, and `finish` writes the answer, the labels of the axes and the legend. No value is left
out: those unknown to style and catalogue come last, rows that lack a panel's value are in all panels, and rows that
lack `x` are lines across.
"""

import itertools
import re
import textwrap
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from privpost.datasets import catalogue
from privpost.drawing import style

# Width of a letter as a share of the font's size, for breaking lines.
LETTER = 0.6
_NUMBER = r"-?\d+(\.\d+)?(e[+-]?\d+)?"
_NUMBERS = re.compile(f"{_NUMBER}( {_NUMBER})*")
_PATTERNS = {"-": "", "--": (4, 1.5), ":": (1, 1), "-.": (3, 1.25, 1.5, 1.25)}


def ordered(values: Iterable, column="", names: Iterable = ()) -> list:
    """Return the different values, without missing ones, in the order of `names` or else of their kind.

    Methods have the style's order, data sets the catalogue's, numbers that of size; unknown values come last.
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
    """Return the words for a value of a column: those of `names`, a method's or data set's own, or `symbol = value`.

    ε of the column `epsilon` is that of pure DP, and says so.
    """
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
    # The column that a sweep adds for a setting which the table has too.
    column = column.removesuffix("_setting")
    notion = " (pure DP)" if column == "epsilon" else ""
    return f"{style.SYMBOLS.get(column, column.replace('_', ' '))} = {number}{notion}".replace("-", "−")


def fixed(table, *columns: str) -> str:
    """Return in words the columns that have one value in a table: `ε = 0.1 (pure DP), n = 1,000`."""
    values = [(column, table[column].dropna().unique()) for column in columns]
    return ", ".join(words(column, found[0]) for column, found in values if len(found) == 1)


def sized(table) -> dict[str, str]:
    """Return words for the data sets of a table: their title and how many records train."""
    sizes = table.groupby("dataset").n_train.max()
    return {name: f"{catalogue.title(name)}\nn = {sizes[name]:,.0f}" for name in ordered(sizes.index, "dataset")}


def named(table, *others: str, hue: str = "method", names: Mapping = {}):
    """Return a table with a column `Method`, the name in legends, and its rows in the order of the style's methods.

    The words of the columns `others` are part of the name where they are not empty: `Laplace, exact charge`. Names are
    of the values of another column if `hue` says so.
    """
    for column in (*reversed(others), hue):
        table = _sorted(table, column, names)
    parts = [table[name].map(lambda value, name=name: words(name, value, names)) for name in (hue, *others)]
    return table.assign(Method=[", ".join(filter(None, line)) or "–" for line in zip(*parts, strict=True)])


def _sorted(table, column: str, names: Mapping):
    """Return a table with its rows in the order of a column's values, those that lack one first."""
    place = {value: place for place, value in enumerate(ordered(table[column], column, names))}
    how: dict[str, Any] = {"kind": "stable", "ignore_index": True}
    return table.sort_values(column, key=lambda values: values.map(place).astype(float).fillna(-1), **how)


def in_all(table, *columns: str):
    """Return a table that repeats a row without a value of a column for each of its values: in all panels, along x."""
    import pandas as pd

    for column in columns:
        full, values = table[table[column].notna()], ordered(table[column])
        lacking = [table[table[column].isna()].assign(**{column: value}) for value in values]
        table = pd.concat([full, *lacking], ignore_index=True) if values else table
    return table


def excess(table, y: str, keys: Iterable[str], reference: str = "non_private"):
    """Return the rows of all methods but a reference, less the reference's `y` at the same keys.

    Raises ValueError where the reference has more than one row for some keys.
    """
    keys, truth = list(keys), table[table.method == reference]
    if truth.duplicated(keys).any():
        raise ValueError(f"{reference} has several rows with equal {', '.join(keys)}")
    rest = table[table.method != reference].merge(truth[[*keys, y]], "left", keys, suffixes=("", "_reference"))
    return rest.assign(**{y: rest[y] - rest[f"{y}_reference"]})


def shades(values, first: float = 0.0, last: float = 0.72) -> dict:
    """Return a colour for each of some ordered values, from the part of the map viridis that is dark enough."""
    import matplotlib as mpl

    colors = mpl.colormaps["viridis"](np.linspace(first, last, len(values)))
    return dict(zip(values, map(mpl.colors.to_hex, colors), strict=True))


def looks(table, hue: str = "method", names: Mapping = {}) -> dict[str, Any]:
    """Return seaborn's palette, markers, dashes and orders of the names in a table from `named`.

    Methods have the style's look, other numbers shades and words colours. Where a value has several names, dashes tell
    these apart, and the same dash has the same place among the names of every value.
    """
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
    """Return a table with the words for the panels' rows and columns, and seaborn's arguments for them."""
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
    """Return a text with line ends, so that it is no wider than so many inches at a font's size in points."""
    return "\n".join(textwrap.fill(line, int(width / (size / 72 * LETTER))) for line in text.split("\n"))


def _grid(table, names: Mapping, size: tuple[float, float], share, **columns):
    """Return seaborn's grid of panels for values of some columns, laid out once, when it is saved."""
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
    """Return seaborn's grid of curves: `y` on `x`, a panel per value of `row` and `col`, a curve per name.

    Args:
        table: from `named`, or named here by `hue`; a row of it is a point.
        error: the column of standard errors, or two of ends (low, high), of which 95 % intervals are drawn.
        solid: a column of truth values; the markers of rows where it is false are hollow.
        names: words for values of `row`, `col` and `hue`; their order is the panels'.
        size: width of the figure and height of one panel, in inches.
        share: seaborn's `sharex` and `sharey`.
        kind: `line`, or `scatter` for points alone.
        markers: whether curves have them.
        scales: `xscale`, `yscale`, `xlim`, `xticks` and more, set on each panel.
    """
    import seaborn as sns

    # As pandas names a column that is not there, and seaborn does not.
    table = table.assign(**{y: table[y].astype(float)})
    table = table if "Method" in table else named(table, hue=hue, names=names)
    look = looks(table, hue, names)
    if kind == "scatter" and any(look["dashes"].values()) and len(set(look["markers"].values())) < len(look["markers"]):
        # No dashes tell points apart.
        look["markers"] = dict(zip(look["markers"], itertools.cycle(style.MARKERS)))
    dashes = look.pop("dashes")
    draw, how = {
        "line": (sns.lineplot, {"errorbar": None, "estimator": None, "dashes": dashes, "markeredgewidth": 0}),
        "scatter": (sns.scatterplot, {"linewidth": 0, "s": 16}),
    }[kind]
    how |= look | ({} if markers else {"markers": False})
    grid = _grid(in_all(table, x), names, size, share, row=row, col=col)
    # For the legend, which of many numbers names a few.
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
    """Return the ends of 95 % intervals: given ones, or those of means with these standard errors."""
    if isinstance(error, tuple):
        return rows[error[0]], rows[error[1]]
    return rows[y] - style.NORMAL_95 * rows[error], rows[y] + style.NORMAL_95 * rows[error]


def dots(
    table, x: str, y: str, error: str | tuple[str, str] | None = None, *, col=None, solid="", names: Mapping = {},
    size: tuple[float, float] = (style.WIDTH, 0.25), **scales,
):  # fmt: skip
    """Return seaborn's grid of points: a row per value of `y`, in words, with one point a method below the other.

    Arguments as those of `lines`; `size` has the height of one row.
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
    """Return seaborn's grid of heat maps: a tile per value of `x` and `y`, with the words of the column `text`.

    Numbers grow to the right and upwards, words stand in their order from above. `how`: further arguments of seaborn's
    `heatmap`, such as `cmap`, `vmin`, `vmax`; other arguments as those of `lines`.
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
    """Yield the axes of each panel of a grid that has rows, and these rows."""
    for (row, column, _), rows in grid.facet_data():
        if len(rows):
            yield grid.facet_axis(row, column, modify_state=False), rows


def band(axes, low: float, high: float, across: bool = True) -> None:
    """Shade the range of values that are no evidence, such as those that a calibrated method gives."""
    (axes.axhspan if across else axes.axvspan)(low, high, color=style.BAND, linewidth=0, zorder=0)


def subplots(rows: int, columns: int, height: float, *, width: float = style.WIDTH, **keywords):
    """Return a figure of Matplotlib and the array (rows, columns) of its axes; sizes in inches."""
    import matplotlib.pyplot as plt

    return plt.subplots(rows, columns, figsize=(width, height), squeeze=False, **keywords)


def entry(**how):
    """Return an entry of a legend that belongs to no single curve."""
    from matplotlib.lines import Line2D

    return Line2D([], [], **{"color": style.GREY, **how})


def hollow(means: str):
    """Return the legend's entry that says what hollow markers mean."""
    return entry(marker="s", markerfacecolor="white", linestyle="", label=f"Hollow: {means}")


def finish(grid, answer: str, xlabel="", ylabel="", handles: Iterable = (), *, note="", below=True, **keywords):
    """Write a figure's answer above it, one label an axis, and one legend below all panels; returns the figure.

    Args:
        grid: of seaborn, or a figure of Matplotlib.
        answer: empty where it does not hold in the tables that are drawn.
        xlabel: words, or a name among the style's axes; ylabel likewise.
        handles: further entries of the legend, beside those of labelled curves.
        note: what is said below the label of the horizontal axis, such as what its symbols mean.
        below: whether there is a legend below.
        keywords: further arguments of Matplotlib's `legend`.
    """
    figure = getattr(grid, "figure", None) or grid
    # In lines of about one length.
    letters = int(figure.get_figwidth() / (9 / 72 * LETTER))
    even = len(answer) // -(-len(answer) // letters) + 6 if len(answer) > letters else letters
    figure.suptitle(textwrap.fill(answer, min(letters, even)), fontsize=9, weight="bold")
    figure.supylabel(style.AXES.get(ylabel, ylabel), fontsize=8)
    xlabel = "\n".join(filter(None, (style.AXES.get(xlabel, xlabel), note)))
    if below:
        _legend(figure, handles, xlabel, keywords)
    else:
        figure.supxlabel(xlabel, fontsize=8)
    return figure


def _legend(figure, handles, xlabel: str, keywords: Mapping) -> None:
    """Draw one legend, each label once, with as many columns as the figure is wide for."""
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
        # Matplotlib fills column by column, the first ones with one entry more where they do not come out even.
        widest = [max(map(_longest, part)) for part in np.array_split(np.array(labels, object), columns)]
        if sum(0.41 + 7 / 72 * LETTER * length for length in widest) <= figure.get_figwidth():
            break
        columns -= 1
    depth = max(label.count("\n") for label in labels) + 1
    height = (0.03 + 0.12 * depth) * -(-len(labels) // columns) + 0.13 * xlabel.count("\n")
    figure.set_figheight(figure.get_figheight() + height)
    # The axis' label is the legend's title: the layout would draw both in the same place.
    title = {"title": xlabel, "title_fontsize": 8} if xlabel else {}
    how = {"loc": "outside lower center", "ncols": columns, "columnspacing": 1.2, **title, **keywords}
    figure.legend(entries.values(), entries.keys(), **how).get_title().set_multialignment("center")


def _longest(label: str) -> int:
    return max(map(len, label.split("\n")))
