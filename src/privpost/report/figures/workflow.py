"""The graph of the rebuild: from raw data through cells, tables and figures to scorecard and report."""

from privpost.drawing import multiples, style
from privpost.report.figures.scorecard import TITLES

# Centre and width of each stage's boxes, in inches.
STAGES = {
    "datasets": (0.95, 1.75, "#f3ead3", "raw and prepared data"),
    "cells": (2.95, 1.7, "#dbe9f6", "cells (one job each)"),
    "tables": (4.3, 0.4, "#dcefe3", "tables"),
    "figures": (5.05, 0.4, "#efe0ee", "figures"),
    "end": (6.35, 0.9, "#e8e8e8", ""),
}
STEP = 0.27
BOX_HEIGHT = 0.19
BUS = 5.5
LAST_BUS = 5.7
CHARACTERS = 34


def draw(tables):
    """Return the figure: one row of boxes per study, with the number of jobs or files in each box.

    Lines lead from what is read to what is made of it; a study without a box for data reads none.
    """
    plan = tables["workflow"].fillna({"datasets": ""})
    height = STEP * (len(plan) + plan.paper.nunique() + 1.5)
    figure, ((axes,),) = multiples.grid(1, 1, height)
    axes.set(xlim=(0, style.TWO_COLUMNS), ylim=(height, 0))
    axes.axis("off")
    top = STEP
    for centre, _, _, label in STAGES.values():
        axes.text(centre, top - 0.1, label, ha="center", va="center", weight="bold", fontsize=6.5)
    levels = []
    for paper, rows in plan.groupby("paper", sort=False):
        top += STEP
        axes.text(0.06, top, TITLES.get(paper, paper), weight="bold", fontsize=6.5, va="center")
        for row in rows.itertuples():
            top += STEP
            _row(axes, row, top)
            levels.append(top)
    middle = (levels[0] + levels[-1]) / 2
    axes.plot([BUS, BUS], [min(levels), max(levels)], color="#777777", linewidth=0.7)
    names = ("scorecard", "numbers", "README, report")
    for place, text in zip((middle - 0.35, middle, middle + 0.35), names, strict=True):
        _box(axes, "end", place, text)
        _line(axes, LAST_BUS, STAGES["end"][0] - STAGES["end"][1] / 2, place)
    axes.plot([LAST_BUS, LAST_BUS], [middle - 0.35, middle + 0.35], color="#777777", linewidth=0.7)
    _line(axes, BUS, LAST_BUS, middle)
    return figure


def _row(axes, row, y):
    stages = [("cells", f"{row.study.split('/')[1]}: {row.cells}"), ("tables", str(row.tables))]
    if row.datasets:
        text = row.datasets.replace(" ", ", ")
        stages.insert(0, ("datasets", text if len(text) < CHARACTERS else f"{len(row.datasets.split())} data sets"))
    if row.figures:
        stages.append(("figures", str(row.figures)))
    for stage, text in stages:
        _box(axes, stage, y, text)
    edges = [(STAGES[stage][0] - STAGES[stage][1] / 2, STAGES[stage][0] + STAGES[stage][1] / 2) for stage, _ in stages]
    for (_, start), (end, _) in zip(edges, [*edges[1:], (BUS, BUS)], strict=True):
        _line(axes, start, end, y)


def _box(axes, stage, y, text):
    from matplotlib.patches import FancyBboxPatch

    centre, width, shade, _ = STAGES[stage]
    corner = (centre - width / 2, y - BOX_HEIGHT / 2)
    shape = "round,pad=0,rounding_size=0.04"
    box = FancyBboxPatch(corner, width, BOX_HEIGHT, boxstyle=shape, facecolor=shade, edgecolor="#888888", linewidth=0.6)
    axes.add_patch(box)
    axes.text(centre, y, text, ha="center", va="center", fontsize=6)


def _line(axes, start, end, y):
    axes.plot([start, end], [y, y], color="#777777", linewidth=0.7, solid_capstyle="butt")
