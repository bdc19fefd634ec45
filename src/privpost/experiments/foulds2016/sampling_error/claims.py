"""L1 error of one sample from the true, the Laplace and the OPS posterior (Foulds et al. 2016, figure 2)."""

import itertools
import math

import numpy as np

from privpost.evaluation.claims import Claim, from_checks
from privpost.evaluation.multiplicity import FALSE_ALARM, critical_value


def claims(tables) -> list[Claim]:
    """Score F1 to F3."""
    table = tables["sampling_error"]
    by = {method: table[table.method == method].set_index("n").sort_index() for method in table.method.unique()}
    return [_crossing(by), _convergence(by), _fewer_observations(by)]


SMALL = 10


def _crossing(by) -> Claim:
    rows = by["ops"]
    z = critical_value(len(rows))
    ahead = rows.index[rows.over_laplace_mean < -z * rows.over_laplace_sem]
    behind = rows.index[rows.over_laplace_mean > z * rows.over_laplace_sem]
    beyond = rows.index[rows.index > SMALL]
    checks = {
        f"OPS is ahead at some n <= {SMALL}": (ahead <= SMALL).any(),
        f"OPS is behind at every n > {SMALL}": beyond.isin(behind).all() and len(beyond),
    }
    evidence = {f"OPS minus Laplace at n = {n}": rows.over_laplace_mean[n] for n in rows.index if n <= 2 * SMALL}
    evidence |= {
        "largest standard error of these": rows.over_laplace_sem[rows.index <= 2 * SMALL].max(),
        "largest n with OPS ahead": int(ahead.max()) if len(ahead) else None,
        "smallest n with OPS behind": int(behind.min()) if len(behind) else None,
    }
    return from_checks(
        "F1",
        "section 3.2, figure 2",
        "One OPS sample is more accurate than one from the Laplace posterior only at very small n (about 10 or less).",
        f"paired difference of the mean L1 errors at each n, beyond {z:.2f} standard errors (two-sided, joint "
        f"false-alarm rate {FALSE_ALARM} over {len(rows)} comparisons): negative at some n <= {SMALL}, positive at all "
        f"n > {SMALL}",
        checks,
        evidence,
    )


def _over_true(by, method: str):
    """Return, by n, a method's mean error over that of the true posterior on the same data, and its standard error."""
    truth = by["non_private"].l1_mean
    return by[method].l1_mean / truth, by[method].over_true_sem / truth


def _convergence(by) -> Claim:
    ratio, sem = _over_true(by, "laplace")
    decades = [n for n in ratio.index if n >= 1000 and math.log10(n) % 1 == 0]
    z = critical_value(max(1, len(decades)))
    last = ratio.index[-1]
    falls = all(ratio[b] - ratio[a] < z * math.hypot(sem[a], sem[b]) for a, b in itertools.pairwise(decades))
    checks = {
        f"within 5 % of the true posterior at n = {last}": ratio[last] - 1 < 0.05 + z * sem[last],
        "the ratio falls from decade to decade": falls,
        "the ratio falls overall": ratio.iloc[-1] - 1 < 0.25 * (ratio.max() - 1),
    }
    evidence = {f"Laplace / true posterior at n = {n}": ratio[n] for n in decades}
    evidence["standard error at the largest n"] = sem[last]
    return from_checks(
        "F2",
        "section 3.2, figure 2",
        "The error of a sample from the Laplace posterior converges to that of a sample from the true posterior.",
        f"ratio of the mean L1 errors on the same data: at most 1.05 at the largest n, falling from decade to decade "
        f"from n = 1000 on (up to {z:.2f} standard errors), and there at most a quarter of its largest excess",
        checks,
        evidence,
    )


def _fewer_observations(by) -> Claim:
    ops, truth = by["ops"], by["non_private"]
    ratio, sem = _over_true(by, "ops")
    last = ratio.index[-1]
    limit = math.sqrt((1 + float(ops.temperature.iloc[-1])) / 2)
    z = critical_value(len(ratio))
    equivalent = _equivalent_size(float(ops.l1_mean[last]), truth)
    large = ratio[ratio.index >= 100]
    near = abs(ratio[last] - limit) < 0.05 * limit + z * sem[last]
    checks = {
        "behind the true posterior at every n >= 100": (large - z * sem[large.index] > 1).all() and len(large),
        f"within 5 % of the limit sqrt((1 + T)/2) at n = {last}": near,
    }
    evidence = {
        f"OPS / true posterior at n = {last}": ratio[last],
        "standard error": sem[last],
        "limit sqrt((1 + T)/2)": limit,
        f"records of a true posterior with the error of OPS at n = {last}": equivalent,
        "share of records that count, 2/(1 + T)": 2 / (1 + float(ops.temperature.iloc[-1])),
    }
    return from_checks(
        "F3",
        "section 3.2, figure 2",
        "An OPS sample behaves like one from a posterior with fewer observations, however large n is.",
        "ratio of the mean L1 errors of OPS and the true posterior on the same data: above 1 at every n >= 100 and "
        f"within 5 % of sqrt((1 + T)/2) at the largest n, with {z:.2f} standard errors (joint false-alarm rate "
        f"{FALSE_ALARM})",
        checks,
        evidence,
    )


def _equivalent_size(error: float, truth) -> float:
    """Return the n at which the true posterior's error has a given value, by interpolation of the logarithms."""
    return float(np.exp(np.interp(-math.log(error), -np.log(truth.l1_mean), np.log(truth.index.to_numpy(float)))))
