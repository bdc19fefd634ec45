"""The panels that the figures of the logistic-regression study share: one per order and data set."""

from __future__ import annotations

from privpost.figures import style

TITLES = {"abalone": "Abalone", "adult": "Adult", "mnist": "MNIST, 3 against 8"}
AXES = {"test_error": "Test error", "test_log_likelihood": "Test log-likelihood per example [nats]"}
SCALING = {
    "paper": "features scaled by the data's own range, which is private",
    "corrected": "features scaled by public bounds, OPS at its exact RDP charge",
}


def _curve(axes, rows, method, **keywords):
    rows = rows.sort_values("log_epsilon")
    look = {**style.look(method).line(), **keywords}
    axes.plot(rows.log_epsilon, rows["mean"], **look)
    low, high = rows["mean"] - rows["sem"], rows["mean"] + rows["sem"]
    axes.fill_between(rows.log_epsilon, low, high, color=look["color"], alpha=0.25, linewidth=0)


def grid(table, metric: str, variant: str, *, compare_ops: bool):
    """Return a figure of a metric against ln epsilon: rows are orders, columns data sets, lines methods.

    `variant` chooses the rows of the table and what the caption says of the features' bounds; `compare_ops` adds OPS
    at its exact charge as a dashed line. Bands are one standard error of the mean over the chains of one split.
    """
    import matplotlib.pyplot as plt

    table = table[table.metric == metric]
    chains = f"MCMC draws; bands: ± one standard error over {table.n_repeats.min()} chains on one split"
    note = f"{chains}; {SCALING[variant]}"
    datasets = [name for name in TITLES if name in set(table.dataset)]
    orders = sorted(table.order.dropna().unique())
    size = (style.TWO_COLUMNS, 0.9 + 1.55 * len(orders))
    figure, panels = plt.subplots(len(orders), len(datasets), figsize=size, sharex=True, sharey="col", squeeze=False)
    for i, order in enumerate(orders):
        for j, dataset in enumerate(datasets):
            axes = panels[i, j]
            rows = table[(table.dataset == dataset) & (table.variant == variant)]
            here = rows[rows.order == order]
            for method in ("concentrated", "diffused", "ops"):
                _curve(axes, here[here.method == method], method)
            if compare_ops:
                exact = table[(table.dataset == dataset) & (table.variant == "corrected_charge")]
                exact = exact[(exact.order == order) & (exact.method == "ops")]
                _curve(axes, exact, "ops", linestyle="--", marker="", label="OPS, exact RDP charge")
            truth = rows[rows.method == "non_private"]
            if len(truth):
                look = style.look("non_private")
                axes.axhline(truth["mean"].item(), color=look.color, linestyle=look.linestyle, label=look.label)
            if i == 0:
                axes.set_title(TITLES[dataset])
            if i == len(orders) - 1:
                axes.set_xlabel("Privacy cost ln ε, (λ, ε)-RDP")
            if j == 0:
                axes.set_ylabel(f"λ = {order:g}")
    figure.supylabel(AXES[metric], fontsize=8)
    handles, labels = panels[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(labels), title=note, title_fontsize=7)
    return figure
