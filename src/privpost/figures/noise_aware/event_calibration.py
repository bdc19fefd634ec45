"""Calibration and predictive divergence of posteriors of event models under Laplace noise."""

from __future__ import annotations

from privpost.figures import style
from privpost.figures.foulds2016 import war_log_style as logs

CURVES = (
    ("laplace", "paper", "-", "Laplace, clipped (noise-naive)"),
    ("laplace", "corrected", ":", "Laplace, projected (noise-naive)"),
    ("gibbs", None, "-", "Laplace, noise-aware"),
    ("exact", None, ":", "Exact oracle"),
)


def draw(tables):
    """Return the figure: KS statistic (above) and divergence of the predictive law (below) against ε, by model and n.

    Grey: what a calibrated method stays below with probability 95 %. Bars: one standard error over trials.
    """
    import matplotlib.pyplot as plt

    table = tables["event_calibration"]
    listed = sorted(set(zip(table.model, table.n, strict=True)), key=lambda key: (key[0] == "hmm", key[1]))
    figure, panels = plt.subplots(
        2, len(listed), figsize=(style.TWO_COLUMNS, 3.9), sharex=True, sharey="row", squeeze=False
    )
    for (above, below), (model, n) in zip(panels.T, listed, strict=True):
        rows = logs.select(table, model=model, n=n)
        plain = logs.select(rows, method="non_private").iloc[0]
        look = style.look("non_private")
        above.axhspan(0, plain.ks_limit, color="#dddddd", label="95 % limit")
        above.axhline(plain.ks, color=look.color, linestyle=look.linestyle, label="Non-private")
        below.axhline(plain.kl_mean, color=look.color, linestyle=look.linestyle)
        for method, variant, line, label in CURVES:
            look = style.look(method)
            curve = logs.select(rows, method=method, variant=variant).sort_values("epsilon")
            keywords = {
                "color": look.color,
                "marker": look.marker if method != "gibbs" else "o",
                "linestyle": line,
                "markerfacecolor": look.color if line == "-" else "white",
            }
            above.plot(curve.epsilon, curve.ks, label=label, **keywords)
            if method != "exact":
                below.errorbar(curve.epsilon, curve.kl_mean, yerr=curve.kl_sem, **keywords)
        above.set_ylim(bottom=0)
        above.set_title(f"Naive Bayes, n = {n}" if model == "naive_bayes" else f"HMM, 2 states, n = {n}")
        below.set(xscale="log", yscale="log", xlabel="Budget ε (pure DP)")
        below.set_xticks([0.1, 1, 10], labels=["0.1", "1", "10"])
    panels[0, 0].set_ylabel("KS statistic of U")
    panels[1, 0].set_ylabel("KL of the predictive\nlaw [nats]")
    figure.legend(*panels[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=3)
    return figure
