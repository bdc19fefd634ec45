"""KL divergence from the true posterior to the Laplace and the OPS posterior (Foulds et al. 2016, lemma 1)."""

import math

from privpost.evaluation.claims import Claim, from_checks
from privpost.evaluation.multiplicity import FALSE_ALARM, critical_value

SMALL = 0.01
RATE = 0.1


def claims(tables) -> list[Claim]:
    """Score F5, with the OPS limit beside it as evidence."""
    table = tables["posterior_divergence"]
    checks, evidence = {}, {}
    curves = {key: rows.sort_values("n") for key, rows in table[table.method == "laplace"].groupby(["p", "epsilon"])}
    z = critical_value(len(curves))
    for (p, epsilon), rows in curves.items():
        name = f"p = {p:g}, epsilon = {epsilon:g}"
        last, before = rows.iloc[-1], rows.iloc[-2]
        slope = math.log(last.kl_mean / before.kl_mean) / math.log(last.n / before.n)
        error = math.hypot(last.kl_sem / last.kl_mean, before.kl_sem / before.kl_mean) / math.log(last.n / before.n)
        checks[f"below {SMALL} at n = {last.n:.0f} ({name})"] = last.kl_mean + z * last.kl_sem < SMALL
        checks[f"falls like 1/n ({name})"] = abs(slope + 1) < RATE + z * error
        evidence[f"laplace, {name}"] = {
            "kl": last.kl_mean,
            "sem": last.kl_sem,
            "theory": last.kl_theory,
            "slope": slope,
            "standard error of the slope": error,
        }
    for (p, epsilon), rows in table[table.method == "ops"].groupby(["p", "epsilon"]):
        last = rows.sort_values("n").iloc[-1]
        found = {"kl": last.kl_mean, "sem": last.kl_sem, "limit": last.kl_theory}
        evidence[f"ops, p = {p:g}, epsilon = {epsilon:g}"] = found
    return [
        from_checks(
            "F5",
            "lemma 1",
            "Beta-Bernoulli model: the KL divergence from the true posterior to the Laplace posterior tends to 0.",
            f"mean at the largest n below {SMALL}, and its slope over the last step of ln n within {RATE} of −1, each "
            f"with {z:.2f} standard errors (joint false-alarm rate {FALSE_ALARM} over {len(curves)} curves)",
            checks,
            evidence,
        )
    ]
