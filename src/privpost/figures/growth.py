"""How computing time grows with the size of a problem, from results/growth.csv."""

from __future__ import annotations

from privpost.figures import style

COLOURS = ("#0072B2", "#D55E00")
MARKERS = ("o", "s")


def draw(tables):
    """Return the figure: one panel per axis, CPU time of a call against size, with the fitted power of the size.

    Open markers are small sizes, left out of the fit. Measured: least of several runs, one thread.
    """
    import matplotlib.pyplot as plt
    import numpy as np

    table = tables["growth"]
    axes_names = list(dict.fromkeys(table.axis))
    columns = 3
    rows = -(-len(axes_names) // columns)
    figure, panels = plt.subplots(rows, columns, figsize=(style.TWO_COLUMNS, 2.1 * rows), squeeze=False)
    for panel, name in zip(panels.flat, axes_names, strict=False):
        part = table[table.axis == name]
        for (what, curve), colour, marker in zip(part.groupby("what", sort=False), COLOURS, MARKERS, strict=False):
            fitted = curve[curve.fitted]
            slope = float(curve.exponent.iloc[0])
            level = np.exp(np.mean(np.log(fitted.seconds) - slope * np.log(fitted["size"])))
            panel.plot(fitted["size"], level * fitted["size"] ** slope, color=colour)
            rest = curve[~curve.fitted]
            panel.plot(rest["size"], rest.seconds, marker, color=colour, markerfacecolor="white", linestyle="")
            words = what.split(",")[0] if part.what.nunique() == 1 else what.split(" ")[0]
            panel.plot(
                fitted["size"],
                fitted.seconds,
                marker,
                color=colour,
                linestyle="",
                label=f"{words}: ∝ size$^{{{slope:.2f}}}$",
            )
        panel.set(xscale="log", yscale="log", xlabel=name)
        # Room for the legend, and at least a decade, so that a flat curve looks flat.
        low, high = part.seconds.min(), part.seconds.max()
        panel.set_ylim(low / 2, max(high, 10 * low) * 6)
        panel.legend(loc="upper left", fontsize=6)
    for panel in panels.flat[len(axes_names) :]:
        panel.set_axis_off()
    for panel in panels[:, 0]:
        panel.set_ylabel("CPU time of a call  [s]")
    figure.suptitle("Measured on one machine, one thread: times differ elsewhere", fontsize=7)
    return figure
