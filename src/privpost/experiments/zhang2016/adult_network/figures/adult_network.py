"""Private Bayesian networks on Adult: divergence from the true posterior and accuracy against ε."""

from privpost.drawing import multiples, style
from privpost.evaluation.rows import select

LABELS = {
    "laplace": "Laplace",
    "consistent": "Laplace, counts made consistent",
    "exact": "Laplace, noise-aware posterior",
    "gibbs": "Laplace, noise-aware posterior",
    "fourier": "Fourier",
    "sampler_record": "Sampler (ε per record)",
    "sampler_attribute": "Sampler (ε per leaf attribute)",
}
AWARE = {"color": "#332288", "marker": "P", "linestyle": "-"}
LOOKS = {"consistent": {"color": "#E69F00", "marker": "X"}, "exact": AWARE, "gibbs": AWARE}
GRAPHS = {"naive_bayes": "naive Bayes", "learned": "learned graph"}
SCORES = {
    "divergence": "KL(true ‖ released)\n[nats per record]",
    "accuracy": "Accuracy: income\nover 50,000 dollars?",
}


def draw(tables):
    """Return the figure: one column per graph and number of records, 14 nodes each.

    Above, KL divergence of the released network from the true posterior's mean; below, the share of test records whose
    income class is predicted from the other 13 bits. Bands are one standard error over subsets and noise.
    """
    table = tables["adult_network"]
    places = list(dict.fromkeys(zip(table.graph, table.n, strict=True)))
    figure, panels = multiples.grid(2, len(places), 4.2, sharex=True, sharey="row")
    for axes, name, (graph, n) in multiples.cells(panels, SCORES, places):
        rows = select(table, graph=graph, n=n).sort_values("epsilon")
        truth = select(rows, method="non_private")
        if len(truth) and name == "accuracy":
            multiples.horizontal(axes, truth.accuracy_mean.iloc[0], label="True posterior")
        for method, label in LABELS.items():
            curve = select(rows, method=method)
            if len(curve):
                look = {"method": method, "label": label, **LOOKS.get(method, {})}
                style.error_band(axes, curve.epsilon, curve[f"{name}_mean"], curve[f"{name}_sem"], **look)
        axes.set(xscale="log", yscale="log" if name == "divergence" else "linear")
        axes.set_xticks([0.1, 1, 10, 100], labels=["0.1", "1", "10", "100"])
        axes.xaxis.minorticks_off()
    titles = [f"{GRAPHS[graph]}, n = {n:,}" for graph, n in places]
    multiples.label_outer(panels, "ε (pure DP)", SCORES.values(), titles)
    handles = multiples.entry(color="#000000", linestyle="--", label="True posterior")
    multiples.legend(figure, [handles], axes=panels[0, 0], ncols=3)
    return figure
