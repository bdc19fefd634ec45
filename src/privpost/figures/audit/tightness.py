"""How much of the claimed ε each mechanism really spends on the neighbours that are worst for it."""

from __future__ import annotations

import re

from privpost.figures import multiples

NOTIONS = {"pure": "pure ε-DP", "rdp": "Rényi DP at its order", "zcdp": "zCDP", "approximate": "(ε, δ)-DP"}
# Words that keep their capital.
NAMES = ("Gibbs", "Laplace", "Markov")
MARKERS = ("o", "s", "^", "D", "v")
COLORS = ("#0072B2", "#D55E00", "#117733", "#AA4499", "#E69F00")


def _name(mechanism: str) -> str:
    """Return the name of a class as words: `NetworkLaplace` is network Laplace."""
    first, *words = re.findall(r"[A-Z][a-z]*", mechanism.removesuffix("Mechanism"))
    words = [first, *(word if word in NAMES else word.lower() for word in words)]
    return re.sub(r"\b(map|ops)\b", lambda word: word[0].upper(), " ".join(words), flags=re.IGNORECASE)


def draw(tables):
    """Return the figure: one row per mechanism, the share of the claimed ε that its audited instances spend.

    Left: the exact worst-case divergence over all neighbours, where the law of the release is known; a bar from the
    smallest to the largest of a mechanism's instances. Right: the statistical lower bounds from draws; they all hold
    together with 95 % confidence. Nothing may lie right of 1; a bound below 0.5 says little. One marker per ε that the
    instances were calibrated to, each in the notion of its mechanism.
    """
    table = tables["audit"]
    table = table[table.source == "examples"]
    shares = {"exact": table.exact / table.claimed_epsilon, "lower_bound": table.lower_bound / table.claimed_epsilon}
    table = table.assign(**{f"{name}_share": share for name, share in shares.items()})
    # Grouped by notion, the tightest on top.
    order = table.groupby(["notion", "mechanism"]).exact_share.max().reset_index()
    order = order.sort_values(["notion", "exact_share"], ascending=[False, True])
    places = {mechanism: place for place, mechanism in enumerate(order.mechanism)}
    figure, (panels,) = multiples.grid(1, 2, 0.19 * len(places) + 1.1, sharey=True, sharex=True)
    targets = sorted(table.target_epsilon.unique())
    titles = {"exact": "Exact worst case", "lower_bound": "Lower bound from draws"}
    for axes, (column, title) in zip(panels, titles.items(), strict=True):
        axes.axvline(1.0, color="#555555", linewidth=0.8)
        for k, target in enumerate(targets):
            rows = table[table.target_epsilon == target].groupby("mechanism")[f"{column}_share"].agg(["min", "max"])
            rows = rows.dropna()
            y = [places[mechanism] + 0.25 * (1 - k) for mechanism in rows.index]
            look = COLORS[k % len(COLORS)]
            axes.hlines(y, rows["min"], rows["max"], color=look, linewidth=1)
            label = f"calibrated to ε = {target:g}"
            axes.plot(rows["max"], y, MARKERS[k % len(MARKERS)], color=look, markersize=3, label=label)
        axes.set(xlim=(-0.03, 1.08), ylim=(-0.7, len(places) - 0.3), xlabel="Share of the claimed ε", title=title)
    for notion, rows in order.groupby("notion", sort=False):
        edge = places[rows.mechanism.iloc[-1]] + 0.5
        panels[0].annotate(NOTIONS.get(notion, notion), (0, edge - 0.15), fontsize=6.5, va="top")
        for axes in panels:
            axes.axhline(edge, color="#bbbbbb", linewidth=0.6)
    panels[0].set_yticks(range(len(places)), [_name(mechanism) for mechanism in places], fontsize=6.5)
    multiples.legend(figure, axes=panels[0], ncols=3)
    return figure
