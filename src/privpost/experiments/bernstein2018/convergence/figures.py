"""Figure of effective draws per sweep of the noise-aware Gibbs sampler."""

from privpost.drawing import facets, style
from privpost.drawing.figures import figure
from privpost.experiments.bernstein2018 import models

SAMPLERS = {"gibbs": "Gibbs (the paper's)", "collapsed": "Gibbs, sum integrated out (of redacted sums only)"}


@figure("convergence")
def convergence(convergence):
    """Convergence of the noise-aware Gibbs sampler (Bernstein and Sheldon 2018, supplement).

    Shown is the median over releases of effective draws per sweep. Redacted sums have a second sampler, which
    integrates the sum out of the update of θ. Bounds are public unless a panel says that they come from θ. The table
    has the share of releases whose four chains have R-hat above 1.1.
    """
    names = convergence.model.map(lambda model: models.MODELS.get(model, str(model).capitalize()))
    bounds = (convergence.variant == "paper").map({True: "\nbounds from θ", False: ""})
    grid = facets.lines(
        convergence.assign(panel=names + bounds), "n", "ess_per_sweep", row="epsilon", col="panel", hue="sampler",
        names=SAMPLERS, size=(style.WIDTH, 1.3), share=(True, True), xscale="log", yscale="log",
    )  # fmt: skip
    least = convergence[convergence.epsilon == convergence.epsilon.min()].groupby("sampler").ess_per_sweep
    mended = least.min().get("collapsed", 0) > 3 * least.max().get("gibbs", 1)
    words = "Integrating the sum out mends slow mixing at small ε" if mended else ""
    return facets.finish(grid, words, "n", "Effective draws per sweep", note=models.FROM_THETA)
