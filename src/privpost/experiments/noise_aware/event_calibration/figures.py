"""The figure of the study."""

from privpost.drawing import calibration, panels
from privpost.drawing.figures import figure

NAMES = {"paper": "clipped counts", "corrected": "projected counts"}
LINES = ("method", "variant")


TITLES = {
    ("naive_bayes", "multinomial"): "Naive Bayes",
    ("hmm", "poisson"): "HMM, Poisson",
    ("hmm", "multinomial"): "HMM",
}


@figure("event_calibration")
def events(event_calibration):
    """Calibration and predictive divergence of posteriors of event models under Laplace noise (ours).

    One column per model, law and number of events, on ε of pure DP; the HMM's noise-aware chain takes counts for
    Poisson, which holds in the column that says so. Above: KS distance of U, the quantile of the truth, over the limit
    below which 95 % of calibrated methods lie (grey). Below: KL divergence of the predictive law. Bars are 95 %
    intervals over trials. Noise-naive posteriors take the noisy counts, clipped or projected, for data.
    """
    table = calibration.over_limit(event_calibration).replace({"method": {"laplace": "naive"}})
    order = list(TITLES)
    columns = sorted(
        set(zip(table.model, table.law, table.n, strict=True)), key=lambda key: (order.index(key[:2]), key[2])
    )
    canvas, axes = panels.grid(2, len(columns), 3.4, sharex=True, sharey="row")
    looks = panels.looks(table, LINES, names=NAMES)
    for (above, below), (model, law, n) in zip(axes.T, columns, strict=True):
        rows = table[(table.model == model) & (table.law == law) & (table.n == n)]
        panels.curves(above, rows, "epsilon", "over", calibration.ends, LINES, looks, True)
        calibration.calibrated(above)
        panels.curves(below, rows, "epsilon", "kl_mean", "kl_sem", LINES, looks, True)
        above.set(xscale="log")
        above.set_title(f"{TITLES[model, law]}\nn = {n:,}")
        below.set(yscale="log", xlabel="ε (pure DP)")
    axes[0, 0].set_ylabel(calibration.LABEL)
    axes[1, 0].set_ylabel("KL of the predictive\nlaw [nats]")
    least = table[table.epsilon == table.epsilon.min()]
    aware, naive = table.over[table.method.isin(["gibbs", "exact"])], least.over[least.method == "naive"]
    holds = len(aware) and len(naive) and aware.max() < 1.5 and naive.min() > 2
    panels.message(canvas, "Noise-aware posteriors are calibrated, naive ones are not at small ε", bool(holds))
    panels.legend(canvas)
    return canvas
