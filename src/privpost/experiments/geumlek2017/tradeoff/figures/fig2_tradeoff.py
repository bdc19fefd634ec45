"""Privacy against utility of the beta-Bernoulli mechanisms, on the paper's axes (Geumlek et al. 2017, figure 2)."""

import itertools

from privpost.drawing import multiples, style
from privpost.evaluation.rows import select

LABELS = {"diffused": "Diffused (Alg. 2)", "concentrated": "Concentrated (Alg. 3)", "gaussian": "Gaussian mechanism"}
LINES = {"corrected": ("-", "exact charges"), "paper": (":", "the paper's charges")}
# Metric, label and limits of a row: the paper's ticks are 0 to 70 nats below.
ROWS = (
    ("kl", "KL(true posterior ‖ output)\n[nats]", (0, 2)),
    ("neg_log_likelihood_count", "−log p(held-out count | θ)\n[nats]", (0, 70)),
)


def draw(tables):
    """Return the figure: KL divergence (top) and held-out log-likelihood of a count (bottom), one column per order.

    Solid: exact charges; dotted: the paper's. Bands, of the exact charges, are one standard deviation over repeats; the
    standard error of the mean is thinner than the lines. Curves beyond ln ε = 0 are in a figure of their own.
    """
    table = tables["tradeoff"]
    orders = sorted(table.order.dropna().unique())
    figure, panels = multiples.grid(2, len(orders), 4.4, sharex=True, sharey="row")
    for axes, (metric, _, limits), order in multiples.cells(panels, ROWS, orders):
        rows = select(table, metric=metric).sort_values("log_epsilon")
        for (method, name), (variant, (line, _)) in itertools.product(LABELS.items(), LINES.items()):
            curve = select(rows, method=method, order=order, variant=variant)
            sd = curve.sd.fillna(0) if variant == "corrected" else 0
            look = {"linestyle": line, "marker": "", "label": name if variant == "corrected" else None}
            style.error_band(axes, curve.log_epsilon, curve["mean"], sd, method=method, **look)
        multiples.horizontal(axes, select(rows, method="non_private")["mean"].iloc[0])
        axes.set(xlim=(-15, 0), ylim=limits)
    labels, titles = [label for _, label, _ in ROWS], [f"Order λ = {order:g}" for order in orders]
    multiples.label_outer(panels, "Privacy cost ln ε, (λ, ε)-RDP", labels, titles)
    lines = [multiples.entry(color="#444444", linestyle=line, label=label) for line, label in LINES.values()]
    multiples.legend(figure, lines, axes=panels[1, 0], ncols=3)
    return figure
