"""Small multiples: a grid of panels, curves with error bars, and one legend for all of them."""

from privpost.drawing import style


def grid(rows: int, columns: int, height: float, *, width: float = style.TWO_COLUMNS, **keywords):
    """Return a figure with panels in rows and columns, and the array (rows, columns) of their axes; sizes in inches."""
    import matplotlib.pyplot as plt

    return plt.subplots(rows, columns, figsize=(width, height), squeeze=False, **keywords)


def shades(values, first: float = 0.0, last: float = 0.85) -> dict:
    """Return a colour for each of some ordered values, from a part of the map viridis."""
    import matplotlib as mpl
    import numpy as np

    return dict(zip(values, mpl.colormaps["viridis"](np.linspace(first, last, len(values))), strict=True))


def entry(**look):
    """Return an entry of a legend for what no single curve stands for."""
    from matplotlib.lines import Line2D

    return Line2D([], [], **look)


def legend(figure, handles=(), *, axes=None, ncols: int | None = None, **keywords) -> None:
    """Draw one legend below all panels: of the curves of one panel, `axes`, and of further `handles`; in one line."""
    shown = (*(axes.get_legend_handles_labels()[0] if axes is not None else ()), *handles)
    keywords = {"loc": "outside lower center", "ncols": len(shown) if ncols is None else ncols, **keywords}
    figure.legend(shown, [handle.get_label() for handle in shown], **keywords)


def bars(axes, x, mean, error, *, filled: bool = True, **look) -> None:
    """Draw a curve with error bars, its markers hollow unless `filled`."""
    axes.errorbar(x, mean, yerr=error, markerfacecolor=look["color"] if filled else "white", **look)


def horizontal(axes, value: float, method: str = "non_private", **keywords) -> None:
    """Draw a method that does not depend on the horizontal axis."""
    look = style.look(method)
    axes.axhline(value, **{"color": look.color, "linestyle": look.linestyle, "label": look.label, **keywords})


def cells(panels, rows, columns):
    """Yield the axes of each panel with the value that its row and the value that its column stands for."""
    for line, row in zip(panels, rows, strict=True):
        for axes, column in zip(line, columns, strict=True):
            yield axes, row, column


def label_outer(panels, x: str = "", y="", titles=()) -> None:
    """Label the lowest panels' horizontal axis, the vertical one of those on the left, and the topmost ones by a title.

    `y` is one label or one per row, `titles` one per column.
    """
    for axes in panels[-1] if x else ():
        axes.set_xlabel(x)
    if y:
        for axes, label in zip(panels[:, 0], [y] * len(panels) if isinstance(y, str) else y, strict=True):
            axes.set_ylabel(label)
    if titles:
        for axes, title in zip(panels[0], titles, strict=True):
            axes.set_title(title)
