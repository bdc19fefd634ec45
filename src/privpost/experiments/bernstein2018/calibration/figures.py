"""The figures of the study."""

import numpy as np

from privpost.drawing import calibration as uniform
from privpost.drawing import facets, panels, style
from privpost.drawing.figures import figure
from privpost.experiments.bernstein2018 import models

# The two noise-aware posteriors coincide: the one without a chain is drawn around Gibbs's.
RING = {"exact": {"linestyle": "", "marker": "o", "markersize": 6, "markerfacecolor": "none"}}
NAMES = {
    "public": "public bounds", "true_theta": "bounds from θ (not private)",
    "multinomial": "dependent segments", "independent": "independent segments",
}  # fmt: skip


@figure("fig1a_ks")
def distances(calibration):
    """Calibration as the Kolmogorov-Smirnov distance against n (Bernstein and Sheldon 2018, figure 1a).

    Largest distance of the distribution of U, the quantile of the true parameter in its posterior, from uniform, over
    the limit below which 95 % of calibrated methods lie (1.358/√M for M trials; grey): one column per model, the
    paper's three first, one row per ε of pure DP; for the multinomial its first category. Bars are 95 % intervals
    (Dvoretzky, Kiefer and Wolfowitz). Rings: the noise-aware posterior without a chain. Hollow: not private, as the
    naive method reads the noisy sum of all records, redacted or not, or as bounds are quantiles at the true θ.
    """
    table = models.shown(models.titled(calibration))
    plot = panels.panels(
        uniform.over_limit(table), "n", "over", uniform.ends, "epsilon", "panel", look=RING, bars=True,
        solid="solid", share=(True, True), ylabel=uniform.LABEL, xscale="log", size=(5.5, 1.5),
    )  # fmt: skip
    for axes, _, _ in plot:
        uniform.calibrated(axes)
    # The posterior without a chain repeats what Gibbs's says.
    private = table[table.solid | (table.method == "naive")]
    uniform.message(plot.figure, uniform.over_limit(private[private.method != "exact"]), "Gibbs with public bounds")
    models.legend(plot.figure)
    return plot.figure


@figure("fig1b_ecdf")
def functions(ecdf, calibration):
    """Empirical distribution functions of U (Bernstein and Sheldon 2018, figure 1b).

    Above, the paper's figure: Pr(U ≤ u), one panel per model at one n and ε of pure DP; calibrated methods hide each
    other on the diagonal. Below, the same less u, enlarged, with the simultaneous 95 % band of a calibrated method
    (Säilynoja, Bürkner and Vehtari 2022): a curve that leaves it is not calibrated. The multinomial has its first
    category. The naive method of redacted sums, and bounds from θ, are covered by no ε, as in figure 1a.
    """
    keys = ["model", "variant", "method", "parameter"]
    facts = calibration[[*keys, "private", "uses_private_metadata", "n_trials"]].drop_duplicates(keys)
    table = models.shown(models.titled(ecdf.merge(facts, "left", keys)))
    from matplotlib.patches import Patch

    titles = list(dict.fromkeys(table.panel))
    canvas, axes = panels.grid(2, len(titles), 2.9, sharex=True, sharey="row", height_ratios=(2, 3))
    looks = {key: {**look, "marker": "", "linewidth": 1} for key, look in panels.looks(table).items()}
    outside = []
    for place, (above, below, title) in enumerate(zip(*axes, titles, strict=True)):
        rows = table[table.panel == title]
        panels.curves(above, rows, "u", "ecdf", None, ("method",), looks)
        uniform.less_u(below, rows, int(rows.n_trials.max()), looks=looks, height=0.06)
        outside += [(name, uniform.share_outside(part)) for name, part in rows.groupby("method")]
        above.set(title=title, ylim=(0, 1), yticks=[0, 0.5, 1])
        if not place:
            above.set_ylabel("Pr(U ≤ u)")
            below.set_ylabel("Pr(U ≤ u) − u,\nenlarged")
        below.set_xticks([0, 0.5, 1], labels=["0", "½", "1"])
        below.set_xlabel("")
    private = table[table.epsilon.notna()].iloc[0]
    canvas.supxlabel(f"u, at n = {private.n:,} and ε = {private.epsilon:g} (pure DP)", fontsize=8)
    exact, naive = ([share for name, share in outside if name == method] for method in ("exact", "naive"))
    holds = max(exact, default=1) == 0 and min(naive, default=0) > 0.5
    panels.message(canvas, "Exact noise-aware posteriors stay in the band, naive ones do not", holds)
    panels.legend(canvas, [Patch(color="#dddddd", label="Calibrated (95 %, simultaneous)")])
    return canvas


@figure("families")
def families(families):
    """Calibration of noise-aware posteriors of further families (ours).

    KS distance of U over the limit below which 95 % of calibrated methods lie (grey), one row per family, one column
    per ε of pure DP, a marker for each number of records (small n above); public bounds, and of categories the first.
    Hollow: the naive method of redacted sums, which reads the sum of all records, covered by
    no ε.
    """
    from matplotlib.patches import Patch

    table = families.replace({"model": {"multinomial": "10 categories"}})
    table = uniform.over_limit(models.shown(models.titled(table)))
    titles = table.model.map(lambda name: models.MODELS.get(name, name.capitalize()).replace("\n", " "))
    table = table.assign(row=titles + table.n.map(", n = {:,}".format)).sort_values(["row", "n"])
    label = uniform.LABEL.replace("\n", " ")
    grid = facets.dots(
        facets.named(table), "over", "row", col="epsilon", solid="solid", names={row: row for row in table.row},
        size=(style.WIDTH, 0.2), xscale="log", xlim=(0.15, None),
    )  # fmt: skip
    for axes, _ in facets.each(grid):
        facets.band(axes, 1e-6, 1, across=False)
    hollow = facets.entry(marker="s", markerfacecolor="white", linestyle="", label="Hollow: no ε covers it")
    handles = [hollow, Patch(color=style.BAND, label="Calibrated (95 %)")]
    return facets.finish(grid, uniform.answer(table), label, "", handles)


def ends(rows):
    """Return the ends of 95 % intervals of mean z², as of a χ² law scaled by it."""
    half = 1.96 * np.sqrt(2 / rows.z2_values)
    return rows.z2 * (1 - half), rows.z2 * (1 + half)


@figure("truncation")
def truncation(truncation):
    """Calibration under redaction, by bounds and by the covariance between segments (ours).

    Mean z² of the true θ in its posterior, 1 (grey: 95 % of its values) where the posterior's width is right and above
    where it is too narrow, for exponential records: one row per choice of bounds, one column per ε of pure DP; solid
    lines take the counts of segments as dependent, which they are, dashed ones as independent, as the paper does. Bars
    are 95 % intervals. Bounds from θ are private metadata, which no ε covers.
    """
    # Without a chain, or noise, there are no segments.
    table = truncation.assign(segments=truncation.segments.where(truncation.method == "gibbs"))
    table = table.drop_duplicates(["bounds", "segments", "method", "epsilon", "n"])
    plot = panels.panels(
        table, "n", "z2", ends, "bounds", "epsilon", ("method", "segments"), names=NAMES, bars=True,
        share=(True, True), size=(5.5, 1.5), ylabel="Mean z² of θ", xscale="log", yscale="log",
        yticks=(1, 1.5, 2), yticklabels=("1", "1.5", "2"),
    )  # fmt: skip
    for axes, _, _ in plot:
        axes.axhspan(*(1 + side * 1.96 * np.sqrt(2 / table.z2_values.min()) for side in (-1, 1)), color=style.BAND)
        axes.minorticks_off()
    last = table[table.n == table.n.max()].groupby("method").z2
    holds = last.min().get("gibbs", 0) > 1.08 and last.max().get("exact", 9) < 1.08
    panels.message(plot.figure, "Gibbs is too narrow at large n, the exact posterior is not", holds)
    panels.legend(plot.figure)
    return plot.figure
