"""The panels that the figures of the logistic-regression study share: one per order and data set."""

from privpost.drawing import multiples, style
from privpost.evaluation.rows import select

TITLES = {"abalone": "Abalone", "adult": "Adult", "mnist": "MNIST, 3 against 8"}
AXES = {"test_error": "Test error", "test_log_likelihood": "Test log-likelihood per example [nats]"}
SCALING = {
    "paper": "features scaled by the data's own range, which is private",
    "corrected": "features scaled by public bounds",
}


def curve(axes, rows, method, **keywords) -> None:
    """Draw a method's mean on ln ε with a band of one standard error either side."""
    rows = rows.sort_values("log_epsilon")
    style.error_band(axes, rows.log_epsilon, rows["mean"], rows["sem"], method=method, **keywords)


# Charges of OPS beside that of the variant drawn: variant, look, label, line style.
CHARGES = {
    "paper": (
        ("corrected_charge", "ops", "OPS, what its pure cost implies", "--"),
        ("own_bound", "ops_renyi", "OPS, smaller of that and theorem 17", ":"),
    ),
    "corrected": (("corrected_own_bound", "ops_renyi", "OPS, smaller of that and theorem 17", ":"),),
}
OPS = {"paper": "OPS, the paper's charge", "corrected": "OPS, what its pure cost implies"}


def grid(table, metric: str, variant: str):
    """Return a figure of a metric against ln epsilon: rows are orders, columns data sets, lines methods.

    `variant` chooses the rows of the table and what the caption says of the features' bounds; OPS is drawn under each
    of its charges. Bands are one standard error of the mean over the draws of one split.
    """
    table = table[table.metric == metric]
    draws = f"Bands: ± one standard error over {table.n_repeats.min()} releases on one split"
    note = f"{draws}; {SCALING[variant]}"
    datasets = [name for name in TITLES if name in set(table.dataset)]
    stepped = set(table.dataset[(table.method == "langevin") & (table.variant == variant)])
    if stepped and len(stepped) < len(datasets):
        names = ", ".join(TITLES[name] for name in datasets if name in stepped)
        note += f"\nLangevin steps on {names} only, elsewhere they take minutes: see figure finite_time"
    orders = sorted(table.order.dropna().unique())
    figure, panels = multiples.grid(len(orders), len(datasets), 0.9 + 1.55 * len(orders), sharex=True, sharey="col")
    for axes, order, dataset in multiples.cells(panels, orders, datasets):
        rows = select(table, dataset=dataset, variant=variant)
        here = select(rows, order=order)
        for method in ("concentrated", "diffused", "output_noise", "langevin"):
            if (here.method == method).any():
                curve(axes, select(here, method=method), method)
        curve(axes, select(here, method="ops"), "ops", label=OPS[variant])
        for charge, look, label, line in CHARGES[variant]:
            ops = select(table, dataset=dataset, variant=charge, method="ops", order=order)
            if len(ops):
                curve(axes, ops, look, linestyle=line, marker="", label=label)
        truth = select(rows, method="non_private")
        if len(truth):
            multiples.horizontal(axes, truth["mean"].item())
    labels, titles = [f"λ = {order:g}" for order in orders], [TITLES[dataset] for dataset in datasets]
    multiples.label_outer(panels, "Privacy cost ln ε, (λ, ε)-RDP", labels, titles)
    figure.supylabel(AXES[metric], fontsize=8)
    multiples.legend(figure, axes=panels[0, 0], ncols=3, title=note, title_fontsize=7)
    return figure
