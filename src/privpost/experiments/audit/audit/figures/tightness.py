"""How much of the claimed ε each mechanism really spends on the neighbours that are worst for it."""

import re

from privpost.drawing import multiples

NOTIONS = {"pure": "pure ε-DP", "rdp": "Rényi DP", "zcdp": "zCDP", "approximate": "(ε, δ)-DP"}
# Words that keep their capital.
NAMES = ("Gibbs", "Laplace", "Markov", "Langevin", "Fourier")
# What is shown: the column over the claim, colour, marker, label.
KINDS = (
    ("exact", "#0072B2", "o", "exact worst case"),
    ("lower_bound", "#D55E00", "<", "lower bound from draws"),
)


def _name(mechanism: str) -> str:
    """Return the name of a class as words: `NetworkLaplace` is network Laplace."""
    first, *words = re.findall(r"[A-Z][a-z]*", mechanism.removesuffix("Mechanism"))
    words = [first, *(word if word in NAMES else word.lower() for word in words)]
    name = re.sub(r"\b(map|ops)\b", lambda word: word[0].upper(), " ".join(words), flags=re.IGNORECASE)
    return name.replace("renyi", "(Rényi)")


def _span(values) -> str:
    """Return a range of numbers in a few letters."""
    low, high = (f"{float(f'{value:.2g}'):g}" for value in (values.min(), values.max()))
    return low if low == high else f"{low}–{high}"


def draw(tables):
    """Return the figure: one row per mechanism, what it claims and what of it the audit found spent, over all settings.

    A point is the largest share of the claimed ε that some audited setting spends, of the package's examples and of
    what the studies ran; its line reaches down to the smallest. The columns on the right name the range of claims and,
    of the setting with the largest share, the ε that was found of the one claimed, and that share. Nothing may lie
    right of 1. How near the bound from draws comes depends on their number: a small one shows nothing wrong.
    """
    table = tables["audit"]
    table = table[table.claimed_epsilon.gt(0) & (table.exact.notna() | table.lower_bound.notna())]
    found = table[["exact", "lower_bound"]].max(axis=1)
    table = table.assign(found=found, share=found / table.claimed_epsilon)
    # Grouped by notion, the tightest on top.
    order = table.groupby(["notion", "mechanism"]).share.max().reset_index()
    order = order.sort_values(["notion", "share", "mechanism"], ascending=[False, True, False])
    places = {mechanism: place for place, mechanism in enumerate(order.mechanism)}
    figure, ((axes,),) = multiples.grid(1, 1, 0.19 * len(places) + 1.3)
    axes.axvline(1.0, color="#555555", linewidth=0.8)
    for (column, color, marker, label), shift in zip(KINDS, (0.14, -0.14), strict=True):
        shares = (table[column] / table.claimed_epsilon).groupby(table.mechanism).agg(["min", "max"]).dropna()
        y = [places[mechanism] + shift for mechanism in shares.index]
        axes.hlines(y, shares["min"], shares["max"], color=color, linewidth=1)
        words = f"{label}, largest share (line: down to the smallest)"
        axes.plot(shares["max"], y, marker, color=color, markersize=3.5, label=words)
    heads = (1.16, "claimed ε"), (1.37, "most audited"), (1.56, "share")
    for x, head in heads:
        axes.text(x, len(places) - 0.2, head, fontsize=6.5, ha="center", va="bottom")
    for mechanism, rows in table.groupby("mechanism"):
        worst = rows.loc[rows.share.idxmax()]
        values = _span(rows.claimed_epsilon), f"{worst.found:.3g} of {worst.claimed_epsilon:.3g}", f"{worst.share:.2f}"
        for (x, _), text in zip(heads, values, strict=True):
            axes.text(x, places[mechanism], text, fontsize=6.5, ha="center", va="center")
    for notion, rows in order.groupby("notion", sort=False):
        edge = places[rows.mechanism.iloc[-1]] + 0.5
        axes.annotate(NOTIONS.get(notion, notion), (0.01, edge - 0.12), fontsize=6.5, va="top", style="italic")
        axes.axhline(edge, color="#bbbbbb", linewidth=0.6)
    axes.set(xlim=(0, 1.62), ylim=(-0.7, len(places) - 0.3), xlabel="Share of the claimed ε, each in its own notion")
    axes.xaxis.set_label_coords(0.31, -0.06)
    axes.set_xticks([0, 0.25, 0.5, 0.75, 1])
    axes.set_yticks(range(len(places)), [_name(mechanism) for mechanism in places], fontsize=6.5)
    multiples.legend(figure, axes=axes, ncols=2)
    return figure
