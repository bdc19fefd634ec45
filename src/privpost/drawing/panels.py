"""The grammar of panels: a table's columns become axes, rows and columns of panels, and lines.

No value is left out: values unknown to style and catalogue come after the known ones.
"""

import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from privpost.datasets import catalogue
from privpost.drawing import style

# Width of a letter as a share of the font's size, for breaking lines.
LETTER = 0.6


class Panels(NamedTuple):
    """A figure, its axes (rows, columns), and the value that each row and each column stands for."""

    figure: Any
    axes: Any
    rows: list
    columns: list

    def __iter__(self):
        """Yield the axes of each panel with the values of its row and its column."""
        return ((self.axes[i, j], r, c) for i, r in enumerate(self.rows) for j, c in enumerate(self.columns))


def ordered(values: Iterable, column="", names: Iterable = ()) -> list:
    """Return the different values, without missing ones, in the order of `names` or else of their kind.

    Methods have the style's order, data sets the catalogue's, numbers that of size; unknown values come last.
    """
    import pandas as pd

    present = [value for value in dict.fromkeys(values) if isinstance(value, tuple) or not pd.isna(value)]
    known = [name for name in names if name in present]
    if not known and column in ("method", "dataset"):
        known = list(style.LOOKS) if column == "method" else catalogue.names()
    if known:
        return sorted(present, key=lambda value: (known.index(value) if value in known else len(known), str(value)))
    return present if any(isinstance(value, str | tuple) for value in present) else sorted(present)


def named(column, value, names: Mapping = {}) -> str:
    """Return the words for a value of a column: those of `names`, a method's or data set's own, or `symbol = value`."""
    if isinstance(value, tuple):
        return ", ".join(filter(None, (named(key, part, names) for key, part in zip(column, value, strict=True))))
    if value in names:
        return names[value]
    if column == "method":
        return style.look(value).label
    if column == "dataset":
        return catalogue.title(value)
    if isinstance(value, str):
        return value.replace("_", " ")
    if value is None or np.isnan(value):
        return ""
    number = f"{int(value):,}" if float(value).is_integer() and abs(value) < 1e6 else style.power(value)
    # The column that a sweep adds for a setting which the table has too.
    column = column.removesuffix("_setting")
    return f"{style.SYMBOLS.get(column, column.replace('_', ' '))} = {number}".replace("-", "−")


def rows_of(table, column, value):
    """Return the rows with a value of a column (or of several), and the rows that lack it: they belong to all.

    None as a part of a value stands for rows that lack it.
    """
    for name, wanted in zip(column, value, strict=True) if isinstance(column, tuple) else [(column, value)]:
        if name is not None:
            table = table[table[name].isna() | (False if wanted is None else table[name] == wanted)]
    return table


def key(columns: Sequence[str], row) -> tuple:
    """Return the values of some columns of a row, None where one is missing."""
    return tuple(None if row[name] != row[name] else row[name] for name in columns)


def looks(table, lines: Sequence[str] = ("method",), special: Mapping = {}, names: Mapping = {}) -> dict[tuple, dict]:
    """Return the look of each line of a table by its values of the columns `lines`, in the order of the legend.

    The method gives colour and marker, other columns the line style; without a method numbers are shades and words
    colours. `special` replaces parts of the look of a line, by its key or by the value of its first column.
    """
    keys = list(dict.fromkeys(key(lines, row) for _, row in table[list(lines)].drop_duplicates().iterrows()))
    for place in reversed(range(len(lines))):
        order = ordered((entry[place] for entry in keys), lines[place], names)
        rank = {value: at for at, value in enumerate(order)}
        # Stable: the first column counts most. Missing values come first.
        keys = [entry for _, entry in sorted(enumerate(keys), key=lambda at: (rank.get(at[1][place], -1), at[0]))]
    firsts = ordered((k[0] for k in keys), lines[0], names)
    shade = shades(firsts) if firsts and not isinstance(firsts[0], str) else {}
    result = {}
    for first, *rest in keys:
        alike = [k[1:] for k in keys if k[0] == first]
        place = alike.index(tuple(rest))
        if lines[0] == "method":
            look = style.look(first).line() | ({"linestyle": style.LINES[place % 4]} if len(alike) > 1 else {})
            look |= {"markerfacecolor": "white"} if place // 4 % 2 else {}
        else:
            at = firsts.index(first) if first in firsts else len(firsts)
            look = {"color": shade.get(first) or style.COLORS[at % 6], "marker": style.MARKERS[at % 12]}
            look |= {"linestyle": style.LINES[place % 4]} | ({"markerfacecolor": "white"} if place // 4 % 2 else {})
        look["label"] = named(tuple(lines), (first, *rest), names)
        result[first, *rest] = look | special.get(first, {}) | special.get((first, *rest), {})
    return result


def panels(
    table, x: str, y: str, error: str | Callable | None = None, rows=None, columns=None, lines=("method",),
    *, look: Mapping = {}, names: Mapping = {}, size: tuple[float, float] = (style.WIDTH, 1.5), share=(True, "row"),
    bars: bool = False, solid: str = "", xlabel: str = "", ylabel: str = "", **scales,
) -> Panels:  # fmt: skip
    """Return a figure of a table: `y` on `x`, a panel per value of `rows` and `columns`, a line per value of `lines`.

    Args:
        table: its columns are named by the other arguments; `rows` and `columns` are a name, or a tuple of names whose
            combinations have panels.
        error: the column of standard errors, of which 95 % intervals are drawn, or a function of rows that returns the
            ends (low, high) of intervals.
        look: parts of the look of lines, as `special` of `looks`.
        names: words for values.
        size: width of the figure and height of one panel, in inches.
        bars: draw intervals as bars instead of bands.
        solid: a column of truth values; the markers of rows where it is false are hollow.
        scales: `xscale`, `yscale`, `xlim`, `ylim` and more, set on each panel.

    A row that lacks the value of a panel is drawn in all; one that lacks `x` is a horizontal line.
    """
    ylabel = ylabel or style.AXES.get(y, y.replace("_", " "))
    of_rows, of_columns = values_of(table, rows, names), values_of(table, columns, names)
    height = 0.75 + size[1] * len(of_rows)
    figure, axes = grid(len(of_rows), len(of_columns), height, width=size[0], sharex=share[0], sharey=share[1])
    drawn = Panels(figure, axes, of_rows, of_columns)
    line_looks = looks(table, lines, look, names)
    letters = int((size[0] - 0.5) / len(of_columns) / (8 / 72 * LETTER))
    for panel, row, column in drawn:
        here = rows_of(rows_of(table, rows, row), columns, column)
        curves(panel, here, x, y, error, lines, line_looks, bars, solid)
        panel.set(**{"xscale": "linear", **scales})
        if panel in axes[0] and columns is not None:
            panel.set_title(_title(columns, column, names, letters))
        if panel in axes[:, 0]:
            panel.set_ylabel(named(rows, row, names) if len(of_rows) > 1 else ylabel)
    if len(of_rows) > 1:
        figure.supylabel(ylabel, fontsize=8)
    label_x(drawn, xlabel or style.AXES.get(x, x.replace("_", " ")), letters)
    return drawn


def _title(columns, column, names: Mapping, letters: int) -> str:
    """Return the title of a column of panels, broken into lines."""
    title = named(columns, column, names)
    if len(title) > letters and isinstance(columns, tuple):
        title = "\n".join(named(name, part, names) for name, part in zip(columns, column, strict=True))
    return "\n".join(textwrap.fill(line, letters) for line in title.split("\n"))


def label_x(drawn: Panels, label: str, letters: int = 30) -> None:
    """Label the horizontal axis of the lowest panels, or of all together where they are narrower than the label."""
    if len(drawn.columns) > 1 and len(label) > letters + 2:
        drawn.figure.supxlabel(label, fontsize=8)
        return
    for axes in drawn.axes[-1]:
        axes.set_xlabel(label)


def excess(table, y: str, keys: Sequence[str], reference: str = "non_private"):
    """Return the rows of all methods but a reference, less the reference's `y` at the same keys.

    Raises ValueError where the reference has more than one row for some keys.
    """
    truth = table[table.method == reference]
    if truth.duplicated(list(keys)).any():
        raise ValueError(f"{reference} has several rows with equal {', '.join(keys)}")
    rest = table[table.method != reference].merge(truth[[*keys, y]], "left", list(keys), suffixes=("", "_reference"))
    return rest.assign(**{y: rest[y] - rest[f"{y}_reference"]})


def decades(axes, smallest: float, values, which: str = "y") -> None:
    """Scale an axis logarithmically from `smallest` on, in both directions, and linearly around 0, for some values."""
    values = np.asarray(values, float)
    values = values[np.isfinite(values)]

    def ticks(largest: float) -> list[float]:
        last = np.floor(np.log10(max(largest, smallest)) + 1e-9)
        return [10.0**exponent for exponent in range(round(np.log10(smallest)), int(last) + 1)]

    negative = ticks(-values.min()) if (values < -smallest / 2).any() else []
    places = [*(-tick for tick in reversed(negative)), 0.0, *ticks(values.max())]
    getattr(axes, f"set_{which}scale")("symlog", linthresh=smallest)
    getattr(axes, f"set_{which}ticks")(places, labels=[style.power(place) for place in places])
    if not negative:
        getattr(axes, f"set_{which}lim")(-smallest / 2)
    axes.minorticks_off()


def values_of(table, column, names: Iterable = ()) -> list:
    """Return the values of a column, or the combinations of several columns' values, in order; [column] for none.

    None stands for a missing part; such a combination is left out where its rows belong to complete ones.
    """
    if not column:
        return [column]
    if not isinstance(column, tuple):
        return ordered(table[column], column, names) or [None]
    combinations = [key(column, row) for _, row in table[list(column)].drop_duplicates().iterrows()]
    complete = [value for value in combinations if None not in value]
    combinations = complete + [
        value
        for value in combinations
        if None in value and not any(all(p in (None, q) for p, q in zip(value, c, strict=True)) for c in complete)
    ]
    orders = [[*ordered((v[i] for v in combinations), name, names), None] for i, name in enumerate(column)]
    return sorted(combinations, key=lambda value: [order.index(v) for order, v in zip(orders, value, strict=True)])


def curves(
    axes, table, x: str, y: str, error=None, lines=("method",), look: Mapping | None = None, bars=False, solid=""
) -> None:
    """Draw the lines of one panel, those without `x` as horizontal ones; arguments as those of `panels`."""
    for line, how in (looks(table, lines) if look is None else look).items():
        rows = line_of(table, lines, line)
        rows = rows[rows[y].notna()]
        if rows.empty:
            continue
        across = rows[x].isna()
        if across.any():
            ends = _ends(rows[across], y, error)
            ends = None if ends is None else [np.mean(end) for end in ends]
            horizontal(axes, rows[y][across].mean(), ends, bars, **how)
        if across.all():
            continue
        rows = rows[~across]
        ends = _ends(rows, y, error)
        order = np.argsort(rows[x].to_numpy(), kind="stable")
        at, middle = rows[x].to_numpy()[order], rows[y].to_numpy()[order]
        ends = None if ends is None else [np.asarray(end)[order] for end in ends]
        (draw_bars if bars else draw_band)(axes, at, middle, ends, **how)
        if solid and not (full := rows[solid].to_numpy(bool)[order]).all():
            ring = {"color": how["color"], "marker": how["marker"], "markerfacecolor": "white", "zorder": 4}
            axes.plot(at[~full], middle[~full], linestyle="", **ring)


def _ends(rows, y: str, error):
    if error is None:
        return None
    return error(rows) if callable(error) else interval(rows[y], rows[error])


def line_of(table, lines: Sequence[str], line: Sequence):
    """Return the rows of one line by its values of the columns `lines`, None for a missing value."""
    for name, value in zip(lines, line, strict=True):
        table = table[table[name].isna()] if value is None else table[table[name] == value]
    return table


def interval(mean, sem):
    """Return the ends of 95 % intervals of means with these standard errors."""
    return mean - style.NORMAL_95 * sem, mean + style.NORMAL_95 * sem


def draw_band(axes, x, middle, ends=None, **how) -> None:
    """Draw a curve with a band between two `ends`."""
    axes.plot(x, middle, **how)
    if ends is not None:
        axes.fill_between(x, *(np.asarray(end, float) for end in ends), color=how["color"], alpha=0.2, linewidth=0)


def draw_bars(axes, x, middle, ends=None, **how) -> None:
    """Draw a curve with bars between two `ends`."""
    sizes = None if ends is None else np.maximum(np.abs([middle - ends[0], ends[1] - middle]), 0)
    axes.errorbar(x, middle, sizes, elinewidth=0.8, ecolor=(how["color"], 0.55), **how)


def horizontal(axes, value: float, ends=None, bars: bool = False, **how) -> None:
    """Draw what does not depend on the horizontal axis, with the interval between two `ends`."""
    axes.axhline(value, **{name: part for name, part in how.items() if name in ("color", "linestyle", "label")})
    if ends is not None and np.isfinite(ends).all():
        if bars:
            axes.plot([1, 1], ends, color=(how["color"], 0.55), linewidth=0.8, transform=axes.get_yaxis_transform())
        else:
            axes.axhspan(*ends, color=how["color"], alpha=0.12, linewidth=0)


def grid(rows: int, columns: int, height: float, *, width: float = style.WIDTH, **keywords):
    """Return a figure with panels in rows and columns, and the array (rows, columns) of their axes; sizes in inches."""
    import matplotlib.pyplot as plt

    return plt.subplots(rows, columns, figsize=(width, height), squeeze=False, **keywords)


def shades(values, first: float = 0.0, last: float = 0.72) -> dict:
    """Return a colour for each of some ordered values, from the part of the map viridis that is dark enough."""
    import matplotlib as mpl

    colors = mpl.colormaps["viridis"](np.linspace(first, last, len(values)))
    return dict(zip(values, map(mpl.colors.to_hex, colors), strict=True))


def entry(**how):
    """Return an entry of a legend that belongs to no single curve."""
    from matplotlib.lines import Line2D

    return Line2D([], [], **{"color": style.GREY, **how})


def legend(figure, handles=(), *, axes: Iterable | None = None, **keywords) -> None:
    """Draw one legend below all panels: of their labelled curves, each label once, and of further `handles`.

    It has as many columns as the figure is wide for.
    """
    entries: dict[str, Any] = {}
    for panel in figure.axes if axes is None else axes:
        for handle, label in zip(*panel.get_legend_handles_labels(), strict=True):
            entries.setdefault(label, handle)
    entries |= {handle.get_label(): handle for handle in handles}
    if not entries:
        return
    labels, columns = list(entries), len(entries)
    while columns > 1:
        # Matplotlib fills column by column, the first ones with one entry more where they do not come out even.
        widest = [max(map(len, part)) for part in np.array_split(np.array(labels, object), columns)]
        if sum(0.41 + 7 / 72 * LETTER * length for length in widest) <= figure.get_figwidth():
            break
        columns -= 1
    figure.set_figheight(figure.get_figheight() + 0.15 * -(-len(labels) // columns))
    keywords = {"loc": "outside lower center", "ncols": columns, "columnspacing": 1.2, **keywords}
    if label := figure.get_supxlabel():
        # As the legend's title: the layout would draw both in the same place.
        figure.supxlabel("")
        keywords |= {"title": label, "title_fontsize": 8}
    figure.legend(entries.values(), entries.keys(), **keywords)


def message(figure, text: str, holds: bool = True) -> None:
    """Print a figure's answer above it, if it holds in the tables that are drawn."""
    if holds:
        figure.suptitle(text, fontsize=9, weight="bold")
