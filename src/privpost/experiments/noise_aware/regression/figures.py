"""The figure of the study."""

from privpost.drawing import panels, style
from privpost.drawing.figures import figure


@figure("regression")
def errors(regression):
    """Linear regression on census records: noisy second moments against one posterior draw at the same ε (ours).

    Mean squared error on the test part beyond that of the non-private posterior mean, on ε of pure DP, which the draw's
    ball sets. Left: of the posterior mean, and of the draw itself. Right: of one draw from each posterior, which is all
    that the sampler releases. Bars are 95 % intervals over splits.
    """
    table = regression[regression.method != "non_private"]
    parts = [
        table.assign(kind=kind, excess=table[f"{name}_mean"], sem=table[f"{name}_sem"])
        for kind, name in (("Posterior mean, or the draw", "excess"), ("One draw", "draw_excess"))
    ]
    import pandas as pd

    together = pd.concat(parts)
    plot = panels.panels(
        together, "epsilon", "excess", "sem", columns="kind", bars=True, xscale="log", yscale="log",
        ylabel="Excess mean squared error\n[squared label range]", size=(style.WIDTH, 2.0),
    )  # fmt: skip
    ends = (
        together.groupby(["kind", "epsilon", together.method == "sampler_record"]).excess.agg(["min", "max"]).unstack()
    )
    holds = {True, False} <= set(ends["min"]) and (ends["max", False] < ends["min", True] / 3).all()
    panels.message(plot.figure, "Noisy moments beat one posterior draw at every ε", bool(holds))
    panels.legend(plot.figure)
    return plot.figure
