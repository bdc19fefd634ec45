"""The figure of the study."""

import re

import numpy as np

from privpost.drawing import panels, style
from privpost.drawing.figures import figure

# What is shown: the column over the claim, colour, marker, label.
KINDS = (
    ("exact", "#0072B2", "o", "Exact worst case"),
    ("lower_bound", "#D55E00", "<", "Lower bound from draws"),
)
BROKEN = "#B2182B"


@figure("tightness")
def tightness(audit):
    """How much of the claimed ε each mechanism spends on the neighbours that are worst for it (ours).

    One row per model and method. A point is the largest share of the claimed ε, each in its own notion, that some
    audited setting spends, of the package's examples and of what the studies ran; its line reaches down to the
    smallest. Nothing may lie right of 1. How near the bound from draws comes depends on their number: a small one shows
    nothing wrong. The claims and what was found are in the table. Bounds hold with the confidence in the table.
    """
    table = audit[audit.claimed_epsilon.gt(0) & (audit.exact.notna() | audit.lower_bound.notna())]
    share = table[["exact", "lower_bound"]].max(axis=1) / table.claimed_epsilon
    table = table.assign(share=share)
    places, headings, y = {}, [], 0.0
    for model in panels.ordered(table.model):
        headings.append((y, re.sub(r"(?<=[a-z])(?=[A-Z])", " ", model)))
        for method in panels.ordered(table.method[table.model == model], "method"):
            y += 1
            places[model, method] = y
        y += 1.1
    canvas, ((axes,),) = panels.grid(1, 1, 0.7 + 0.135 * y, width=4.6)
    axes.axvline(1.0, color=style.GREY, linewidth=0.8)
    axes.axvspan(1.0, 1.2, color=BROKEN, alpha=0.08, linewidth=0)
    for (column, color, marker, label), shift in zip(KINDS, (-0.18, 0.18), strict=True):
        shares = (
            (table[column] / table.claimed_epsilon).groupby([table.model, table.method]).agg(["min", "max"]).dropna()
        )
        at = np.array([places[key] for key in shares.index]) + shift
        axes.hlines(at, shares["min"], shares["max"], color=color, linewidth=0.8)
        axes.plot(shares["max"], at, marker, color=color, markersize=3, label=label)
    ticks = [*((place, heading, True) for place, heading in headings),
             *((place, style.look(method).label, False) for (_, method), place in places.items())]  # fmt: skip
    axes.set_yticks([place for place, *_ in ticks], [words for _, words, _ in ticks], fontsize=6.5)
    for tick, (*_, heading) in zip(axes.get_yticklabels(), ticks, strict=True):
        tick.set_weight("bold" if heading else "normal")
    axes.tick_params(axis="y", length=0)
    axes.set(xlim=(0, 1.1), ylim=(y, -0.7), xlabel="Share of the claimed ε", xticks=[0, 0.25, 0.5, 0.75, 1])
    axes.grid(axis="y", visible=False)
    panels.message(canvas, "Nothing exceeds its claim", bool((table.share <= 1 + 1e-9).all()))
    panels.legend(canvas)
    return canvas
