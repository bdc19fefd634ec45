"""Accuracy of naive Bayes against ε (Zhang et al. 2016, figure 1)."""

from __future__ import annotations

from privpost.figures import multiples, style

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


def _curve(axes, table, method, variant, runs, **keywords):
    rows = table[(table.method == method) & (table.variant == variant) & (table.runs == runs)]
    rows = rows.sort_values("epsilon")
    style.error_band(axes, rows.epsilon, rows.accuracy_mean, rows.accuracy_sem, method=method, **keywords)


def draw(tables):
    """Return the figure: accuracy of all methods (left), and of the Fourier variants less Laplace's (right).

    The attribute-level reading of the sampler has ε for one attribute without children; a whole record costs |I| times
    as much. Bands are one standard error over repeats; on the right, of the paired difference.
    """
    import matplotlib.pyplot as plt

    table, pairs = tables["naive_bayes"], tables["naive_bayes_pairs"]
    figure, (left, right) = plt.subplots(1, 2, figsize=(style.TWO_COLUMNS, 2.9), width_ratios=[1.35, 1])
    multiples.horizontal(left, table[table.method == "non_private"].iloc[0].accuracy_mean)
    for method, curves in LINES.items():
        for variant, runs, keywords in curves:
            _curve(left, table, method, variant, runs, **keywords)
    left.set(xscale="log", ylim=(0.48, 1.0), ylabel="Accuracy on unseen examples")
    left.set_title("Posterior predictive accuracy")
    look = style.look("fourier")
    variants = (
        ("paper", "stealthy", "stealthy runs (t for 90 %)", {"linestyle": "-", "marker": look.marker}),
        ("paper", "all", "all runs, truncated (t for 90 %)", {"linestyle": "--", "marker": None}),
        ("bound", "all", "all runs, t = ln 10", {"linestyle": ":", "marker": None}),
        ("corrected", "all", "all runs, exact sensitivity", {"linestyle": "-.", "marker": "x"}),
    )
    shades = (look.color, look.color, look.color, "#117733")
    for (variant, runs, label, keywords), color in zip(variants, shades, strict=True):
        rows = pairs[(pairs.method == "fourier") & (pairs.variant == variant) & (pairs.runs == runs)]
        rows = rows[(rows.other == "laplace") & rows.epsilon.notna()].sort_values("epsilon")
        keywords |= {"method": "fourier", "color": color, "label": label, "alpha": 0.1}
        style.error_band(right, rows.epsilon, rows.difference_mean, rows.difference_sem, **keywords)
    right.axhline(0, color=style.look("laplace").color, linewidth=1)
    right.set(xscale="log", ylabel="Accuracy less Laplace's (paired)")
    right.set_title("Fourier variants against Laplace")
    right.set_ylim(-0.045, 0.015)
    right.legend(loc="lower right", fontsize=6)
    for axes in (left, right):
        axes.set_xlabel("Privacy budget ε (pure DP)")
        axes.set_xticks([0.1, 0.2, 0.5, 1, 2, 5, 10], labels=["0.1", "0.2", "0.5", "1", "2", "5", "10"])
        axes.minorticks_off()
    multiples.legend(figure, axes=left, ncols=4)
    return figure
