"""The figures of the study."""

from privpost.drawing import calibration as uniform
from privpost.drawing import panels
from privpost.drawing.figures import figure
from privpost.experiments.bernstein2018 import models

# The two noise-aware posteriors coincide: the one without a chain is drawn around Gibbs's.
RING = {"exact": {"linestyle": "", "marker": "o", "markersize": 6, "markerfacecolor": "none"}}


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
    words = "At small ε naive posteriors fail; with public bounds Gibbs passes"
    uniform.message(plot.figure, uniform.over_limit(private[private.method != "exact"]), words)
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
