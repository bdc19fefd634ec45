"""Claims on calibration of event models that read counts with Laplace noise. The data come from two laws."""

import math

from privpost.evaluation.calibration import LEVEL
from privpost.evaluation.multiplicity import critical_value
from privpost.evaluation.rows import select
from privpost.experiments import width_claims
from privpost.experiments.claim_helpers import above
from privpost.experiments.noise_aware.event_calibration.study import AWARE
from privpost.lab.claims import check, claim, number, numbers, word

# The law that counts are drawn from: the law of the noise-aware chain, or the law of the hidden Markov model.
LAWS = {"poisson": "its own law", "multinomial": "the model's law"}


def place(row) -> str:
    """Return a row's model, law, n, ε and variant as text."""
    variant = {"paper": ", clipped", "corrected": ", projected"}.get(row.variant, "")
    return f"{row.model}, {row.law}, n = {row.n}, epsilon = {row.epsilon:g}{variant}"


@claim(
    "N6",
    "ours",
    "On data from the law that it assumes the noise-aware posterior of event models is calibrated, both the exact "
    "one of naive Bayes and that of hidden Markov models, which takes counts for Poisson. On the models' own law, "
    "in which a cell's fields share its events and n is public, the latter is calibrated too, and as wide as the "
    "exact one.",
    f"tests of U in every row (law, model, n, epsilon) where those of the non-private posterior pass: "
    f"{width_claims.BOTH}; {{seen}}; mean absolute difference of U, by draws, from the exact posterior's at most "
    f"0.5 / sqrt(effective draws); standard deviation within {width_claims.GOAL:.0%} of the exact one",
)
def aware_calibrated(event_calibration):
    table = event_calibration.replace({"method": {"exact": "gibbs"}})
    counted = width_claims.sound(table, "gibbs", ["law", "model", "n"])
    yield width_claims.power(counted)
    yield from number("rows where the non-private posterior passes", len(counted))
    for (model, law), part in counted.groupby(["model", "law"]):
        yield from numbers(width_claims.evidence(part, "the noise-aware posterior", f"{model}, {law}"))
    for row in event_calibration[event_calibration.method.isin(AWARE)].itertuples():
        yield from number(f"KS, {place(row)}", row.ks)
        yield from number(f"p-value, {place(row)}", row.p_value)
        yield from number(f"mean z², {place(row)}", row.z2)
        yield from number(f"p-value by z², {place(row)}", row.z2_p)
        yield from number(f"effective draws, {place(row)}", row.ess_median)
        if row.Index in counted.index:
            own = row.method == "exact" or row.law == "poisson"
            where = LAWS["poisson"] if own else LAWS["multinomial"]
            yield check(f"calibrated on {where} ({place(row)})", not counted.rejected[row.Index])
        if not math.isnan(row.oracle_difference):
            # A variable on [0, 1] has a standard deviation of at most 1/2.
            bound = 0.5 / math.sqrt(row.ess_median)
            yield from number(f"mean difference of U from the exact one, {place(row)}", row.oracle_difference)
            yield from number(f"its bound, {place(row)}", bound)
            yield check(f"U as by the exact posterior ({place(row)})", row.oracle_difference <= bound)
            yield from number(f"standard deviation over the exact one, {place(row)}", row.width_ratio)
            yield check(f"as wide as the exact one ({place(row)})", abs(row.width_ratio - 1) <= width_claims.GOAL)


@claim(
    "N7",
    "ours",
    "Noisy counts taken for exact, clipped or projected, give posteriors that are not calibrated at the smallest "
    "epsilon.",
    f"KS test of U: p-value below {LEVEL:g} / number of rows (law, model, n, variant) at the smallest epsilon",
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
    "The noise-aware predictive law is closer to the true one than that of noisy counts taken for exact.",
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
