"""Calibration of posteriors of event models under Laplace-released counts, on data drawn from the models' own prior."""

import math

from privpost.evaluation.calibration import LEVEL
from privpost.evaluation.multiplicity import critical_value
from privpost.evaluation.rows import select
from privpost.experiments import width_claims
from privpost.experiments.claim_helpers import above
from privpost.lab.claims import check, claim, number, numbers, word


def place(row) -> str:
    """Return the words for a row's setting."""
    variant = {"paper": ", clipped", "corrected": ", projected"}.get(row.variant, "")
    return f"{row.model}, n = {row.n}, epsilon = {row.epsilon:g}{variant}"


@claim(
    "N6",
    "ours",
    "On data from its prior the noise-aware posterior of event models is calibrated, and for naive Bayes the exact "
    "one.",
    f"tests of U in every row (model, n, epsilon) where those of the non-private posterior pass: {width_claims.BOTH}; "
    "{seen}; mean absolute difference of U, averaged over a chain's laws, from "
    "the exact posterior's at most 0.5 / sqrt(effective draws of a chain)",
)
def aware_calibrated(event_calibration):
    counted = width_claims.sound(event_calibration, "gibbs", ["model", "n"])
    yield width_claims.power(counted)
    yield from number("rows where the non-private posterior passes", len(counted))
    for model, part in counted.groupby("model"):
        yield from numbers(width_claims.evidence(part, "the noise-aware posterior", model))
    for row in select(event_calibration, method="gibbs").itertuples():
        yield from number(f"KS, {place(row)}", row.ks)
        yield from number(f"p-value, {place(row)}", row.p_value)
        yield from number(f"mean z², {place(row)}", row.z2)
        yield from number(f"p-value by z², {place(row)}", row.z2_p)
        if row.Index in counted.index:
            yield check(f"calibrated ({place(row)})", not counted.rejected[row.Index])
        if not math.isnan(row.oracle_difference):
            # No variable on [0, 1] has a standard deviation above 1/2.
            bound = 0.5 / math.sqrt(row.ess_median)
            yield from number(f"mean difference of U from the exact one, {place(row)}", row.oracle_difference)
            yield from number(f"its bound, {place(row)}", bound)
            yield check(f"U as by the exact oracle ({place(row)})", row.oracle_difference <= bound)


@claim(
    "N7",
    "ours",
    "Noisy counts taken for counts give posteriors that are not calibrated at the smallest epsilon, clipped or "
    "projected.",
    f"KS test of U: p-value below {LEVEL:g} / number of rows (model, n, variant) at the smallest epsilon",
    variant="paper, corrected",
)
def naive_miscalibrated(event_calibration):
    naive = select(event_calibration, method="laplace")
    naive = naive[naive.epsilon == naive.epsilon.min()]
    yield from number("95 % limit", naive.ks_limit.max())
    for row in naive.itertuples():
        yield check(f"not calibrated ({place(row)})", row.p_value < LEVEL / len(naive))
        yield from number(f"KS, {place(row)}", row.ks)


@claim(
    "N8",
    "ours",
    "On data from its prior the noise-aware predictive law is closer to the true one than that of noisy counts taken "
    "for counts.",
    "divergence of the posterior mean from the true law of a field, noise-naive minus noise-aware, paired over trials: "
    f"above {{limit:.2f}} standard errors (joint false-alarm rate {LEVEL:g}) at the smallest epsilon, below minus that "
    "nowhere",
    variant="paper, corrected",
)
def closer(event_calibration_pairs):
    pairs, limit = event_calibration_pairs, critical_value(len(event_calibration_pairs), LEVEL)
    yield word("limit", limit)
    yield from number("standard errors of a difference", limit)
    for row in pairs.itertuples():
        yield from number(f"gain in divergence, {place(row)}", row.kl_gain_mean, row.kl_gain_sem, of=place(row))
        yield check(f"not behind ({place(row)})", row.kl_gain_mean > -limit * row.kl_gain_sem)
        if row.epsilon == pairs.epsilon.min():
            yield check(f"ahead ({place(row)})", above(row, "kl_gain", limit))
