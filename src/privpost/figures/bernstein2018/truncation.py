"""Calibration under redaction, by bounds and by the covariance between segments (ours)."""

from __future__ import annotations

from privpost.figures import multiples, style

LOOKS = {
    ("public", "multinomial"): ("#009E73", "o", "-", "public bounds, dependent segments (corrected)"),
    ("public", "independent"): ("#D55E00", "s", "--", "public bounds, independent segments"),
    ("true_theta", "independent"): ("#0072B2", "D", "-.", "bounds from θ, independent segments (paper)"),
    ("true_theta", "multinomial"): ("#CC79A7", "^", ":", "bounds from θ, dependent segments"),
}


def draw(tables):
    """Return the figure: KS statistic of the Gibbs sampler's U against n, one panel per ε; exponential records.

    Black: the true posterior. Grey: within the 95 % limit 1.358/√M of M trials. Bounds from θ are private metadata.
    """
    table = tables["truncation"].sort_values("n")
    reference = table[(table.method == "non_private") & (table.variant == table.variant.iloc[0])]
    epsilons = sorted(table.epsilon.dropna().unique())
    figure, grid = multiples.grid(1, len(epsilons), 2.7, width=style.TWO_COLUMNS * 0.8, sharex=True, sharey=True)
    for axes, epsilon in zip(grid[0], epsilons, strict=True):
        axes.axhspan(0, table.ks_limit.iloc[0], color="#dddddd", linewidth=0, zorder=0, label="within the 95 % limit")
        for key, (color, marker, line, label) in LOOKS.items():
            rows = table[(table.bounds == key[0]) & (table.segments == key[1]) & (table.epsilon == epsilon)]
            if len(rows):
                axes.plot(rows.n, rows.ks, color=color, marker=marker, linestyle=line, label=label)
        axes.plot(reference.n, reference.ks, **style.look("non_private").line())
        axes.set(xscale="log", xlabel="records n", title=f"{epsilon:g}-DP")
        axes.set_ylim(0, 1.1 * table.ks.max())
    grid[0, 0].set_ylabel("KS statistic of U (Gibbs)")
    multiples.legend(figure, axes=grid[0, 0], ncols=2)
    return figure
