"""Asymptotic relative efficiency of private estimates of a Bernoulli parameter (Foulds et al. 2016, section 3.3)."""

import math

from privpost.evaluation.multiplicity import FALSE_ALARM, critical_value
from privpost.evaluation.rows import select
from privpost.lab.claims import check, claim, number, word

TOLERANCE = 0.03
ONSET = 0.1


def onset(rows) -> float:
    """Return the smallest n from which on the efficiency stays within 10 % of its limit, or nan if there is none."""
    rows = rows.sort_values("n")
    # Two standard errors allow for the noise of the simulation.
    outside = (rows["are"] - rows.are_limit).abs() > ONSET * rows.are_limit + 2 * rows["sem"]
    if outside.iloc[-1]:
        return math.nan
    return float(rows.n[outside.cumsum() == outside.sum()].iloc[1 if outside.any() else 0])


@claim(
    "F4",
    "theorems 3.1 and 3.2, remark 1, table 1",
    "Beta-Bernoulli model: the relative efficiency of the true and of the Laplace posterior tends to 2 for a "
    "sample and to 1 for the mean. That of an OPS sample tends to 1 + T.",
    f"efficiency at the largest n within {TOLERANCE:.0%} of its limit plus {{z:.2f}} standard errors (joint "
    f"false-alarm rate {FALSE_ALARM} over {{comparisons}} comparisons)",
)
def limits(efficiency):
    known = efficiency[efficiency.are_limit.notna()]
    last = known[known.n == known.n.max()]
    z = critical_value(len(last))
    yield word("z", z)
    yield word("comparisons", len(last))
    for row in last.itertuples():
        epsilon = None if math.isnan(row.epsilon) else row.epsilon
        name = f"{row.method}, {row.statistic}, p = {row.p:g}"
        name += "" if epsilon is None else f", epsilon = {epsilon:g}"
        near = abs(row.are - row.are_limit) < TOLERANCE * row.are_limit + z * row.sem
        yield check(f"near its limit ({name})", near)
        reached = onset(select(known, method=row.method, statistic=row.statistic, p=row.p, epsilon=epsilon))
        evidence = {"are": row.are, "sem": row.sem, "limit": row.are_limit}
        yield from number(name, {**evidence, "within 10 % from n": None if math.isnan(reached) else int(reached)})
