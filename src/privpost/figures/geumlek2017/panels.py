"""The panels that the figures of the logistic-regression study share: one per order and data set."""

from __future__ import annotations

from privpost.figures import multiples, style

TITLES = {"abalone": "Abalone", "adult": "Adult", "mnist": "MNIST, 3 against 8"}
AXES = {"test_error": "Test error", "test_log_likelihood": "Test log-likelihood per example [nats]"}
SCALING = {
    "paper": "features scaled by the data's own range, which is private",
    "corrected": "features scaled by public bounds, OPS at its exact RDP charge",
}


def curve(axes, rows, method, **keywords) -> None:
    """Draw a method's mean on ln ε with a band of one standard error either side."""
    rows = rows.sort_values("log_epsilon")
    style.error_band(axes, rows.log_epsilon, rows["mean"], rows["sem"], method=method, **keywords)


def grid(table, metric: str, variant: str, *, compare_ops: bool):
    """Return a figure of a metric against ln epsilon: rows are orders, columns data sets, lines methods.

    `variant` chooses the rows of the table and what the caption says of the features' bounds; `compare_ops` adds OPS
    at its exact charge as a dashed line. Bands are one standard error of the mean over the chains of one split.
    """
    table = table[table.metric == metric]
    chains = f"MCMC draws; bands: ± one standard error over {table.n_repeats.min()} chains on one split"
    note = f"{chains}; {SCALING[variant]}"
    datasets = [name for name in TITLES if name in set(table.dataset)]
    orders = sorted(table.order.dropna().unique())
    figure, panels = multiples.grid(len(orders), len(datasets), 0.9 + 1.55 * len(orders), sharex=True, sharey="col")
    for i, order in enumerate(orders):
        for j, dataset in enumerate(datasets):
            axes = panels[i, j]
            rows = table[(table.dataset == dataset) & (table.variant == variant)]
            here = rows[rows.order == order]
            for method in ("concentrated", "diffused", "ops"):
                curve(axes, here[here.method == method], method)
            if compare_ops:
                exact = table[(table.dataset == dataset) & (table.variant == "corrected_charge")]
                exact = exact[(exact.order == order) & (exact.method == "ops")]
                curve(axes, exact, "ops", linestyle="--", marker="", label="OPS, exact RDP charge")
            truth = rows[rows.method == "non_private"]
            if len(truth):
                multiples.horizontal(axes, truth["mean"].item())
        panels[i, 0].set_ylabel(f"λ = {order:g}")
    for axes, dataset in zip(panels[0], datasets, strict=True):
        axes.set_title(TITLES[dataset])
    multiples.label_outer(panels, "Privacy cost ln ε, (λ, ε)-RDP")
    figure.supylabel(AXES[metric], fontsize=8)
    multiples.legend(figure, axes=panels[0, 0], title=note, title_fontsize=7)
    return figure
