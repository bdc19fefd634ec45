"""How computing time grows with the size of a problem, from results/growth.csv."""

from __future__ import annotations

import textwrap

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
    names = list(dict.fromkeys(table.axis))
    columns = 4
    rows = -(-len(names) // columns)
    figure, panels = plt.subplots(rows, columns, figsize=(style.TWO_COLUMNS, 2.0 * rows), squeeze=False)
    for panel, name in zip(panels.flat, names, strict=False):
        part = table[table.axis == name]
        words = []
        for (what, curve), colour, marker in zip(part.groupby("what", sort=False), COLOURS, MARKERS, strict=False):
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
        low, high = part.seconds.min(), part.seconds.max()
        panel.set_ylim(low / 3, max(high, 10 * low) * 3)
        whats = part.what.unique()
        title = whats[0].split(", chain")[0] if len(whats) == 1 else "release and posterior draw"
        panel.set_title("\n".join([*textwrap.wrap(title, 30), f"exponent {' and '.join(words)}"]), fontsize=6)
    for panel in panels.flat[len(names) :]:
        panel.set_axis_off()
    for panel in panels[:, 0]:
        panel.set_ylabel("CPU time of a call  [s]")
    figure.suptitle("Measured on one machine, one thread: times differ elsewhere", fontsize=7)
    return figure
