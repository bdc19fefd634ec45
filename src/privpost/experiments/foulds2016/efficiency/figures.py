"""The figure of the study."""

from privpost.drawing import facets, style
from privpost.drawing.figures import figure

WITHIN = 0.1


@figure("are_curves")
def curves(efficiency):
    """Relative efficiency of private samples and means (Foulds et al. 2016, theorems 3.1 and 3.2, remark 1).

    The efficiency n E[(θ̂ − p)²] I(p) is the squared error times n times the Fisher information. A column is one ε, at
    the smallest p. A filled marker is within 10 % of the limit (grey line), which is 1 + T for OPS at temperature T.
    Bars are 95 % intervals. Dotted: theory to order 1/n, where the term in 1/n is smaller than the limit. The table
    also has other p, the geometric mechanism, and the mean of an OPS density, which cannot be released.
    """
    table = efficiency[efficiency.released | (efficiency.method == "non_private")]
    table = table[(table.p == table.p.min()) & (table.method != "geometric")]
    table = table.assign(near=(table["are"] - table.are_limit).abs() <= WITHIN * table.are_limit)
    grid = facets.lines(
        facets.named(table, "statistic"), "n", "are", "sem", col="epsilon", solid="near", size=(style.WIDTH, 1.9),
        share=(True, True), xscale="log", yscale="log", ylim=(0.6 * table["are"].min(), 2 * table["are"].max()),
    )  # fmt: skip
    for axes, rows in facets.each(grid):
        for limit in rows.are_limit.dropna().drop_duplicates():
            axes.axhline(limit, color="#aaaaaa", linewidth=0.8, zorder=0)
            words = f"1 + T = {limit:.1f}" if limit > 2 else f"{limit:g}"
            axes.text(table.n.max(), limit * 1.15, words, fontsize=7, color=style.GREY, ha="right")
        for (method, _), part in rows.groupby(["method", "statistic"]):
            theory = part[(part.are_first_order - part.are_limit).abs() < part.are_limit].sort_values("n")
            color = style.look(method).color
            axes.plot(theory.n, theory.are_first_order, ":", color=color, linewidth=1.4, zorder=1)
    handles = [
        facets.entry(linestyle=":", linewidth=1.4, label="Theory to order 1/n"),
        facets.entry(color="#aaaaaa", linewidth=0.8, label="Limit (filled: within 10 %)"),
    ]
    last = table[(table.n == table.n.max()) & (table.statistic == "sample")].groupby("method")["are"]
    holds = last.min().get("ops", 0) > 5 and last.max().get("laplace", 9) < 2.2
    words = "A sample of OPS stays inefficient, one of Laplace does not" if holds else ""
    note = f"{facets.fixed(table, 'p')}. T: temperature of OPS"
    return facets.finish(grid, words, "n", "Squared error × n\n× Fisher information", handles, note=note)
