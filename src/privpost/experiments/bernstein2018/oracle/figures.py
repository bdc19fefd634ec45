"""The figure of the study."""

import numpy as np

from privpost.drawing import panels, style
from privpost.drawing.figures import figure

FLAT = "Beta(0.5, 0.5)"


@figure("oracle")
def oracle(oracle):
    """Where the normal approximation of the noise-aware Gibbs sampler breaks down (ours).

    Total variation between the law that the normal approximation leads to, by quadrature, and the exact noise-aware
    posterior, against n: one panel per model and prior, one colour per ε of pure DP. Bars are 95 % intervals over
    releases. The sampler's own draws, and their Monte Carlo noise, are in the table.
    """
    table = oracle.sort_values("model", key=lambda model: model != "binomial", kind="stable")
    priors = table.prior.astype(str).replace(FLAT, "Beta(½, ½)")
    table = table.assign(panel=table.model.str.capitalize() + ",\nprior " + priors)
    plot = panels.panels(
        table, "n", "total_variation", _ends, None, "panel", ("epsilon",), bars=True, share=(True, True),
        size=(style.WIDTH, 1.9), xscale="log", yscale="log", ylabel="Total variation\nto the exact posterior",
    )  # fmt: skip
    flat = table.prior == FLAT
    holds = table.total_variation[flat].max() > 0.1 and table.total_variation[~flat].max() < 0.02
    panels.message(plot.figure, "Only the prior Beta(½, ½) makes the normal approximation poor", holds)
    panels.legend(plot.figure)
    return plot.figure


def _ends(rows):
    low, high = panels.interval(rows.total_variation, rows.total_variation_sem)
    # A logarithmic axis has no 0.
    return np.maximum(low, rows.total_variation / 100), high
