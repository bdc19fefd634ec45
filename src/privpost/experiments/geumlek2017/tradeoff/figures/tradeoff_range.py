"""Privacy against utility of the beta-Bernoulli mechanisms over the whole range of ε, beyond the paper's axis."""

import numpy as np

from privpost.drawing import multiples, style
from privpost.evaluation.rows import select
from privpost.experiments.geumlek2017.tradeoff.figures.fig2_tradeoff import LABELS


def _kl_panel(axes, table, order):
    for method, label in LABELS.items():
        look = style.look(method)
        for variant, line, name in (("corrected", "-", label), ("paper", ":", None)):
            curve = select(table, metric="kl", method=method, order=order, variant=variant)
            axes.plot(curve.log_epsilon, curve["mean"], line, color=look.color, label=name)
    axes.set(ylim=(0, 0.7))


def _likelihood_panel(axes, table, order):
    rows = table[table.metric == "neg_log_likelihood"]
    for method, label in LABELS.items():
        curve = select(rows, method=method, order=order, variant="corrected")
        look = {"method": method, "label": label, "linestyle": "-", "marker": ""}
        style.error_band(axes, curve.log_epsilon, curve["mean"], curve["sd"], **look)
    multiples.horizontal(axes, rows[rows.method == "non_private"].iloc[0]["mean"])
    axes.set(yscale="log", ylim=(60, 175))
    axes.set_yticks([60, 70, 80, 100, 130, 170], labels=["60", "70", "80", "100", "130", "170"])
    axes.minorticks_off()


def draw(tables):
    """Return the figure: KL divergence (top) and held-out log-likelihood (bottom), one column per order.

    Solid: exact charges; dotted in the top row: the paper's. Bands are one standard deviation over repeats; the
    standard error of the mean is thinner than the lines.
    """
    table = tables["tradeoff"]
    orders = sorted(table.order.dropna().unique())
    figure, panels = multiples.grid(2, len(orders), 4.4, sharex=True, sharey="row")
    for column, order in zip(panels.T, orders, strict=True):
        _kl_panel(column[0], table, order)
        _likelihood_panel(column[1], table, order)
    labels = ["KL(true posterior ‖ output)", "−log p(held-out data | θ)  [nats]"]
    titles = [f"Order λ = {order:g}" for order in orders]
    multiples.label_outer(panels, "Privacy cost ln ε, (λ, ε)-RDP", labels, titles)
    paper = multiples.entry(color="#444444", linestyle=":", label="the paper's charges")
    multiples.legend(figure, [paper], axes=panels[1, 0])
    panels[0, 0].set_xlim(np.floor(table.log_epsilon.min()), np.ceil(table.log_epsilon.max()))
    return figure
