"""The figures of the study."""

import numpy as np

from privpost.drawing import panels, style
from privpost.drawing.figures import figure

NAMES = {"l1_error": "Error of\na draw", "kl": "KL\ndivergence", "ks": "Calibration\n(KS)"}
METRICS = {
    "l1_error": "Error E |draw − θ|\n÷ non-private",
    "kl": "KL(non-private ‖ draw)\n[nats]",
    "ks": "KS distance of U\nfrom uniform",
}
# Where panels end. Smaller divergences, 0 but for rounding, lie on the edge.
FLOORS = {"kl": 1e-7, "ks": 3e-3}
# Near another line: discrete noise at its continuous kin, the direct draw at the diffused one for large ε.
ALIKE = ("geometric", "discrete_gaussian", "direct")


@figure("bits_winners")
def winners(beta_bernoulli):
    """Who is best at the same (ε, δ): bits, all mechanisms, by their exact privacy curves (ours).

    A tile per number of records n and ε, one column per δ: its colour and marker are those of the method with the least
    value, at the top the error of one draw of θ, below the divergence of its law from the non-private posterior, and
    the distance from calibration. Light tiles: another method is within a 95 % interval of the difference, or
    10⁻⁷.
    """
    table = _shown(beta_bernoulli)
    table = table[table.method != "non_private"]
    deltas, metrics = panels.ordered(table.delta), [m for m in METRICS if m in set(table.metric)]
    sizes, epsilons = panels.ordered(table.n), panels.ordered(table.epsilon)
    canvas, axes = panels.grid(len(metrics), len(deltas), 4.1, sharex=True, sharey=True)
    leaders = set()
    for panel, metric, delta in panels.Panels(canvas, axes, metrics, deltas):
        rows = table[(table.metric == metric) & (table.delta == delta)]
        for (n, epsilon), tile in rows.groupby(["n", "epsilon"]):
            best, *others = tile.sort_values("mean", kind="stable").itertuples()
            look = style.look(best.method)
            leaders.add(best.method)
            tie = [FLOORS["kl"] + style.NORMAL_95 * np.hypot(other.sem, best.sem) for other in others]
            near = any(other.mean - best.mean <= limit for other, limit in zip(others, tie, strict=True))
            at = epsilons.index(epsilon), sizes.index(n)
            box = (at[0] - 0.48, at[1] - 0.46), 0.96, 0.92
            panel.add_patch(_tile(box, look.color, 0.3 if near else 0.9))
            panel.plot(*at, look.marker, color=look.color if near else "white", markersize=4)
        panel.set(xlim=(-0.6, len(epsilons) - 0.4), ylim=(-0.6, len(sizes) - 0.4))
        panel.set_xticks(range(len(epsilons)), [f"{value:g}" for value in epsilons])
        panel.set_yticks(range(len(sizes)), [f"n = {size:,}" for size in sizes])
        panel.grid(visible=False)
        if metric == metrics[0]:
            panel.set_title(f"δ = {style.power(delta)}")
        if delta == deltas[0]:
            panel.set_ylabel(NAMES[metric])
    panels.label_x(panels.Panels(canvas, axes, metrics, deltas), style.AXES["epsilon_delta"], 8)
    panels.message(canvas, "No mechanism is best everywhere", len(leaders) > 2)
    looks = [style.look(method).line() for method in panels.ordered(leaders, "method")]
    panels.legend(canvas, [panels.entry(**{**look, "linestyle": "", "markersize": 5}) for look in looks])
    return canvas


@figure("bits_curves")
def curves(beta_bernoulli):
    """Error, divergence and calibration of one private draw of θ for bits, all mechanisms at the same (ε, δ) (ours).

    At the middle number of records and δ; the table has the others, and guarantees that are converted instead of
    exact curves. Discrete noise, near its continuous kin, and the direct draw are left out. The error is divided by the
    non-private posterior's. Divergences below 10⁻⁷ lie on the edge: the law is the non-private posterior itself. Bars
    are 95 % intervals. U is the quantile of θ in the posterior from the noisy count, or in the law that a released
    sample was drawn from.
    """
    table, deltas = _shown(beta_bernoulli), panels.ordered(beta_bernoulli.delta)
    delta, sizes = deltas[len(deltas) // 2], panels.ordered(table.n)
    n = sizes[len(sizes) // 2]
    table = panels.rows_of(panels.rows_of(table, "delta", delta), "n", n)
    table = table[~table.method.isin(ALIKE)]
    truth = table[(table.method == "non_private") & (table.metric == "l1_error")]["mean"].mean()
    unit = (table.metric == "l1_error").map({True: truth, False: 1.0})
    table = table.assign(mean=table["mean"] / unit, sem=table["sem"] / unit)
    metrics = [m for m in METRICS if m in set(table.metric)]
    canvas, axes = panels.grid(1, len(metrics), 2.4, sharex=True)
    looks = panels.looks(table)
    for panel, metric in zip(axes[0], metrics, strict=True):
        rows = table[table.metric == metric]
        if metric == "kl":
            rows = rows[rows.method != "non_private"].assign(mean=rows["mean"].clip(lower=FLOORS["kl"]))
        panels.curves(panel, rows, "epsilon", "mean", "sem", ("method",), looks, True)
        panel.set(xscale="log", yscale="log", title=METRICS[metric])
        if metric in FLOORS:
            panel.set_ylim(bottom=FLOORS[metric])
    canvas.supxlabel(f"{style.AXES['epsilon_delta']}, at n = {n:g} and δ = {style.power(delta)}", fontsize=8)
    least = table[(table.epsilon == table.epsilon.min()) & (table.method != "non_private")]
    by_method = least.pivot_table(index="method", columns="metric", values="mean")
    holds = len(metrics) == len(METRICS) and by_method.l1_error.idxmin() == "concentrated"
    holds = holds and by_method.kl.idxmax() == by_method.ks.idxmax() == "concentrated"
    panels.message(canvas, "At small ε concentrated draws err least and are calibrated worst", holds)
    panels.legend(canvas)
    return canvas


def _shown(table):
    """Return the rows that are drawn: of samples and posteriors, by exact privacy curves."""
    return table[(table.statistic != "mean") & (table.accounting != "converted")]


def _tile(box, color, alpha: float):
    from matplotlib.patches import Rectangle

    return Rectangle(*box, facecolor=color, alpha=alpha, linewidth=0)
