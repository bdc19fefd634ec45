"""Calibration of posteriors of event models under Laplace-released counts, on data drawn from the models' own prior."""

import math

from privpost.evaluation.calibration import LEVEL
from privpost.evaluation.claims import Claim, from_checks
from privpost.evaluation.multiplicity import critical_value
from privpost.experiments.claim_helpers import above, estimate, ks_evidence, sound


def claims(tables) -> list[Claim]:
    """Score N6 to N8."""
    table, pairs = tables["event_calibration"], tables["event_calibration_pairs"]
    return [_aware_calibrated(table), _naive_not(table), _predicts(pairs)]


def _place(row) -> str:
    variant = {"paper": ", clipped", "corrected": ", projected"}.get(row.variant, "")
    return f"{row.model}, n = {row.n}, epsilon = {row.epsilon:g}{variant}"


def _aware_calibrated(table) -> Claim:
    counted = sound(table, "gibbs", ["model", "n"])
    checks, evidence = {}, {"rows where the non-private posterior passes": len(counted)}
    for model, part in counted.groupby("model"):
        evidence |= ks_evidence(part, "the noise-aware posterior", model)
    for row in table[table.method == "gibbs"].itertuples():
        evidence[f"KS, {_place(row)}"] = row.ks
        evidence[f"p-value, {_place(row)}"] = row.p_value
        if row.Index in counted.index:
            checks[f"calibrated ({_place(row)})"] = row.p_value >= counted.level[row.Index]
        if not math.isnan(row.oracle_difference):
            # No variable on [0, 1] has a standard deviation above 1/2.
            bound = 0.5 / math.sqrt(row.ess_median)
            evidence[f"mean difference of U from the exact one, {_place(row)}"] = row.oracle_difference
            evidence[f"its bound, {_place(row)}"] = bound
            checks[f"U as by the exact oracle ({_place(row)})"] = row.oracle_difference <= bound
    return from_checks(
        "N6",
        "ours",
        "On data from its prior the noise-aware posterior of event models is calibrated, and for naive Bayes the exact "
        "one.",
        f"KS test of U: p-value not below {LEVEL:g} / number of rows (model, n, epsilon), where the non-private "
        "posterior's are not below it over its own rows; mean absolute difference of U, averaged over a chain's laws, "
        "from the exact posterior's at most 0.5 / sqrt(effective draws of a chain)",
        checks,
        evidence,
    )


def _naive_not(table) -> Claim:
    naive = table[table.method == "laplace"]
    naive = naive[naive.epsilon == naive.epsilon.min()]
    return from_checks(
        "N7",
        "ours",
        "Noisy counts taken for counts give posteriors that are not calibrated at the smallest epsilon, clipped or "
        "projected.",
        f"KS test of U: p-value below {LEVEL:g} / number of rows (model, n, variant) at the smallest epsilon",
        {f"not calibrated ({_place(row)})": (row.p_value < LEVEL / len(naive)) for row in naive.itertuples()},
        {"95 % limit": naive.ks_limit.max(), **{f"KS, {_place(row)}": row.ks for row in naive.itertuples()}},
        variant="paper, corrected",
    )


def _predicts(pairs) -> Claim:
    limit = critical_value(len(pairs), LEVEL)
    checks, evidence = {}, {"standard errors of a difference": limit}
    for row in pairs.itertuples():
        name = f"gain in divergence, {_place(row)}"
        evidence |= estimate(name, row.kl_gain_mean, row.kl_gain_sem, of=_place(row))
        checks[f"not behind ({_place(row)})"] = row.kl_gain_mean > -limit * row.kl_gain_sem
        if row.epsilon == pairs.epsilon.min():
            checks[f"ahead ({_place(row)})"] = above(row, "kl_gain", limit)
    return from_checks(
        "N8",
        "ours",
        "On data from its prior the noise-aware predictive law is closer to the true one than that of noisy counts "
        "taken for counts.",
        "divergence of the posterior mean from the true law of a field, noise-naive minus noise-aware, paired over "
        f"trials: above {limit:.2f} standard errors (joint false-alarm rate {LEVEL:g}) at the smallest epsilon, "
        "below minus that nowhere",
        checks,
        evidence,
        variant="paper, corrected",
    )
