"""Faults of a figure that a reader would see, detected from its artists."""

from __future__ import annotations

import itertools
import types

import pytest
from matplotlib.text import Text

from privpost.drawing import facets, figures, style


def texts(figure) -> list[Text]:
    """Return the texts that are drawn: ticks outside an axis are not."""
    found = [text for text in figure.findobj(Text) if text.get_visible() and text.get_text().strip()]
    hidden = set()
    for axes in figure.axes:
        if not axes.get_visible() or not axes.axison:
            hidden |= {*axes.get_xticklabels(which="both"), *axes.get_yticklabels(which="both")}
        for axis in (axes.xaxis, axes.yaxis):
            drawn = {tick.label1 for tick in axis._update_ticks()}
            hidden |= {tick.label1 for tick in (*axis.majorTicks, *axis.minorTicks)} - drawn
            hidden |= {tick.label2 for tick in (*axis.majorTicks, *axis.minorTicks)}
    return [text for text in found if text not in hidden]


def faults(figure, dpi: int = 150) -> list[str]:
    """Return what is cut off, or printed over each other, at a resolution."""
    style.lay_out(figure)
    figure.dpi = dpi
    figure.draw_without_rendering()
    renderer, page = figure.canvas.get_renderer(), figure.bbox
    boxes = {text: text.get_window_extent(renderer) for text in texts(figure)}
    found = [
        f"cut off: {text.get_text()!r}"
        for text, box in boxes.items()
        if box.x0 < page.x0 - 1 or box.y0 < page.y0 - 1 or box.x1 > page.x1 + 1 or box.y1 > page.y1 + 1
    ]
    # A slanting text's box says nothing of its neighbours.
    upright = [(text, box) for text, box in boxes.items() if text.get_rotation() % 90 == 0]
    for (one, a), (other, b) in itertools.combinations(upright, 2):
        # Half a letter may touch: boxes are wider than what is inside them.
        across = min(a.x1, b.x1) - max(a.x0, b.x0), min(a.y1, b.y1) - max(a.y0, b.y0)
        if min(across) > 0.02 * dpi:
            found.append(f"over each other: {one.get_text()!r} and {other.get_text()!r}")
    return found


def one_panel(table, *_, row=None, col=None, **__):
    """Stand in for a grid of `facets`: all panels have the same empty axes."""
    columns = [column for column in (row, col) if column]
    parts = [rows for _, rows in table.groupby(columns)] if columns else [table]
    axes = facets.subplots(1, 1, 1)[1][0, 0]
    panels = [((0, 0, 0), rows) for rows in parts]
    return types.SimpleNamespace(
        figure=axes.figure, ax=axes, facet_data=lambda: panels, facet_axis=lambda *_, **__: axes
    )


def title(figure_of, given) -> str:
    """The title of a figure without its panels, curves and points: it is a matter of the tables."""
    with style.context(), pytest.MonkeyPatch.context() as patch:
        for name in ("lines", "dots", "tiles"):
            patch.setattr(facets, name, one_panel)
        figure = figures.draw(figure_of, given)
        text = figure.get_suptitle().replace("\n", " ")
        style.close(figure)
    return text
