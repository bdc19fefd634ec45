"""The figure of the study."""

import numpy as np

from privpost.drawing import panels
from privpost.drawing.figures import figure

NAMES = {"logistic": "Logistic", "probit": "Probit", "cloglog": "Compl. log-log"}
PANELS = {
    "All weights,\nB = 1 (paper)": (False, "share_of_paper"),
    "Weights in a ball,\nB = 1": (True, "share_of_paper"),
    "Weights in a ball,\nB of the ball (ours)": (True, "share_of_own"),
}


@figure("theorem16_links")
def links(theorem16):
    """Does the bound of theorem 16 hold for three links (Geumlek et al. 2017, section 4.2)?

    Exact Rényi divergence between two posteriors in a plane, by quadrature, over the bound: above 1 (red) the bound is
    broken. One point per number of records and order; those at the top have no finite divergence. With B = 1 the bound
    holds for logistic regression alone; with the slopes that a loss has in a ball of weights it holds for all three.
    Computed, not simulated: there are no bars.
    """
    canvas, (axes,) = panels.grid(1, 3, 2.4, sharey=True)
    links, top = panels.ordered(theorem16.link), 1e6
    for panel, (title, (ball, column)) in zip(axes, PANELS.items(), strict=True):
        rows = theorem16[theorem16.radius.notna() == ball]
        for place, link in enumerate(links):
            share = rows[rows.link == link][column].dropna().sort_values()
            x = place + np.linspace(-0.22, 0.22, len(share))
            y = share.replace(np.inf, top).to_numpy()
            for broken, color, marker in ((False, "#0072B2", "o"), (True, "#B2182B", "X")):
                panel.plot(x[(y > 1) == broken], y[(y > 1) == broken], marker, color=color)
        panel.axhspan(1, 3 * top, color="#B2182B", alpha=0.08, linewidth=0)
        panel.set(yscale="log", ylim=(1e-4, 3 * top), xlim=(-0.6, len(links) - 0.4), title=title)
        panel.set_xticks(range(len(links)), [NAMES.get(link, link) for link in links], rotation=30, ha="right")
        panel.set_yticks([1e-4, 1e-2, 1, 100, 1e4, top], labels=["10⁻⁴", "0.01", "1", "100", "10⁴", "∞"])
        panel.minorticks_off()
    axes[0].set_ylabel("Divergence ÷ bound")
    whole = theorem16[theorem16.radius.isna()].groupby("link").share_of_paper.max()
    holds = whole.get("logistic", 2) <= 1 and (whole.drop("logistic") > 1).all() and (theorem16.share_of_own.max() <= 1)
    panels.message(canvas, "With B = 1 theorem 16 holds for logistic regression alone", bool(holds))
    return canvas
