"""Error of released marginals against ε on small Bayesian networks."""

from __future__ import annotations

from privpost.figures import style

METHODS = ("laplace", "fourier", "sampler_record", "sampler_attribute", "map")
LABELS = {"sampler_record": "Sampler (ε per record)", "sampler_attribute": "Sampler (ε per leaf attribute)"}


def draw(tables):
    """Return the figure: one column per graph, one row per number of records.

    The error is the total variation distance of a node's joint law with its parents from that of the data's network,
    averaged over the nodes. Bands are one standard error over data sets.
    """
    import matplotlib.pyplot as plt

    table = tables["marginal_error"]
    graphs, sizes = list(dict.fromkeys(table.graph)), sorted(table.n.unique())
    figure, panels = plt.subplots(
        len(sizes),
        len(graphs),
        figsize=(max(style.ONE_COLUMN, style.TWO_COLUMNS * len(graphs) / 5), 1.1 + 1.5 * len(sizes)),
        sharex=True,
        sharey="row",
        squeeze=False,
    )
    for row, n in zip(panels, sizes, strict=True):
        for axes, graph in zip(row, graphs, strict=True):
            rows = table[(table.graph == graph) & (table.n == n)]
            truth = rows[rows.method == "non_private"]
            if len(truth):
                look = style.look("non_private")
                axes.axhline(truth.error_mean.iloc[0], color=look.color, linestyle=look.linestyle, label=look.label)
            for method in METHODS:
                curve = rows[rows.method == method].sort_values("epsilon")
                label = LABELS.get(method, style.look(method).label)
                style.error_band(
                    axes, curve.epsilon, curve.error_mean, curve.error_sem, method=method, label=label, markersize=2.5
                )
            axes.set(xscale="log", yscale="log")
            axes.set_xticks([0.1, 1, 10, 100], labels=["0.1", "1", "10", "100"])
        row[0].set_ylabel(f"Total variation error, n = {n}")
        for axes in row:
            axes.set_yticks([0.03, 0.1, 0.3], labels=["0.03", "0.1", "0.3"])
            axes.minorticks_off()
    for axes, graph in zip(panels[0], graphs, strict=True):
        nodes = table[table.graph == graph].nodes.iloc[0]
        axes.set_title(f"{graph.replace('_', ' ')}, |I| = {nodes}")
    panels[-1, len(graphs) // 2].set_xlabel("Privacy budget ε (pure DP)")
    figure.legend(*panels[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=3)
    return figure
