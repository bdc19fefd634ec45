"""The figure of the study."""

from privpost.drawing import panels, style
from privpost.drawing.figures import figure

WITHIN = 0.1


@figure("are_curves")
def curves(efficiency):
    """Relative efficiency of private samples and means (Foulds et al. 2016, theorems 3.1 and 3.2, remark 1).

    n E[(θ̂ − p)²] I(p) against the number of records, for the smallest p, one column per ε of pure DP. Markers are
    filled from where on the efficiency is within 10 % of its limit (grey lines); bars are 95 % intervals; dotted:
    theory to order 1/n, where that term is smaller than the limit. The table has other p, the geometric mechanism,
    which lies on Laplace, and the mean of an OPS density, which no release gives.
    """
    table = efficiency[efficiency.released | (efficiency.method == "non_private")]
    table = table[(table.p == table.p.min()) & (table.method != "geometric")]
    table = table.assign(near=(table["are"] - table.are_limit).abs() <= WITHIN * table.are_limit)
    lines, limits = ("method", "statistic"), {"ylim": (0.6 * table["are"].min(), 2 * table["are"].max())}
    plot = panels.panels(
        table, "n", "are", "sem", None, "epsilon", lines, size=(style.WIDTH, 1.9), share=(True, True), bars=True,
        solid="near", xscale="log", yscale="log", ylabel=f"n E[(θ̂ − p)²] I(p), p = {table.p.min():g}", **limits,
    )  # fmt: skip
    for axes, _, epsilon in plot:
        here = panels.rows_of(table, "epsilon", epsilon)
        for limit in here.are_limit.dropna().drop_duplicates():
            axes.axhline(limit, color="#aaaaaa", linewidth=0.8, zorder=0)
        if (largest := here.are_limit.max()) > 2:
            axes.text(table.n.max(), largest * 1.15, f"1 + T = {largest:.1f}", fontsize=7, color=style.GREY, ha="right")
        for (method, _), rows in here.groupby(["method", "statistic"]):
            color = style.look(method).color
            theory = rows[(rows.are_first_order - rows.are_limit).abs() < rows.are_limit].sort_values("n")
            axes.plot(theory.n, theory.are_first_order, ":", color=color, linewidth=0.8, zorder=1)
    theory = panels.entry(linestyle=":", linewidth=0.8, label="Theory to order 1/n")
    limit = panels.entry(color="#aaaaaa", linewidth=0.8, label="Limit (filled: within 10 %)")
    last = table[(table.n == table.n.max()) & (table.statistic == "sample")].groupby("method")["are"]
    holds = last.min().get("ops", 0) > 5 and last.max().get("laplace", 9) < 2.2
    panels.message(plot.figure, "A sample of OPS stays inefficient, one of Laplace does not", holds)
    panels.legend(plot.figure, [theory, limit])
    return plot.figure
