"""Claims on naive Bayes from counts with Laplace noise: noise-aware against noise-naive posteriors."""

from privpost.evaluation.calibration import LEVEL
from privpost.evaluation.rows import select
from privpost.experiments import width_claims
from privpost.experiments.noise_aware.naive_bayes.study import PLACES
from privpost.experiments.noise_aware.score_claims import NAIVE_NAMES, Comparison, calibrated, gained, uniform
from privpost.lab.claims import check, claim, number, word


@claim(
    "N1",
    "ours",
    "The noise-aware posterior of naive Bayes is calibrated at every n and epsilon.",
    "quantiles of the class and of an attribute given either class, in {tests} rows, where the true posterior "
    f"passes: {width_claims.BOTH}; all attributes pass, too; {{seen}}; parameters drawn from the prior",
)
def aware_calibrated(naive_bayes_calibration):
    # Calibration is defined only if the true parameters follow the prior.
    rows = select(naive_bayes_calibration, concentration=1, variant="paper")
    yield from uniform(rows, "exact", ["parameter", "n"])


@claim(
    "N2",
    "ours",
    "The posterior that ignores the noise is miscalibrated at small epsilon, both from truncated and from "
    "least-squares counts. A larger epsilon helps.",
    f"KS statistic beyond the limit at the smallest epsilon (joint false-alarm rate {LEVEL} over {{tests}} tests); the "
    "mean over parameters at the largest epsilon below that at the smallest; parameters drawn from the prior",
    variant="paper, consistent",
)
def naive_miscalibrated(naive_bayes_calibration):
    naive = calibrated(select(naive_bayes_calibration, concentration=1), ["naive"], list(NAIVE_NAMES))
    yield word("tests", len(naive))
    for row in naive[naive.epsilon == naive.epsilon.min()].itertuples():
        place = f"{NAIVE_NAMES[row.variant]}, {row.parameter}, n = {row.n}, epsilon = {row.epsilon:g}"
        yield check(f"{place} rejected", row.rejected)
    shares = {}
    for (variant, n), part in naive.groupby(["variant", "n"]):
        name, mean = f"{NAIVE_NAMES[variant]}, n = {n}", part.groupby("epsilon").ks.mean()
        yield check(f"{name}: better at the largest epsilon", mean.iloc[-1] < mean.iloc[0])
        shares[name] = part.rejected.mean()
    yield from number("share of tests that are rejected", shares)


@claim(
    "N3",
    "ours",
    "Noise-aware predictions of naive Bayes have a higher held-out log-likelihood of records and of labels at "
    "every n and epsilon, and are not less accurate. This holds even if the parameters do not follow the prior.",
    f"paired differences to truncated and to least-squares counts beyond joint chance ({LEVEL} per metric and "
    "variant); accuracy not below by as much",
    variant="paper, consistent",
)
def predictions(naive_bayes_pairs):
    scores = [Comparison("log_likelihood"), Comparison("label_log_likelihood"), Comparison("accuracy", ahead=False)]
    return gained(naive_bayes_pairs, scores, PLACES)


@claim(
    "N4",
    "ours",
    "The noise-aware posterior of naive Bayes is closer to the true posterior than the one that ignores the noise, at "
    "every n and epsilon.",
    f"paired differences of MMD², mean over three parameters, beyond joint chance ({LEVEL} per variant)",
    variant="paper, consistent",
)
def distance(naive_bayes_pairs):
    return gained(naive_bayes_pairs, [Comparison("mmd2", sign=-1)], PLACES)
