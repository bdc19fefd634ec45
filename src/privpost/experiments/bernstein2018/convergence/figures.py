"""The figure of the study."""

from privpost.drawing import panels, style
from privpost.drawing.figures import figure
from privpost.evaluation.summaries import share_error
from privpost.experiments.bernstein2018 import models

ROWS = {"stuck_share": "Share of releases\nwith stuck chains", "ess_per_sweep": "Bulk ESS per sweep\n(median)"}


@figure("convergence")
def convergence(convergence):
    """Convergence of the noise-aware Gibbs sampler (Bernstein and Sheldon 2018, supplement).

    Above, the share of releases whose four chains have R-hat above 1.1 (of the Gibbs sampler; bars are 95 % intervals,
    at 0 and 1 Wilson's); below, effective draws per sweep, the median over releases, of the Gibbs sampler (solid) and
    of the sampler that integrates the sum out of the update of θ (dashed). One column per ε of pure DP; bounds are
    public unless they are said to come from θ.
    """
    table = convergence.assign(
        line=convergence.model.map(lambda model: models.MODELS.get(model, str(model).capitalize()))
        + (convergence.variant == "paper").map({True: ", bounds from θ", False: ""}),
        sem=share_error(convergence.stuck_share, convergence.n_trials),
    )
    epsilons, lines = panels.ordered(table.epsilon), ("line", "sampler")
    figure, axes = panels.grid(2, len(epsilons), 3.6, sharex=True, sharey="row")
    looks = panels.looks(table, lines, names={"gibbs": "", "collapsed": "sum integrated out"})
    for panel, metric, epsilon in panels.Panels(figure, axes, list(ROWS), epsilons):
        rows = table[table.epsilon == epsilon]
        if metric == "stuck_share":
            panels.curves(panel, rows[rows["sampler"] != "collapsed"], "n", metric, "sem", lines, looks, bars=True)
            panel.set(title=f"ε = {epsilon:g}", xscale="log", ylim=(-0.01, None))
        else:
            panels.curves(panel, rows, "n", metric, None, lines, looks)
            panel.set(yscale="log", xlabel=style.AXES["n"])
        if epsilon == epsilons[0]:
            panel.set_ylabel(ROWS[metric])
    least = table[table.epsilon == table.epsilon.min()].groupby("sampler").ess_per_sweep
    mended = least.min().get("collapsed", 0) > 3 * least.max().get("gibbs", 1)
    panels.message(figure, "Integrating the sum out mends slow mixing at small ε", mended)
    panels.legend(figure)
    return figure
