"""The figure of the study."""

from privpost.drawing import facets, style
from privpost.drawing.figures import figure

# Series of points: column (divided by the claim), colour, marker, label.
KINDS = (
    ("exact", style.COLORS[0], "o", "Exact worst case"),
    ("lower_bound", style.COLORS[1], ">", "Lower bound from draws"),
)


@figure("tightness")
def tightness(audit):
    """Share of the claimed ε that each mechanism spends on its worst neighbours (ours).

    A point is the largest share over all audited settings of a method, and its line reaches down to the smallest share.
    Each ε is in the mechanism's own notion of privacy. No point may lie right of 1. Lower bounds depend on the number
    of draws, so a small one is no sign of an error. Bounds hold with the confidence in the table.
    """
    table = audit[audit.claimed_epsilon.gt(0) & (audit.exact.notna() | audit.lower_bound.notna())]
    methods = facets.ordered(table.method, "method")
    canvas, ((axes,),) = facets.subplots(1, 1, 0.7 + 0.17 * len(methods), width=4.6)
    axes.axvline(1.0, color=style.GREY, linewidth=0.8)
    axes.axvspan(1.0, 1.2, color="#B2182B", alpha=0.08, linewidth=0)
    largest = 0.0
    for (column, color, marker, label), shift in zip(KINDS, (-0.15, 0.15), strict=True):
        shares = (table[column] / table.claimed_epsilon).groupby(table.method).agg(["min", "max"]).dropna()
        at, largest = shares.index.map(methods.index) + shift, max(largest, shares["max"].max())
        axes.hlines(at, shares["min"], shares["max"], color=color, linewidth=0.8)
        axes.plot(shares["max"], at, marker, color=color, markersize=3, label=label)
    axes.set_yticks(range(len(methods)), [style.look(method).label for method in methods])
    axes.set(xlim=(0, 1.1), ylim=(len(methods) - 0.5, -0.5), xticks=[0, 0.25, 0.5, 0.75, 1])
    axes.grid(axis="y", visible=False)
    words = "No method is seen to exceed its claimed ε" if largest <= 1 + 1e-9 else ""
    ranges = facets.entry(color=style.COLORS[0], linewidth=0.8, label="Range over settings")
    note = "ε: each in its own privacy notion. Point: the largest"
    return facets.finish(canvas, words, "Share of the claimed ε", handles=[ranges], note=note)
