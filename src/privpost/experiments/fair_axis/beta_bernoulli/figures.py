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


def _shown(table):
    """Return the rows that are drawn: of samples and posteriors, by exact privacy curves."""
    return table[(table.statistic != "mean") & (table.accounting != "converted")]


def _tile(box, color, alpha: float):
    from matplotlib.patches import Rectangle

    return Rectangle(*box, facecolor=color, alpha=alpha, linewidth=0)
