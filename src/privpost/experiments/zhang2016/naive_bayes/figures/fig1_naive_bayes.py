"""Accuracy of naive Bayes against ε (Zhang et al. 2016, figure 1)."""

from privpost.drawing import multiples, style
from privpost.evaluation.rows import select

LINES = {
    "laplace": [("paper", "all", {})],
    "fourier": [
        ("paper", "stealthy", {"label": "Fourier, stealthy runs"}),
        ("bound", "all", {"label": "Fourier, t = ln 10", "linestyle": ":", "marker": None}),
    ],
    "sampler_record": [("paper", "all", {"label": "Sampler (ε per record)"})],
    "sampler_attribute": [("paper", "all", {"label": "Sampler (ε per leaf attribute)"})],
    "map": [("mass", "all", {"label": "MAP (ours)"})],
}


# Of Fourier less Laplace: runs, label, and looks that print in grey too.
VARIANTS = (
    ("paper", "stealthy", "stealthy runs, t for 90 % (paper)", {"linestyle": "-", "marker": "D", "color": "#44AA99"}),
    ("paper", "all", "all runs, t for 90 %", {"linestyle": "--", "marker": "o", "color": "#0072B2"}),
    ("bound", "all", "all runs, t = ln 10", {"linestyle": ":", "marker": "^", "color": "#D55E00"}),
    ("corrected", "all", "all runs, exact sensitivity", {"linestyle": "-.", "marker": "x", "color": "#332288"}),
)


def draw(tables):
    """Return the figure: accuracy of all methods (left), the Fourier variants less Laplace (middle), and how much it is
    that of one data set (right).

    The attribute-level reading of the sampler has ε for one attribute without children; a whole record costs |I| times
    as much. Bands are one standard error over repeats, in the middle of the paired difference. On the right, the
    standard deviation over data sets of a mean over 100 splits of one: what a figure from one data set hides.
    """
    table, pairs, spread = tables["naive_bayes"], tables["naive_bayes_pairs"], tables["naive_bayes_spread"]
    figure, (panels,) = multiples.grid(1, 3, 3.3, width_ratios=[1.2, 1, 0.8])
    left, middle, right = panels
    multiples.horizontal(left, table[table.method == "non_private"].iloc[0].accuracy_mean)
    for method, curves in LINES.items():
        for variant, runs, look in curves:
            rows = select(table, method=method, variant=variant, runs=runs).sort_values("epsilon")
            style.error_band(left, rows.epsilon, rows.accuracy_mean, rows.accuracy_sem, method=method, **look)
    left.set(ylim=(0.48, 1.0), ylabel="Accuracy on unseen examples", title="Posterior predictive")
    for variant, runs, label, keywords in VARIANTS:
        rows = select(pairs, method="fourier", variant=variant, runs=runs, other="laplace")
        rows = rows.dropna(subset="epsilon").sort_values("epsilon")
        line = {"method": "fourier", "label": label, "alpha": 0.15, "markersize": 2.5, **keywords}
        style.error_band(middle, rows.epsilon, rows.difference_mean, rows.difference_sem, **line)
    middle.axhline(0, color=style.look("laplace").color, linewidth=1)
    middle.set(ylabel="Accuracy less Laplace's (paired)", ylim=(-0.052, 0.012), title="Fourier against Laplace")
    middle.legend(loc="lower center", fontsize=5.5)
    for method in ("non_private", "laplace", "fourier", "sampler_record", "sampler_attribute"):
        rows = select(spread, method=method, variant="paper").sort_values("epsilon")
        right.plot(rows.epsilon, rows.accuracy_spread, **style.look(method).line())
    right.set(ylim=(0, None), ylabel="Standard deviation over data sets", title="One data set's accuracy")
    for axes in panels:
        axes.set(xscale="log", xlabel="ε (pure DP)")
        axes.set_xticks([0.1, 1, 10], labels=["0.1", "1", "10"])
        axes.minorticks_off()
    multiples.legend(figure, axes=left, ncols=4)
    return figure
