"""Relative efficiency of private samples and means against n (Foulds et al. 2016, theorems 3.1 and 3.2, remark 1)."""

from privpost.drawing import multiples, style

LINES = {"sample": "-", "mean": "--"}
WITHIN = 0.1


def _curve(axes, rows, method, statistic):
    color, marker = style.look(method).color, style.look(method).marker
    # Where the term in 1/n is as large as the limit the expansion says nothing.
    valid = rows[(rows.are_first_order - rows.are_limit).abs() < rows.are_limit]
    axes.plot(valid.n, valid.are_first_order, ":", color=color, linewidth=0.8, zorder=1)
    axes.errorbar(rows.n, rows["are"], 2 * rows["sem"], color=color, linestyle=LINES[statistic])
    near = (rows["are"] - rows.are_limit).abs() <= WITHIN * rows.are_limit
    for chosen, fill in ((near, color), (~near, "white")):
        axes.plot(rows.n[chosen], rows["are"][chosen], marker, color=color, markerfacecolor=fill)


def draw(tables):
    """Return the figure: n E[(θ̂−p)²] I(p) on the data's size, one row per ε and one column per p.

    Markers are filled from where on the efficiency is within 10 % of its limit (grey lines); bars are two standard
    errors either side; dotted: theory to order 1/n. The mean of an OPS density, which no release gives, stands in the
    table only.
    """
    table = tables["efficiency"]
    table = table[table.released | (table.method == "non_private")]
    ps, epsilons = sorted(table.p.unique()), sorted(table.epsilon.dropna().unique())
    figure, panels = multiples.grid(len(epsilons), len(ps), 2.1 * len(epsilons) + 0.9, sharex=True, sharey=True)
    for axes, epsilon, p in multiples.cells(panels, epsilons, ps):
        here = table[(table.p == p) & ((table.epsilon == epsilon) | table.epsilon.isna())]
        limits = here.are_limit.dropna().drop_duplicates()
        for limit in limits:
            axes.axhline(limit, color="#aaaaaa", linewidth=0.8, zorder=0)
        axes.set_yticks([1, 2, 10, 100], labels=["1", "2", "10", "100"])
        if limits.max() > 2:
            text = f"1 + T = {limits.max():.1f}"
            axes.text(table.n.max(), limits.max() * 1.15, text, fontsize=6, color="#555555", ha="right")
        for (method, statistic), rows in here.groupby(["method", "statistic"]):
            _curve(axes, rows.sort_values("n"), method, statistic)
        axes.set_title(f"p = {p:g}, ε = {epsilon:g} (pure DP)")
    panels[0, 0].set(xscale="log", yscale="log", ylim=(0.6 * table["are"].min(), 2 * table["are"].max()))
    multiples.label_outer(panels, "number of records n", "n E[(θ̂ − p)²] I(p)")
    for axes in panels.ravel():
        axes.minorticks_off()
    handles = []
    for method, statistic in table.groupby(["method", "statistic"]).groups:
        look, line = style.look(method), LINES[statistic]
        label = f"{look.label}, {statistic}"
        handles.append(multiples.entry(color=look.color, marker=look.marker, linestyle=line, label=label))
    handles.append(multiples.entry(color="#555555", linestyle=":", linewidth=0.8, label="theory to order 1/n"))
    handles.append(multiples.entry(color="#aaaaaa", linewidth=0.8, label="limit (filled markers: within 10 %)"))
    multiples.legend(figure, handles, ncols=3)
    return figure
