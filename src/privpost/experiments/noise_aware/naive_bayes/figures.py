"""The figures of the study."""

from privpost.drawing import calibration, panels, style
from privpost.drawing.figures import figure
from privpost.evaluation.rows import select
from privpost.experiments.noise_aware import score_panels


@figure("naive_bayes")
def losses(naive_bayes, naive_bayes_calibration):
    """Predictions and posteriors of naive Bayes from Laplace-released counts, noise-aware against noise-naive (ours).

    On ε of pure DP, for the fewest records and parameters drawn from the prior of the posteriors, Beta(1, 1); other
    numbers and laws, which look alike, are in the table. Accuracy and log-likelihood are losses against the
    non-private posterior; MMD is the root of the mean square over three parameters and all repeats. Bars are 95 %
    intervals. Log-likelihoods of posteriors that coincide lie on each other.
    """
    keys = ["n", "concentration"]
    table = score_panels.losses(_matched(naive_bayes), _matched(naive_bayes_calibration), keys)
    return score_panels.draw(table[table.n == table.n.min()], "n", ["accuracy", "log_likelihood", "mmd2"], 1.8)


@figure("naive_bayes_calibration")
def distances(naive_bayes_calibration, naive_bayes_ecdf):
    """Calibration of naive Bayes posteriors from Laplace-released counts, noise-aware against noise-naive (ours).

    U is the quantile of the class probability in its posterior, parameters drawn from the prior. Left: its KS distance
    from uniform over the limit below which 95 % of calibrated methods lie (grey), for the fewest records, on ε of pure
    DP; bars are 95 % intervals. Right: at the ε next to 1 the distribution function of U less u with the simultaneous
    95 % band of a calibrated method. Other parameters and numbers of records are in the table.
    """
    table, functions = _matched(naive_bayes_calibration), _matched(naive_bayes_ecdf)
    table = calibration.over_limit(table[table.n == table.n.min()])
    shown = table.parameter.iloc[0]
    table = table[table.parameter == shown]
    looks = panels.looks(table, score_panels.LINES, names=score_panels.NAMES)
    canvas, ((left, right),) = panels.grid(1, 2, 2.2)
    panels.curves(left, table, "epsilon", "over", calibration.ends, score_panels.LINES, looks, True)
    calibration.calibrated(left)
    left.set(xscale="log", xlabel=style.AXES["epsilon"], ylabel=calibration.LABEL)
    left.set_title(f"n = {table.n.min()}, probability of {shown}")
    functions = select(functions, n=table.n.min(), parameter=shown)
    calibration.less_u(right, functions, int(table.n_trials.max()), score_panels.LINES, looks)
    right.set(title=f"ε = {functions.epsilon.max():.2g}", ylabel="Pr(U ≤ u) − u")
    calibration.message(canvas, table)
    panels.legend(canvas)
    return canvas


def _matched(table):
    """Return the rows whose parameters are drawn from the posteriors' own prior."""
    return table[table.concentration == 1]
