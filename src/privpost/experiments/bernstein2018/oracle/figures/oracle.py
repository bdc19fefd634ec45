"""Where the normal approximation of the noise-aware Gibbs sampler breaks down (ours)."""

import numpy as np

from privpost.drawing import multiples
from privpost.evaluation.rows import select

COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7")


def draw(tables):
    """Return the figure: total variation between the noise-aware and the exact posterior against n, panels by prior.

    Lines: the law that the normal approximation leads to, by quadrature; bars: two standard errors over releases (cut
    where they would reach 0). Open markers: the sampler's pooled draws over equally likely bins, of bits against the
    exact posterior, of redacted sums against the normal model's; dotted: the Monte Carlo noise of these draws.
    """
    table = tables["oracle"].sort_values("n")
    columns = list(dict.fromkeys(zip(table.model, table.prior, strict=True)))
    columns.sort(key=lambda column: (column[0] != "binomial", column))
    figure, panels = multiples.grid(1, len(columns), 2.8, sharex=True, sharey=True)
    colors = dict(zip(sorted(table.epsilon.unique()), COLORS, strict=False))
    for axes, (model, prior) in zip(panels[0], columns, strict=True):
        for epsilon, rows in select(table, model=model, prior=prior).groupby("epsilon"):
            error, color = 2 * rows.total_variation_sem, colors[epsilon]
            low = np.minimum(error, 0.9 * rows.total_variation)
            axes.errorbar(rows.n, rows.total_variation, yerr=[low, error], color=color, marker="s")
            axes.plot(rows.n, rows.total_variation_sampled, "o", color=color, markerfacecolor="none")
            axes.plot(rows.n, rows.sampling_floor, ":", color=color, linewidth=0.8)
        axes.set(xscale="log", yscale="log", xlabel="records n", title=f"{model},\nprior {prior}")
    panels[0, 0].set_ylabel("total variation to\nthe exact posterior")
    handles = [multiples.entry(color=color, marker="s", label=f"ε = {epsilon:g}") for epsilon, color in colors.items()]
    draws = {"marker": "o", "linestyle": "", "markerfacecolor": "none", "label": "Gibbs draws, binned"}
    noise = {"linestyle": ":", "linewidth": 0.8, "label": "their Monte Carlo noise"}
    multiples.legend(figure, [*handles, *(multiples.entry(color="#444444", **look) for look in (draws, noise))])
    return figure
