"""Privacy against utility of the beta-Bernoulli mechanisms over the whole range of ε, beyond the paper's axis."""

from __future__ import annotations

import numpy as np

from privpost.figures import multiples, style

LABELS = {"diffused": "Diffused (Alg. 2)", "concentrated": "Concentrated (Alg. 3)", "gaussian": "Gaussian mechanism"}


def _kl_panel(axes, table, order):
    for method, label in LABELS.items():
        look = style.look(method)
        rows = table[(table.metric == "kl") & (table.method == method) & (table.order == order)]
        for variant, line, name in (("corrected", "-", label), ("paper", ":", None)):
            curve = rows[rows.variant == variant]
            axes.plot(curve.log_epsilon, curve["mean"], line, color=look.color, label=name)
    axes.set(ylim=(0, 0.7), ylabel="KL(true posterior ‖ output)")


def _likelihood_panel(axes, table, order):
    rows = table[table.metric == "neg_log_likelihood"]
    for method, label in LABELS.items():
        curve = rows[(rows.method == method) & (rows.order == order) & (rows.variant == "corrected")]
        look = {"method": method, "label": label, "linestyle": "-", "marker": ""}
        style.error_band(axes, curve.log_epsilon, curve["mean"], curve["sd"], **look)
    multiples.horizontal(axes, rows[rows.method == "non_private"].iloc[0]["mean"])
    axes.set(yscale="log", ylim=(60, 175), ylabel="−log p(held-out data | θ)  [nats]")
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
        column[0].set_title(f"Order λ = {order:g}")
        column[1].set_xlabel("Privacy cost ln ε, (λ, ε)-RDP")
    for axes in panels[:, 1:].ravel():
        axes.set_ylabel("")
    paper = multiples.entry(color="#444444", linestyle=":", label="the paper's charges")
    multiples.legend(figure, [paper], axes=panels[1, 0])
    panels[0, 0].set_xlim(np.floor(table.log_epsilon.min()), np.ceil(table.log_epsilon.max()))
    return figure
