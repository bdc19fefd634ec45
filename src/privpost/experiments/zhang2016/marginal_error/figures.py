"""The figure of the study."""

import numpy as np

from privpost.drawing import panels, style
from privpost.drawing.figures import figure
from privpost.experiments.zhang2016.graphs import label

SHOWN = 2  # graphs: those with most nodes


@figure("marginal_error")
def errors(marginal_error):
    """Error of released marginals against ε on small Bayesian networks (ours, for section 4's mechanisms).

    Total variation distance of a node's joint law with its parents from that of the data's network, averaged over the
    nodes, on ε of pure DP: one row per number of records, a column for each of the two graphs with most nodes; the
    others, which look alike, are in the table. Bands are 95 % intervals over data sets.
    """
    nodes = marginal_error.groupby("graph", sort=False).nodes.first()
    largest = nodes.sort_values(ascending=False, kind="stable").index[:SHOWN]
    table = marginal_error[marginal_error.graph.isin(largest)]
    names = {graph: f"{label(graph)}, {nodes[graph]} nodes" for graph in largest}
    plot = panels.panels(
        table, "epsilon", "error_mean", "error_sem", "n", "graph", names=names, share=(True, True),
        size=(style.WIDTH, 1.5), xscale="log", yscale="log", ylabel="Total variation distance",
    )  # fmt: skip
    errors = table.pivot_table(index="epsilon", columns=["method", "graph", "n"], values="error_mean")
    names = {"laplace", "fourier", "sampler_record"} & set(errors.columns.levels[0])
    leads = np.all([(errors["laplace"] < errors[name]).all(axis=1) for name in names - {"laplace"}], axis=0)
    holds = len(names) == 3 and leads[errors.index >= 1].all()
    panels.message(plot.figure, "From ε = 1 on Laplace is nearer than Fourier and record sampling", bool(holds))
    panels.legend(plot.figure)
    return plot.figure
