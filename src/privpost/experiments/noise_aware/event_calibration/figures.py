"""The figure of the study."""

from privpost.drawing import calibration, panels
from privpost.drawing.figures import figure

NAMES = {"paper": "clipped counts", "corrected": "projected counts"}
LINES = ("method", "variant")


@figure("event_calibration")
def events(event_calibration):
    """Calibration and predictive divergence of posteriors of event models under Laplace noise (ours).

    One column per model and number of events, on ε of pure DP. Above: KS distance of U, the quantile of the truth, over
    the limit below which 95 % of calibrated methods lie (grey). Below: KL divergence of the predictive law. Bars are
    95 % intervals over trials. Noise-naive posteriors take the noisy counts, clipped or projected, for data.
    """
    table = calibration.over_limit(event_calibration).replace({"method": {"laplace": "naive"}})
    columns = sorted(set(zip(table.model, table.n, strict=True)), key=lambda key: (key[0] == "hmm", key[1]))
    figure, axes = panels.grid(2, len(columns), 3.4, sharex=True, sharey="row")
    looks = panels.looks(table, LINES, names=NAMES)
    for (above, below), (model, n) in zip(axes.T, columns, strict=True):
        rows = table[(table.model == model) & (table.n == n)]
        panels.curves(above, rows, "epsilon", "over", calibration.ends, LINES, looks, True)
        calibration.calibrated(above)
        panels.curves(below, rows, "epsilon", "kl_mean", "kl_sem", LINES, looks, True)
        above.set(xscale="log", title=f"{'HMM, 2 states' if model == 'hmm' else 'Naive Bayes'}, n = {n:,}")
        below.set(yscale="log", xlabel="ε (pure DP)")
    axes[0, 0].set_ylabel(calibration.LABEL)
    axes[1, 0].set_ylabel("KL of the predictive\nlaw [nats]")
    last = table[(table.epsilon == table.epsilon.min())].groupby("method").over
    holds = last.max().get("gibbs", 9) < 1.2 and last.min().get("naive", 0) > 2
    panels.message(figure, "Noise-aware posteriors are calibrated, naive ones are not at small ε", holds)
    panels.legend(figure)
    return figure
