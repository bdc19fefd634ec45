"""Error of released marginals against ε on small Bayesian networks."""

from privpost.drawing import multiples, style
from privpost.evaluation.rows import select
from privpost.experiments.zhang2016.graphs import label

METHODS = ("laplace", "fourier", "sampler_record", "sampler_attribute", "map")
LABELS = {"sampler_record": "Sampler (ε per record)", "sampler_attribute": "Sampler (ε per leaf attribute)"}


def draw(tables):
    """Return the figure: one column per graph, one row per number of records.

    The error is the total variation distance of a node's joint law with its parents from that of the data's network,
    averaged over the nodes. Bands are one standard error over data sets.
    """
    table = tables["marginal_error"]
    graphs, sizes = list(dict.fromkeys(table.graph)), sorted(table.n.unique())
    width = max(style.ONE_COLUMN, style.TWO_COLUMNS * len(graphs) / 5)
    size = len(sizes), len(graphs), 1.1 + 1.5 * len(sizes)
    figure, panels = multiples.grid(*size, width=width, sharex=True, sharey="row")
    for axes, n, graph in multiples.cells(panels, sizes, graphs):
        rows = select(table, graph=graph, n=n).sort_values("epsilon")
        truth = select(rows, method="non_private")
        if len(truth):
            multiples.horizontal(axes, truth.error_mean.iloc[0])
        for method in METHODS:
            curve = select(rows, method=method)
            look = {"label": LABELS.get(method, style.look(method).label), "markersize": 2.5}
            style.error_band(axes, curve.epsilon, curve.error_mean, curve.error_sem, method=method, **look)
        axes.set(xscale="log", yscale="log")
        axes.set_xticks([0.1, 1, 10, 100], labels=["0.1", "1", "10", "100"])
    for axes in panels.flat:
        axes.set_yticks([0.03, 0.1, 0.3], labels=["0.03", "0.1", "0.3"])
        axes.minorticks_off()
    titles = [f"{label(graph)}, |I| = {select(table, graph=graph).nodes.iloc[0]}" for graph in graphs]
    multiples.label_outer(panels, "", [f"Total variation, n = {n}" for n in sizes], titles)
    panels[-1, len(graphs) // 2].set_xlabel("Privacy budget ε (pure DP)")
    multiples.legend(figure, axes=panels[0, 0], ncols=3)
    return figure
