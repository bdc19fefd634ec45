"""Naive Bayes from Laplace-released counts: exact noise-aware posterior against the one that ignores the noise."""

import itertools

from privpost.evaluation.calibration import LEVEL
from privpost.evaluation.claims import Claim, from_checks
from privpost.experiments.noise_aware import score_claims as scores
from privpost.experiments.noise_aware.naive_bayes.study import PLACES
from privpost.experiments.noise_aware.score_claims import Comparison
from privpost.experiments.noise_aware.scores import NAIVE_VARIANTS


def claims(tables) -> list[Claim]:
    """Score N1 to N4."""
    pairs, calibration = tables["naive_bayes_pairs"], tables["naive_bayes_calibration"]
    # Calibration is a property of parameters that follow the prior.
    matched = calibration[calibration.concentration == 1]
    aware = scores.calibrated(matched, ["exact", "non_private"])
    return [
        scores.calibration_claim(
            "N1",
            "The noise-aware posterior of naive Bayes is calibrated at every n and epsilon.",
            "KS statistic of the quantiles of three parameters within the limit, where the true posterior's is, "
            f"joint false-alarm rate {LEVEL} over {len(aware)} tests; parameters drawn from the prior",
            aware,
            "exact",
            ["parameter", "n"],
            {"smallest p-value of the noise-aware posterior": aware[aware.method == "exact"].p_value.min()},
        ),
        _naive_miscalibrated(scores.calibrated(matched, ["naive"], NAIVE_VARIANTS)),
        scores.gain_claim(
            "N3",
            "Noise-aware predictions of naive Bayes have the higher held-out log-likelihood at every n and epsilon, of "
            "records and of labels, and are not less accurate; also where the parameters do not follow the prior.",
            f"paired differences to truncated and to least-squares counts beyond joint chance ({LEVEL} per "
            "metric and variant); accuracy not below by as much",
            pairs,
            [Comparison("log_likelihood"), Comparison("label_log_likelihood"), Comparison("accuracy", ahead=False)],
            PLACES,
        ),
        scores.gain_claim(
            "N4",
            "The noise-aware posterior of naive Bayes is closer to the true posterior than the one that ignores the "
            "noise, at every n and epsilon.",
            f"paired differences of MMD², mean over three parameters, beyond joint chance ({LEVEL} per variant)",
            pairs,
            [Comparison("mmd2", sign=-1)],
            PLACES,
        ),
    ]


def _naive_miscalibrated(naive) -> Claim:
    checks = {}
    for row in naive[naive.epsilon == naive.epsilon.min()].itertuples():
        place = f"{scores.NAIVE_NAMES[row.variant]}, {row.parameter}, n = {row.n}, epsilon = {row.epsilon:g}"
        checks[f"{place} rejected"] = row.rejected
    mean_ks = naive.groupby(["variant", "n", "epsilon"]).ks.mean()
    for variant, n in itertools.product(NAIVE_VARIANTS, sorted(naive.n.unique())):
        better = mean_ks[variant, n].iloc[-1] < mean_ks[variant, n].iloc[0]
        checks[f"{scores.NAIVE_NAMES[variant]}, n = {n}: better at the largest epsilon"] = better
    rejected = {
        f"{scores.NAIVE_NAMES[variant]}, n = {n}": part.rejected.mean()
        for (variant, n), part in naive.groupby(["variant", "n"])
    }
    return from_checks(
        "N2",
        "ours",
        "The posterior that ignores the noise is miscalibrated at small epsilon, from truncated and from "
        "least-squares counts; a larger epsilon helps.",
        f"KS statistic beyond the limit at the smallest epsilon (joint false-alarm rate {LEVEL} over "
        f"{len(naive)} tests); the mean over parameters at the largest epsilon below that at the smallest; parameters "
        "drawn from the prior",
        checks,
        {"share of tests that are rejected": rejected},
        variant="paper, consistent",
    )
