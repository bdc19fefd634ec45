"""How computing time grows with the size of a problem, from results/growth.csv."""

import textwrap

import numpy as np

from privpost.drawing import style

COLOURS = ("#0072B2", "#D55E00")
MARKERS = ("o", "s")


def draw(tables):
    """Return the figure: one panel per axis, CPU time of a call against size, with the fitted power of the size.

    Open markers are small sizes, left out of the fit. Measured: least of several runs, one thread.
    """
    import matplotlib.pyplot as plt
    import seaborn

    table = tables["growth"]
    # seaborn calls `tight_layout`, which is at odds with the constrained layout: that one comes after it.
    with plt.rc_context({"figure.constrained_layout.use": False}):
        grid = seaborn.FacetGrid(
            table, col="axis", col_wrap=4, sharex=False, sharey=False, height=2, aspect=style.TWO_COLUMNS / 8
        )
    for name, panel in grid.axes_dict.items():
        _draw_panel(panel, name, table[table.axis == name])
    grid.set_ylabels("CPU time of a call  [s]")
    grid.figure.set_layout_engine("constrained")
    grid.figure.suptitle("Measured on one machine, one thread: times differ elsewhere", fontsize=7)
    return grid.figure


def _draw_panel(panel, name: str, rows) -> None:
    words = []
    for (what, curve), colour, marker in zip(rows.groupby("what", sort=False), COLOURS, MARKERS, strict=False):
        fitted, rest = curve[curve.fitted], curve[~curve.fitted]
        slope = float(curve.exponent.iloc[0])
        level = np.exp(np.mean(np.log(fitted.seconds) - slope * np.log(fitted["size"])))
        panel.plot(fitted["size"], level * fitted["size"] ** slope, color=colour)
        panel.plot(fitted["size"], fitted.seconds, marker, color=colour, linestyle="", label=what.split()[0])
        panel.plot(rest["size"], rest.seconds, marker, color=colour, markerfacecolor="white", linestyle="")
        words.append(f"{slope:.2f}")
    if len(words) > 1:
        panel.legend(loc="upper left", fontsize=6)
    panel.set(xscale="log", yscale="log", xlabel=name)
    # At least a decade, so that a flat curve looks flat.
    low, high = rows.seconds.min(), rows.seconds.max()
    panel.set_ylim(low / 3, max(high, 10 * low) * 3)
    whats = rows.what.unique()
    title = whats[0].split(", chain")[0] if len(whats) == 1 else "release and posterior draw"
    panel.set_title("\n".join([*textwrap.wrap(title, 30), f"exponent {' and '.join(words)}"]), fontsize=6)
