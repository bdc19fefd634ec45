"""KL divergence from the true posterior to the Laplace and the OPS posterior (Foulds et al. 2016, lemma 1)."""

import math

from privpost.evaluation.multiplicity import FALSE_ALARM, critical_value
from privpost.lab.claims import check, claim, number, word

SMALL = 0.01
RATE = 0.1


@claim(
    "F5",
    "lemma 1",
    "Beta-Bernoulli model: the KL divergence from the true posterior to the Laplace posterior tends to 0.",
    f"mean at the largest n below {SMALL}, and its slope over the last step of ln n within {RATE} of −1, each with "
    f"{{z:.2f}} standard errors (joint false-alarm rate {FALSE_ALARM} over {{curves}} curves)",
)
def vanishing_divergence(posterior_divergence):
    curves = posterior_divergence.sort_values("n").groupby(["method", "p", "epsilon"])
    n_curves = sum(method == "laplace" for method, *_ in curves.groups)
    z = critical_value(n_curves)
    yield word("z", z)
    yield word("curves", n_curves)
    for (method, p, epsilon), rows in curves:
        name, last = f"p = {p:g}, epsilon = {epsilon:g}", rows.iloc[-1]
        if method == "ops":
            evidence = {"kl": last.kl_mean, "sem": last.kl_sem, "limit": last.kl_theory}
            yield from number(f"ops, {name}", evidence)
        if method != "laplace":
            continue
        before = rows.iloc[-2]
        slope = math.log(last.kl_mean / before.kl_mean) / math.log(last.n / before.n)
        error = math.hypot(last.kl_sem / last.kl_mean, before.kl_sem / before.kl_mean) / math.log(last.n / before.n)
        yield check(f"below {SMALL} at n = {last.n:.0f} ({name})", last.kl_mean + z * last.kl_sem < SMALL)
        yield check(f"falls like 1/n ({name})", abs(slope + 1) < RATE + z * error)
        evidence = {"kl": last.kl_mean, "sem": last.kl_sem, "theory": last.kl_theory}
        yield from number(f"laplace, {name}", {**evidence, "slope": slope, "standard error of the slope": error})
