"""Densities of the true, the Laplace and the OPS posterior of one data set (Foulds et al. 2016, figure 1)."""

from privpost.drawing import multiples, style


def draw(tables):
    """Return the figure: the true posterior, privatised posteriors of as many Laplace releases, and the OPS density.

    The Laplace curves are their own uncertainty: each is one possible release. Curves of releases that were clipped
    to (0, 0) are flat.
    """
    table = tables["posterior_shapes"]
    figure, ((axes,),) = multiples.grid(1, 1, 2.6, width=style.ONE_COLUMN)
    releases = table[table.method == "laplace"]
    look = style.look("laplace")
    label = f"{look.label} ({releases.draw.nunique()} releases)"
    for _, rows in releases.groupby("draw"):
        axes.plot(rows.theta, rows.density, color=look.color, linewidth=0.7, alpha=0.45, label=label)
        label = None
    ops, look = table[table.method == "ops"], style.look("ops")
    edges = [ops.theta.iloc[0], *ops.theta, ops.theta.iloc[-1]]
    label = f"{look.label} (T = {ops.temperature.iloc[0]:.2f})"
    axes.plot(edges, [0, *ops.density, 0], color=look.color, linewidth=2, label=label)
    true, look = table[table.method == "non_private"], style.look("non_private")
    axes.plot(true.theta, true.density, color=look.color, linestyle=look.linestyle, linewidth=1.8, label=look.label)
    a0, epsilon, n = ops.a0.iloc[0], ops.epsilon.iloc[0], ops.n.iloc[0]
    axes.set(xlim=(0, 1), ylim=(0, None), xlabel="success probability θ", ylabel="density")
    axes.set_title(f"n = {n}, ε = {epsilon:g} (pure DP), a₀ = {a0:g}")
    axes.legend(loc="upper right")
    return figure
