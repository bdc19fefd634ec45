"""KL divergence from the true posterior to the private ones against n (Foulds et al. 2016, lemma 1)."""

from privpost.drawing import multiples, style

LINES = ("-", "--", "-.", ":")


def draw(tables):
    """Return the figure: mean KL divergence on the data's size, one panel per p, one line style per ε.

    Bands are two standard errors either side, mostly thinner than the lines; grey: theory, the term in 1/n for Laplace
    and the limit ½(ln T + 1/T − 1) for OPS, whose true posterior is truncated to [a0, 1−a0] as it is.
    """
    table = tables["posterior_divergence"]
    ps, epsilons = sorted(table.p.unique()), sorted(table.epsilon.unique())
    figure, panels = multiples.grid(1, len(ps), 2.9, sharey=True)
    for axes, p in zip(panels[0], ps, strict=True):
        for (method, epsilon), rows in table[table.p == p].groupby(["method", "epsilon"]):
            curve = rows.sort_values("n")
            theory = curve[curve.kl_theory < 10]
            axes.plot(theory.n, theory.kl_theory, color="#bbbbbb", linewidth=2.5, zorder=0, solid_capstyle="butt")
            look = {"method": method, "linestyle": LINES[epsilons.index(epsilon) % len(LINES)]}
            look["label"] = f"{style.look(method).label}, ε = {epsilon:g}"
            style.error_band(axes, curve.n, curve.kl_mean, 2 * curve.kl_sem, **look)
        axes.set(xscale="log", yscale="log", xlabel="number of records n", title=f"p = {p:g}")
    panels[0, 0].set_ylabel("E KL(true ‖ private posterior)  [nats]")
    theory = multiples.entry(color="#bbbbbb", linewidth=2.5, label="theory for large n")
    a0 = table.a0.max()
    figure.suptitle(f"Pure ε-DP; OPS and its true posterior on [{a0:g}, {1 - a0:g}]", fontsize=8)
    multiples.legend(figure, [theory], axes=panels[0, 0])
    return figure
