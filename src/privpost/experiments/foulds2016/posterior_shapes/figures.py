"""The figure of the study."""

from privpost.drawing import facets, style
from privpost.drawing.figures import figure


@figure("fig1_posterior_shapes")
def shapes(posterior_shapes):
    """Densities of the non-private, the Laplace and the OPS posterior of one data set (Foulds et al. 2016, figure 1).

    Each thin curve is the posterior of one possible release. Together they show the noise, so there are no bands.
    Curves of releases that were clipped to (0, 0) are flat. The OPS density has temperature T and is truncated to
    [a₀, 1 − a₀].
    """
    table, row = posterior_shapes, posterior_shapes[posterior_shapes.method == "ops"].iloc[0]
    canvas, ((axes,),) = facets.subplots(1, 1, 2.7, width=style.NARROW)
    for method in sorted(facets.ordered(table.method, "method"), key=lambda name: -(table.method == name).sum()):
        rows = table[table.method == method]
        look, releases = style.look(method), rows.groupby("draw", dropna=False)
        many = len(releases) > 1
        words = f"{look.label}, {len(releases)} releases" if many else look.label
        words += f", temperature {row.temperature:.2f}" if method == "ops" else ""
        for _, curve in releases:
            theta, density = list(curve.theta), list(curve.density)
            if method == "ops":
                theta, density = [theta[0], *theta, theta[-1]], [0, *density, 0]
            thin = {"linewidth": 0.7, "alpha": 0.45} if many else {"linewidth": 1.8}
            axes.plot(theta, density, color=look.color, linestyle=look.linestyle, label=words, **thin)
    axes.set(xlim=(0, 1), ylim=(0, None))
    axes.set_title(facets.fixed(table, "n", "epsilon", "a0"))
    peak = table.groupby("method").density.max()
    modes = table[table.method == "laplace"].sort_values("density").groupby("draw").theta.last()
    holds = {"ops", "non_private"} <= set(peak.index) and peak["ops"] < 0.9 * peak["non_private"]
    words = "Laplace shifts the posterior, OPS flattens and cuts it" if holds and modes.std() > 0.05 else ""
    return facets.finish(canvas, words, "Success probability θ", "Density")
