"""Calibration and predictive divergence of posteriors of event models under Laplace noise."""

from privpost.drawing import multiples
from privpost.evaluation.rows import select
from privpost.experiments.noise_aware import war_logs_panels

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
    table = tables["event_calibration"]
    listed = sorted(set(zip(table.model, table.n, strict=True)), key=lambda key: (key[0] == "hmm", key[1]))
    figure, panels = multiples.grid(2, len(listed), 3.9, sharex=True, sharey="row")
    for (above, below), (model, n) in zip(panels.T, listed, strict=True):
        rows = select(table, model=model, n=n)
        plain = select(rows, method="non_private").iloc[0]
        above.axhspan(0, plain.ks_limit, color="#dddddd", label="95 % limit")
        multiples.horizontal(above, plain.ks, label="Non-private")
        multiples.horizontal(below, plain.kl_mean)
        for method, variant, line, label in CURVES:
            curve = select(rows, method=method, variant=variant).sort_values("epsilon")
            look = {**war_logs_panels.look(method), "linestyle": line, "filled": line == "-"}
            multiples.bars(above, curve.epsilon, curve.ks, None, label=label, **look)
            if method != "exact":
                multiples.bars(below, curve.epsilon, curve.kl_mean, curve.kl_sem, **look)
        above.set_ylim(bottom=0)
        above.set_title(f"Naive Bayes, n = {n}" if model == "naive_bayes" else f"HMM, 2 states, n = {n}")
        below.set(xscale="log", yscale="log")
        below.set_xticks([0.1, 1, 10], labels=["0.1", "1", "10"])
    multiples.label_outer(panels, "Budget ε (pure DP)", ["KS statistic of U", "KL of the predictive\nlaw [nats]"])
    multiples.legend(figure, axes=panels[0, 0], ncols=3)
    return figure
