"""How much of the claimed ε each mechanism really spends on the neighbours that are worst for it."""

from __future__ import annotations

import re

from privpost.figures import multiples, style

BITS = re.compile(r"BetaBernoulli\(alpha=([\d.]+), beta=([\d.]+)\)")


def _label(row) -> str:
    number = int(row.instance.split(",")[0].split()[-1])
    variant = f", {row.variant}" if isinstance(row.variant, str) and row.variant else ""
    prior = BITS.search(row.settings)
    model = f"bits, Beta({prior[1]}, {prior[2]})" if prior else row.model
    return f"{row.mechanism} {number + 1}: {model}, n = {row.n}{variant}"


def draw(tables):
    """Return the figure: one row per audited instance, one panel per ε that it was calibrated to, in its own notion.

    Filled: the exact worst-case divergence over all neighbours divided by the claim, where the law of the release is
    known. Open: the statistical lower bound divided by the claim; all bounds hold together with 95 % confidence.
    Nothing may lie right of 1.
    """
    table = tables["audit"]
    table = table[table.source == "examples"]
    table = table.assign(label=[_label(row) for row in table.itertuples()])
    table = table.sort_values(["notion", "method", "label"])
    labels = list(dict.fromkeys(table.label))[::-1]
    targets = sorted(table.target_epsilon.unique())
    figure, panels = multiples.grid(1, len(targets), 0.125 * len(labels) + 0.9, sharey=True, sharex=True)
    for axes, target in zip(panels[0], targets, strict=True):
        axes.axvline(1.0, color="#555555", linewidth=0.8)
        for row in table[table.target_epsilon == target].itertuples():
            look, place = style.look(row.method), labels.index(row.label)
            axes.plot(
                row.lower_bound / row.claimed_epsilon, place, look.marker, color=look.color, markerfacecolor="white"
            )
            if row.exact == row.exact:
                axes.plot(row.exact / row.claimed_epsilon, place, look.marker, color=look.color)
        axes.set(xlim=(-0.03, 1.1), ylim=(-0.8, len(labels) - 0.2), title=f"calibrated to ε = {target:g}")
        axes.set_xlabel("share of the claimed ε")
        axes.set_yticks(range(len(labels)), labels, fontsize=5)
    handles = [
        multiples.entry(color="#333333", marker="o", linestyle="", label="exact worst case"),
        multiples.entry(
            color="#333333", marker="o", markerfacecolor="white", linestyle="", label="lower bound (95 % joint)"
        ),
        multiples.entry(color="#555555", linewidth=0.8, label="claim (pure ε, or Rényi ε at the mechanism's order)"),
    ]
    multiples.legend(figure, handles, ncols=3)
    return figure
