"""Naive Bayes from Laplace-released counts: exact noise-aware posterior against the one that ignores the noise."""

from __future__ import annotations

from privpost.claims.noise_aware import scores
from privpost.evaluation.claims import Claim, from_checks
from privpost.evaluation.multiplicity import FALSE_ALARM
from privpost.studies.noise_aware.naive_bayes import PLACES
from privpost.studies.noise_aware.scores import NAIVE_VARIANTS


def claims(tables) -> list[Claim]:
    """Score N1 to N4."""
    pairs, calibration = tables["naive_bayes_pairs"], tables["naive_bayes_calibration"]
    # Calibration is a property of parameters that follow the prior.
    matched = calibration[calibration.concentration == 1]
    aware = scores.calibrated(matched, ["exact", "non_private"])
    naive = scores.calibrated(matched, ["naive"], NAIVE_VARIANTS)
    smallest = naive[naive.epsilon == naive.epsilon.min()]
    mean_ks = naive.groupby(["variant", "n", "epsilon"]).ks.mean()
    joint = f"joint false-alarm rate {FALSE_ALARM}"
    against = {"variant": "paper, consistent"}
    predictions = (
        scores.Comparison("log_likelihood"),
        scores.Comparison("label_log_likelihood"),
        scores.Comparison("accuracy", ahead=False),
    )
    predicted = scores.gain_checks(pairs, predictions, PLACES)
    distance = scores.gain_checks(pairs, [scores.Comparison("mmd2", sign=-1)], PLACES)
    return [
        scores.calibration_claim(
            "N1",
            "The noise-aware posterior of naive Bayes is calibrated at every n and epsilon.",
            "KS statistic of the quantiles of three parameters within the limit, where the true posterior's is, "
            f"{joint} over {len(aware)} tests; parameters drawn from the prior",
            aware,
            "exact",
            ["parameter", "n"],
            {"smallest p-value of the noise-aware posterior": float(aware[aware.method == "exact"].p_value.min())},
        ),
        from_checks(
            "N2",
            "ours",
            "The posterior that ignores the noise is miscalibrated at small epsilon, from truncated and from "
            "least-squares counts; a larger epsilon helps.",
            f"KS statistic beyond the limit at the smallest epsilon ({joint} over {len(naive)} tests); the mean over "
            "parameters at the largest epsilon below that at the smallest; parameters drawn from the prior",
            {
                **{
                    f"{scores.NAIVE_NAMES[row.variant]}, {row.parameter}, n = {row.n}, epsilon = {row.epsilon:g} "
                    "rejected": row.rejected
                    for row in smallest.itertuples()
                },
                **{
                    f"{scores.NAIVE_NAMES[variant]}, n = {n}: better at the largest epsilon": bool(
                        mean_ks[variant, n].iloc[-1] < mean_ks[variant, n].iloc[0]
                    )
                    for variant in NAIVE_VARIANTS
                    for n in sorted(naive.n.unique())
                },
            },
            {
                "share of tests that are rejected": {
                    f"{scores.NAIVE_NAMES[variant]}, n = {n}": float(part.rejected.mean())
                    for (variant, n), part in naive.groupby(["variant", "n"])
                }
            },
            **against,
        ),
        from_checks(
            "N3",
            "ours",
            "Noise-aware predictions of naive Bayes have the higher held-out log-likelihood at every n and epsilon, of "
            "records and of labels, and are not less accurate; also where the parameters do not follow the prior.",
            f"paired differences to truncated and to least-squares counts beyond joint chance ({FALSE_ALARM} per "
            "metric and variant); accuracy not below by as much",
            *predicted[:2],
            whys=predicted[2:],
            **against,
        ),
        from_checks(
            "N4",
            "ours",
            "The noise-aware posterior of naive Bayes is closer to the true posterior than the one that ignores the "
            "noise, at every n and epsilon.",
            f"paired differences of MMD², mean over three parameters, beyond joint chance ({FALSE_ALARM} per variant)",
            *distance[:2],
            whys=distance[2:],
            **against,
        ),
    ]
