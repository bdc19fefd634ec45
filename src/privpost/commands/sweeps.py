"""What an ad hoc sweep ends with: the study's table over the sweep's cells, and a figure of it, under build/sweeps."""

from __future__ import annotations

import hashlib
import importlib
import os
import re
from pathlib import Path

from privpost.figures import style
from privpost.pipeline import store, tables
from privpost.pipeline.study import Cell, Study, figure_module

FOLDER = Path("build/sweeps")
NAME_LENGTH = 80
ROWS = 6
COLUMNS = 6
LINES = ("-", ":", "--", "-.")
# Curves of fewer points show them; a legend of more entries is left out.
MARKED = 30
# From this ratio of its ends on the horizontal axis is logarithmic.
DECADES = 50
# Columns that describe the spread of another one, or count; they are not drawn.
_NOT_DRAWN = re.compile(r"(.*_)?(sem|sd|n_repeats|error|low|high)")


def name_of(study: Study, settings: list[str]) -> str:
    """Return a sweep's name: the study and the overrides, in characters that every file system takes."""
    words = [word.lstrip("+") for word in settings]
    words += [f"scale={study.config['scale']}"] * (study.config["scale"] != "paper")
    text = re.sub(r"[^A-Za-z0-9.,=_-]+", "", "+".join([study.identifier, *words]).replace("+", "__"))
    if len(text) > NAME_LENGTH:
        text = f"{text[: NAME_LENGTH - 9]}-{hashlib.sha256(text.encode()).hexdigest()[:8]}"
    return text


def write(study: Study, cells: list[Cell], results: list[store.Result], settings: list[str], whole: bool) -> list[Path]:
    """Write the sweep's tables and figures; returns their paths.

    The tables are the study's own. A sweep over the study's whole grid is drawn by the study's own figures, any
    other by small multiples of the first table.
    """
    folder = FOLDER / name_of(study, settings)
    # A table that compares cells may have nothing to say of a part of the grid.
    frames = {name: frame for name, frame in tables.tables_of(study, results).items() if not frame.empty}
    if not frames:
        raise ValueError(f"{study.name}: these cells give empty tables only")
    paths = []
    for name, frame in frames.items():
        paths.append(folder / f"{name}.csv")
        store.write_text(paths[-1], frame.to_csv(index=False, lineterminator="\n"))
    frames = {name: tables.read_table(path) for name, path in zip(frames, paths, strict=True)}
    os.environ["SOURCE_DATE_EPOCH"] = "0"
    with style.context():
        if whole and study.figures:
            modules = {stem: importlib.import_module(figure_module(study.paper, stem)) for stem in study.figures}
            figures = {stem: module.draw(frames) for stem, module in modules.items()}
        else:
            first = next(name for name in study.tables if name in frames)
            figures = {"sweep": small_multiples(study, cells, frames[first])}
        for stem, figure in figures.items():
            for ending in ("pdf", "png"):
                paths.append(folder / f"{stem}.{ending}")
                with store.replacing(paths[-1]) as temporary:
                    style.save(figure, temporary)
            style.close(figure)
    return paths


def small_multiples(study: Study, cells: list[Cell], table):
    """Return a figure of a sweep's table: a row per measured column (and metric), a column per method.

    The horizontal axis is the numeric key with the most values, colours are the swept values, line styles what else
    tells curves apart. A key is a column that the study's schema knows, or one that holds words.
    """
    import matplotlib.pyplot as plt
    from pandas.api.types import is_numeric_dtype

    numeric = [column for column in table if is_numeric_dtype(table[column])]
    keys = [column for column in table if column in study.schema or column not in numeric]
    varying = [column for column in keys if table[column].nunique(dropna=False) > 1]
    x = max((key for key in varying if key in numeric), key=lambda key: table[key].nunique(), default=None)
    if x is None:
        # No axis to draw against: the rows in their order, so that a sweep over words shows its numbers too.
        x, table = "row", table.assign(row=range(len(table)))
    metrics = [key for key in ("metric", "statistic", "quantity") if key in varying]
    swept = [key for key in varying if key in cells[0].settings and key not in (x, "method")]
    others = [key for key in varying if key not in (x, "method", *metrics, *swept)]

    methods = list(table.dropna(subset=[x])["method"].unique()) if "method" in varying else [None]
    panels = _panels(table, metrics, [column for column in numeric if column not in keys])[:ROWS]
    methods = methods[:COLUMNS]
    hues = _labels(table, swept)
    styles = _labels(table, others)
    shades = plt.get_cmap("viridis")([place / max(1, len(hues) - 1) * 0.85 for place in range(len(hues))])
    figure, grid = plt.subplots(
        len(panels),
        len(methods),
        figsize=(max(style.ONE_COLUMN, min(style.TWO_COLUMNS, 2.2 * len(methods))), 1.9 * len(panels) + 0.8),
        squeeze=False,
        sharex=True,
        sharey="row",
    )
    for row, (metric, column) in zip(grid, panels, strict=True):
        for axes, method in zip(row, methods, strict=True):
            chosen = dict(zip(metrics, metric, strict=True)) | ({} if method is None else {"method": method})
            rows = _where(table, chosen).dropna(subset=[x, column])
            for _, curve in rows.groupby([*swept, *others], dropna=False) if swept or others else [((), rows)]:
                if curve.empty:
                    continue
                line = curve.sort_values(x)
                look = {
                    "color": shades[hues.index(_label(line.iloc[0], swept))],
                    "linestyle": LINES[styles.index(_label(line.iloc[0], others)) % len(LINES)],
                    "marker": "." if len(line) < MARKED else "",
                }
                axes.plot(line[x], line[column], **look)
            if axes in grid[0]:
                axes.set_title(style.look(method).label if method else study.name)
        row[0].set_ylabel(" ".join([column, *map(str, metric)]))
    for axes in grid[-1]:
        axes.set_xlabel(x)
    if table[x].min() > 0 and table[x].max() > DECADES * table[x].min():
        grid[0, 0].set_xscale("log")
    _legend(figure, dict(zip(hues, shades, strict=True)), styles)
    return figure


def _panels(table, metrics: list[str], columns: list[str]) -> list[tuple]:
    """Return the rows of panels: each metric, as values of its keys, with each measured column that varies in it."""
    return [
        (metric, column)
        for metric in (table[metrics].drop_duplicates().itertuples(index=False) if metrics else [()])
        for column in columns
        if not _NOT_DRAWN.fullmatch(column) and table[column].nunique() > 1
        if _where(table, dict(zip(metrics, metric, strict=True)))[column].nunique() > 1
    ]


def _legend(figure, shades: dict, styles: list[str]) -> None:
    from matplotlib.lines import Line2D

    handles = [Line2D([], [], color=shade, label=hue) for hue, shade in shades.items() if hue]
    handles += [
        Line2D([], [], color="#444444", linestyle=LINES[place % len(LINES)], label=label)
        for place, label in enumerate(styles)
        if label
    ]
    if 0 < len(handles) <= MARKED:
        figure.legend(handles=handles, loc="outside lower center", ncols=min(3, len(handles)))


def _where(table, values: dict):
    import pandas as pd

    for key, value in values.items():
        # Missing values are equal to each other here.
        table = table[(table[key] == value) | (table[key].isna() & pd.isna(value))]
    return table


def _labels(table, keys: list[str]) -> list[str]:
    return list(dict.fromkeys(_label(row, keys) for _, row in table[keys].drop_duplicates().iterrows())) or [""]


def _label(row, keys: list[str]) -> str:
    return ", ".join(
        f"{key} {row[key]:g}" if isinstance(row[key], float) else f"{key} {row[key]}"
        for key in keys
        if row[key] == row[key]
    )
