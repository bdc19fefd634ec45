"""Panels that the figures of the comparison at the same (ε, δ) share."""

from privpost.drawing import multiples, style

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


def entries(table, special) -> list:
    """Return a legend's entries of a table's methods; `special` are looks of some that replace their own."""
    found = []
    for method in sorted(table.method.unique()):
        look = style.look(method)
        line = {"linestyle": ":"} if method == "non_private" else {"marker": look.marker}
        found.append(multiples.entry(**{"color": look.color, "label": look.label, **line, **special.get(method, {})}))
    return found


def bits(table, metric: str, label: str):
    """Return one panel per n and δ with a metric on ε, for every method and accounting."""
    table = table[(table.metric == metric) & (table.statistic != "mean")]
    sizes, deltas = sorted(table.n.unique()), sorted(table.delta.dropna().unique())
    # Where the law is the true posterior itself, which a logarithmic axis cannot show, a marker lies on this floor.
    floor = table["mean"][table["mean"] > NOTHING].min() / 3 if metric == "kl" else None
    figure, panels = multiples.grid(len(sizes), len(deltas), 1.75 * len(sizes) + 0.8, sharex=True, sharey="row")
    for axes, n, delta in multiples.cells(panels, sizes, deltas):
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
    for axes in panels[:, 0] if metric != "kl" else ():
        axes.set_ylim(bottom=0)
    multiples.label_outer(panels, "ε of (ε, δ)-DP")
    for axes in panels[-1]:
        label_epsilons(axes, table)
    figure.supylabel(label, fontsize=8)
    handles = entries(table, {"non_private": {"label": "KL = 0: the true posterior itself"}} if metric == "kl" else {})
    handles.append(multiples.entry(color="#555555", linestyle="-", label="exact privacy curve"))
    hollow = {"linestyle": "--", "marker": "o", "markerfacecolor": "white"}
    handles.append(multiples.entry(color="#555555", label="converted guarantee", **hollow))
    multiples.legend(figure, handles, ncols=4)
    return figure
