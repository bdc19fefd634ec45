"""Claims on the L1 error of one sample from the true, the Laplace and the OPS posterior (Foulds et al. 2016)."""

import itertools
import math

import numpy as np

from privpost.evaluation.multiplicity import FALSE_ALARM, critical_value
from privpost.lab.claims import check, claim, number, word

SMALL = 10


def by_n(table, method: str):
    """Return a method's rows, indexed and sorted by n."""
    return table[table.method == method].set_index("n").sort_index()


def over_true(table, method: str):
    """Return, by n, the ratio of a method's mean error to the true posterior's mean error, and its standard error."""
    rows, truth = by_n(table, method), by_n(table, "non_private").l1_mean
    return rows.l1_mean / truth, rows.over_true_sem / truth


@claim(
    "F1",
    "section 3.2, figure 2",
    "One OPS sample is more accurate than one from the Laplace posterior only at very small n (about 10 or less).",
    "paired difference of the mean L1 errors at each n, beyond {z:.2f} standard errors (two-sided, joint false-alarm "
    f"rate {FALSE_ALARM} over {{comparisons}} comparisons): negative at some n <= {SMALL}, positive at all n > {SMALL}",
)
def crossing(sampling_error):
    rows = by_n(sampling_error, "ops")
    z = critical_value(len(rows))
    ahead = rows.index[rows.over_laplace_mean < -z * rows.over_laplace_sem]
    behind = rows.index[rows.over_laplace_mean > z * rows.over_laplace_sem]
    beyond = rows.index[rows.index > SMALL]
    yield word("z", z)
    yield word("comparisons", len(rows))
    yield check(f"OPS is ahead at some n <= {SMALL}", (ahead <= SMALL).any())
    yield check(f"OPS is behind at every n > {SMALL}", beyond.isin(behind).all() and len(beyond))
    for n in rows.index[rows.index <= 2 * SMALL]:
        yield from number(f"OPS minus Laplace at n = {n}", rows.over_laplace_mean[n])
    yield from number("largest standard error of these", rows.over_laplace_sem[rows.index <= 2 * SMALL].max())
    yield from number("largest n with OPS ahead", int(ahead.max()) if len(ahead) else None)
    yield from number("smallest n with OPS behind", int(behind.min()) if len(behind) else None)


@claim(
    "F2",
    "section 3.2, figure 2",
    "The error of a sample from the Laplace posterior converges to that of a sample from the true posterior.",
    "ratio of the mean L1 errors on the same data: at most 1.05 at the largest n and falling from decade to decade "
    "from n = 1000 on (both up to {z:.2f} standard errors); its excess over 1 at the largest n at most a quarter of "
    "the largest excess",
)
def convergence(sampling_error):
    ratio, sem = over_true(sampling_error, "laplace")
    decades = [n for n in ratio.index if n >= 1000 and math.log10(n) % 1 == 0]
    z, last = critical_value(max(1, len(decades))), ratio.index[-1]
    falls = all(ratio[b] - ratio[a] < z * math.hypot(sem[a], sem[b]) for a, b in itertools.pairwise(decades))
    yield word("z", z)
    yield check(f"within 5 % of the true posterior at n = {last}", ratio[last] - 1 < 0.05 + z * sem[last])
    yield check("the ratio falls from decade to decade", falls)
    yield check("the ratio falls overall", ratio.iloc[-1] - 1 < 0.25 * (ratio.max() - 1))
    for n in decades:
        yield from number(f"Laplace / true posterior at n = {n}", ratio[n])
    yield from number("standard error at the largest n", sem[last])


@claim(
    "F3",
    "section 3.2, figure 2",
    "An OPS sample behaves like one from a posterior with fewer observations, however large n is.",
    "ratio of the mean L1 errors of OPS and the true posterior on the same data: above 1 at every n >= 100 and within "
    "5 % of sqrt((1 + T)/2) at the largest n, with {z:.2f} standard errors (joint false-alarm rate "
    f"{FALSE_ALARM})",
)
def fewer_observations(sampling_error):
    ops, truth = by_n(sampling_error, "ops"), by_n(sampling_error, "non_private").l1_mean
    ratio, sem = over_true(sampling_error, "ops")
    z, last, temperature = critical_value(len(ratio)), ratio.index[-1], float(ops.temperature.iloc[-1])
    limit, large = math.sqrt((1 + temperature) / 2), ratio[ratio.index >= 100]
    # The n at which the true posterior has the error that OPS has at the largest n, interpolated on log scales.
    size = np.exp(np.interp(-math.log(ops.l1_mean[last]), -np.log(truth), np.log(truth.index.to_numpy(float))))
    near = abs(ratio[last] - limit) < 0.05 * limit + z * sem[last]
    yield word("z", z)
    yield check("behind the true posterior at every n >= 100", (large - z * sem[large.index] > 1).all() and len(large))
    yield check(f"within 5 % of the limit sqrt((1 + T)/2) at n = {last}", near)
    yield from number(f"OPS / true posterior at n = {last}", ratio[last])
    yield from number("standard error", sem[last])
    yield from number("limit sqrt((1 + T)/2)", limit)
    yield from number(f"records of a true posterior with the error of OPS at n = {last}", size)
    yield from number("share of records that count, 2/(1 + T)", 2 / (1 + temperature))
