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


@figure("bits_winners")
def winners(beta_bernoulli):
    """Who is best at the same (ε, δ): bits, all mechanisms, by their exact privacy curves (ours).

    A tile per number of records n and ε, one column per δ: its colour and marker are those of the method with the least
    value, at the top the error of one draw of θ, below the divergence of its law from the non-private posterior, and
    the distance from calibration. Light tiles: another method is within a 95 % interval of the difference.
    """
    table = _shown(beta_bernoulli)
    table = table[table.method != "non_private"]
    deltas, metrics = panels.ordered(table.delta), [m for m in METRICS if m in set(table.metric)]
    sizes, epsilons = panels.ordered(table.n), panels.ordered(table.epsilon)
    made, axes = panels.grid(len(metrics), len(deltas), 4.1, sharex=True, sharey=True)
    leaders = set()
    for panel, metric, delta in panels.Panels(made, axes, metrics, deltas):
        rows = table[(table.metric == metric) & (table.delta == delta)]
        for (n, epsilon), tile in rows.groupby(["n", "epsilon"]):
            best, *others = tile.sort_values("mean", kind="stable").itertuples()
            look = style.look(best.method)
            leaders.add(best.method)
            near = any(o.mean - best.mean < style.NORMAL_95 * np.hypot(o.sem, best.sem) for o in others)
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
    panels.label_x(panels.Panels(made, axes, metrics, deltas), style.AXES["epsilon_delta"], 8)
    panels.message(made, "No mechanism is best everywhere", len(leaders) > 2)
    looks = [style.look(method).line() for method in panels.ordered(table.method, "method")]
    panels.legend(made, [panels.entry(**{**look, "linestyle": "", "markersize": 5}) for look in looks])
    return made


@figure("bits_curves")
def curves(beta_bernoulli):
    """Error, divergence and calibration of one private draw of θ for bits, all mechanisms at the same (ε, δ) (ours).

    One column per number of records n, at the middle δ; other δ look alike, and guarantees that are converted instead
    of exact curves stand in the table. The error is divided by the non-private posterior's. Divergences below 10⁻⁷ lie
    on the edge: the law is the non-private posterior itself. Bars are 95 % intervals. U is the quantile of θ in the
    posterior from the noisy count, or in the law that a released sample was drawn from.
    """
    table, deltas = _shown(beta_bernoulli), panels.ordered(beta_bernoulli.delta)
    table = panels.rows_of(table, "delta", deltas[len(deltas) // 2])
    truth = table[(table.method == "non_private") & (table.metric == "l1_error")].set_index("n")["mean"]
    unit = table.n.map(truth).where(table.metric == "l1_error", 1.0)
    table = table.assign(mean=table["mean"] / unit, sem=table["sem"] / unit)
    metrics, sizes = [m for m in METRICS if m in set(table.metric)], panels.ordered(table.n)
    made, axes = panels.grid(len(metrics), len(sizes), 4.4, sharex=True, sharey="row")
    looks = panels.looks(table)
    for panel, metric, n in panels.Panels(made, axes, metrics, sizes):
        rows = table[(table.metric == metric) & (table.n == n)]
        if metric == "kl":
            rows = rows[rows.method != "non_private"].assign(mean=rows["mean"].clip(lower=FLOORS["kl"]))
        panels.curves(panel, rows, "epsilon", "mean", "sem", ("method",), looks, True)
        panel.set(xscale="log", yscale="log")
        if metric in FLOORS:
            panel.set_ylim(bottom=FLOORS[metric])
        if metric == metrics[0]:
            panel.set_title(panels.named("n", n))
        if n == sizes[0]:
            panel.set_ylabel(METRICS[metric])
    panels.label_x(panels.Panels(made, axes, metrics, sizes), style.AXES["epsilon_delta"], 8)
    panels.legend(made)
    return made


def _shown(table):
    """Return the rows that are drawn: of samples and posteriors, by exact privacy curves."""
    return table[(table.statistic != "mean") & (table.accounting != "converted")]


def _tile(box, color, alpha: float):
    from matplotlib.patches import Rectangle

    return Rectangle(*box, facecolor=color, alpha=alpha, linewidth=0)
