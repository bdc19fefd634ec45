"""Figure of theorem 16's bound for three link functions."""

import numpy as np
import pandas as pd

from privpost.drawing import facets, style
from privpost.drawing.figures import figure

LINKS = {"logistic": "Logistic", "probit": "Probit", "cloglog": "Complementary log-log"}
PANELS = {
    "All weights,\nB = 1 (paper)": (False, "share_of_paper"),
    "Weights in a ball,\nB = 1": (True, "share_of_paper"),
    "Weights in a ball,\nB of the ball (ours)": (True, "share_of_own"),
}
TOP = 1e6


@figure("theorem16_links")
def links(theorem16):
    """The bound of theorem 16 for three links (Geumlek et al. 2017, section 4.2).

    Shown is the exact Rényi divergence between two posteriors in a plane (by quadrature), divided by the bound. Above 1
    (shaded) the bound fails. With B = 1 the bound holds for logistic regression alone. If B is the largest slope of a
    loss in a ball of weights, the bound holds for all three links. The values are computed, not simulated, so there are
    no bars.
    """
    parts = [
        theorem16[theorem16.radius.notna() == ball].assign(panel=panel, share=theorem16[column].replace(np.inf, TOP))
        for panel, (ball, column) in PANELS.items()
    ]
    table = pd.concat(parts).dropna(subset="share")
    names = LINKS | {panel: panel for panel in PANELS}
    grid = facets.lines(
        facets.named(table, "order", hue="link", names=names), "n", "share", col="panel", hue="link", names=names,
        size=(style.WIDTH, 2.0),
        share=(True, True), xscale="log", yscale="log", ylim=(1e-4, 3 * TOP),
    )  # fmt: skip
    for axes, _ in facets.each(grid):
        axes.axhspan(1, 3 * TOP, color="#B2182B", alpha=0.08, linewidth=0, label="The bound is broken")
        axes.set_yticks([1e-4, 1e-2, 1, 100, 1e4, TOP], labels=["10⁻⁴", "0.01", "1", "100", "10⁴", "∞"])
    whole = theorem16[theorem16.radius.isna()].groupby("link").share_of_paper.max()
    holds = whole.get("logistic", 2) <= 1 and (whole.drop("logistic") > 1).all() and (theorem16.share_of_own.max() <= 1)
    answer = "Over all weights, with B = 1, theorem 16 holds for logistic regression alone" if holds else ""
    note = "B: bound of the loss's slope; theorem 16 is the paper's"
    return facets.finish(grid, answer, "n", "Rényi divergence ÷ bound", note=note)
