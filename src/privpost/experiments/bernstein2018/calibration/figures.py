"""Figures of calibration: KS distances, distribution functions and widths of posteriors."""

import numpy as np
import pandas as pd

from privpost.drawing import calibration as uniform
from privpost.drawing import facets, style
from privpost.drawing.figures import figure
from privpost.experiments.bernstein2018 import models

PARTS = {"ecdf": "Pr(U ≤ u)", "apart": "Pr(U ≤ u) − u"}
SEGMENTS = {"multinomial": "dependent counts", "independent": "independent counts (paper)"}


@figure("fig1a_ks")
def distances(calibration):
    """Calibration as the Kolmogorov-Smirnov distance against n (Bernstein and Sheldon 2018, figure 1a).

    U is the quantile of the true parameter in its posterior. Shown is the largest distance of the distribution of U
    from uniform, divided by the limit that 95 % of calibrated methods stay below (1.358/√M for M trials; grey). Columns
    are models, the paper's three first, and rows are ε. The multinomial is shown by its first category. Hollow points
    are not private: the naive method reads the noisy sum of all records, even redacted ones, or the bounds depend on
    the true θ. The posterior computed without MCMC (exact) agrees with Gibbs's. KS hardly detects a wrong posterior
    width; z², in the table, does.
    """
    table = uniform.over_limit(models.shown(models.titled(calibration)))
    grid = facets.lines(
        facets.named(table), "n", "over", row="epsilon", col="panel", solid="solid", size=(style.WIDTH, 1.5),
        share=(True, True), xscale="log", yscale="log", ylim=(0.15, 1.5 * table.over.max()),
    )  # fmt: skip
    private = table[(table.solid | (table.method == "naive")) & (table.method != "exact")]
    answer = uniform.answer(private, "private Gibbs")
    hollow = uniform.band(grid, hollow=True)
    return facets.finish(grid, answer, "n", uniform.LABEL, hollow, note=models.FROM_THETA)


@figure("fig1b_ecdf")
def functions(ecdf, calibration):
    """Empirical distribution functions of U (Bernstein and Sheldon 2018, figure 1b).

    U is the quantile of the true parameter in its posterior. Above is the paper's figure: Pr(U ≤ u), one panel per
    model at one n and ε. Calibrated methods hide each other on the diagonal. Below is Pr(U ≤ u) − u, enlarged, with the
    simultaneous 95 % band of a calibrated method (grey; Säilynoja, Bürkner and Vehtari 2022). A method whose curve
    leaves the band is not calibrated. Curves of naive methods leave the panel. The multinomial is shown by its first
    category. Bounds from θ, and the naive method of redacted sums, are not private.
    """
    keys = ["model", "variant", "method", "parameter"]
    facts = calibration[[*keys, "private", "uses_private_metadata", "n_trials"]].drop_duplicates(keys)
    table = models.shown(models.titled(ecdf.merge(facts, "left", keys))).drop(columns="epsilon")
    both = pd.concat([table.assign(part="ecdf", y=table.ecdf), table.assign(part="apart", y=table.ecdf - table.u)])
    grid = facets.lines(
        facets.named(both), "u", "y", row="part", col="panel", names=PARTS, size=(style.WIDTH, 1.3),
        share=(True, "row"), markers=False, xticks=[0, 0.5, 1],
    )  # fmt: skip
    low, high = uniform.bounds(table)
    for axes, rows in facets.each(grid):
        if rows.part.iloc[0] == "apart":
            axes.fill_between(low.index, low - low.index, high - low.index, color=style.BAND, linewidth=0, zorder=0)
            axes.set_ylim(-0.06, 0.06)
    outside = ((table.ecdf < table.u.map(low)) | (table.ecdf > table.u.map(high))).groupby([table.method, table.panel])
    share = outside.mean().groupby("method")
    holds = share.max().get("exact", 1) == 0 and share.min().get("naive", 0) > 0.5
    words = "Exact noise-aware posteriors stay in the band, naive ones do not" if holds else ""
    xlabel, note = f"u, at {facets.fixed(ecdf, 'n', 'epsilon')}", "U: quantile of the true θ in its posterior\n"
    return facets.finish(grid, words, xlabel, "", uniform.band(None), note=note + models.FROM_THETA)


@figure("truncation")
def truncation(truncation):
    """Width of posteriors for exponential records, given redacted sums with public bounds (ours).

    z² is the mean squared error of the posterior mean over the posterior variance. A posterior of the right width has
    z² near 1 (grey: 95 % of its values), and a posterior that is too narrow has a larger z². Gibbs sampling takes the
    counts of segments as dependent, which they are, or as independent, as the paper does. Bars are 95 % intervals.
    """
    # Only the Gibbs sampler uses segments.
    table = truncation.assign(segments=truncation.segments.where(truncation.method == "gibbs"))
    table = table[table.bounds == "public"].drop_duplicates(["segments", "method", "epsilon", "n"])
    half = style.NORMAL_95 * np.sqrt(2 / table.z2_values)
    grid = facets.lines(
        facets.named(table.assign(low=table.z2 * (1 - half), high=table.z2 * (1 + half)), "segments", names=SEGMENTS),
        "n", "z2", ("low", "high"), col="epsilon", share=(True, True), size=(style.WIDTH, 1.8), xscale="log",
        yscale="log", yticks=[1, 1.5, 2], yticklabels=["1", "1.5", "2"],
    )  # fmt: skip
    for axes, _ in facets.each(grid):
        facets.band(axes, 1 - half.max(), 1 + half.max())
        axes.minorticks_off()
    last = table[table.n == table.n.max()].groupby("method").z2
    holds = last.min().get("gibbs", 0) > 1.08 and last.max().get("exact", 9) < 1.08
    words = "Gibbs is too narrow at large n, the exact posterior is not" if holds else ""
    ylabel = "Squared error ÷ posterior\nvariance (mean z²)"
    note = "Exponential model; its redacted sum has public bounds"
    return facets.finish(grid, words, "n", ylabel, uniform.band(None), note=note)
