"""Panels that the figures of the fair axis share."""

from __future__ import annotations

from privpost.figures import multiples, style

# Divergences up to here are 0 but for rounding.
NOTHING = 1e-12
LINES = {"exact": "-", "converted": "--"}


def error_bars(axes, rows, method: str, **keywords) -> None:
    """Draw a method's mean on ε with bars of two standard errors either side."""
    look, curve = style.look(method), rows.sort_values("epsilon")
    axes.errorbar(curve.epsilon, curve["mean"], 2 * curve["sem"], color=look.color, marker=look.marker, **keywords)


def label_epsilons(axes, table) -> None:
    """Mark the values of ε that a table has, and no others."""
    epsilons = sorted(table.epsilon.dropna().unique())
    axes.set_xticks(epsilons)
    axes.set_xticklabels([f"{value:g}" for value in epsilons])
    axes.minorticks_off()


def bits(table, metric: str, label: str):
    """Return one panel per n and δ with a metric on ε, for every method and accounting."""
    table = table[(table.metric == metric) & (table.statistic != "mean")]
    sizes, deltas = sorted(table.n.unique()), sorted(table.delta.dropna().unique())
    # Where the law is the true posterior itself, which a logarithmic axis cannot show, a marker lies on this floor.
    floor = table["mean"][table["mean"] > NOTHING].min() / 3 if metric == "kl" else None
    figure, panels = multiples.grid(len(sizes), len(deltas), 1.75 * len(sizes) + 0.8, sharex=True, sharey="row")
    for axes_row, n in zip(panels, sizes, strict=True):
        for axes, delta in zip(axes_row, deltas, strict=True):
            here = table[table.n == n]
            reference = here[here.method == "non_private"]
            if metric != "kl" and len(reference):
                axes.axhline(reference["mean"].iloc[0], color=style.look("non_private").color, linestyle=":")
            for (method, accounting), rows in here[here.delta == delta].groupby(["method", "accounting"]):
                face = style.look(method).color if accounting == "exact" else "white"
                shown = rows if floor is None else rows.assign(mean=rows["mean"].where(rows["mean"] > NOTHING, floor))
                error_bars(axes, shown, method, linestyle=LINES[accounting], markerfacecolor=face)
            if floor is not None:
                axes.axhline(floor, color=style.look("non_private").color, linestyle=":", linewidth=0.8)
            axes.set(xscale="log", yscale="log" if metric == "kl" else "linear", title=f"n = {n}, δ = {delta:g}")
        if metric != "kl":
            axes_row[0].set_ylim(bottom=0)
    for axes in panels[-1]:
        axes.set_xlabel("ε of (ε, δ)-DP")
        label_epsilons(axes, table)
    figure.supylabel(label, fontsize=8)
    handles = []
    for method in sorted(table.method.unique()):
        look = style.look(method)
        if method == "non_private":
            label = look.label if metric != "kl" else "KL = 0: the true posterior itself"
            handles.append(multiples.entry(color=look.color, linestyle=":", label=label))
            continue
        handles.append(multiples.entry(color=look.color, marker=look.marker, label=look.label))
    handles.append(multiples.entry(color="#555555", linestyle="-", label="exact privacy curve"))
    handles.append(
        multiples.entry(
            color="#555555", linestyle="--", marker="o", markerfacecolor="white", label="converted guarantee"
        )
    )
    multiples.legend(figure, handles, ncols=4)
    return figure
