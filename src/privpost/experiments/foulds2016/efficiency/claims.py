"""Asymptotic relative efficiency of private estimates of a Bernoulli parameter (Foulds et al. 2016, section 3.3)."""

import math

import numpy as np

from privpost.evaluation.claims import Claim, from_checks
from privpost.evaluation.multiplicity import FALSE_ALARM, critical_value

TOLERANCE = 0.03
ONSET = 0.1


def onset(rows) -> float:
    """Return the smallest n from which on the efficiency stays within 10 % of its limit; nan if it is not there yet."""
    rows = rows.sort_values("n")
    outside = (rows["are"] - rows.are_limit).abs() > ONSET * rows.are_limit + 2 * rows["sem"]
    if outside.iloc[-1]:
        return math.nan
    return float(rows.n[outside.cumsum() == outside.sum()].iloc[1 if outside.any() else 0])


def claims(tables) -> list[Claim]:
    """Score F4."""
    table = tables["efficiency"]
    known = table[table.are_limit.notna()]
    last = known[known.n == known.n.max()]
    z = critical_value(len(last))
    checks, evidence = {}, {}
    for row in last.itertuples():
        name = f"{row.method}, {row.statistic}, p = {row.p:g}"
        name += "" if np.isnan(row.epsilon) else f", epsilon = {row.epsilon:g}"
        near = abs(row.are - row.are_limit) < TOLERANCE * row.are_limit + z * row.sem
        checks[f"near its limit ({name})"] = near
        same = (known.method == row.method) & (known.statistic == row.statistic) & (known.p == row.p)
        if not np.isnan(row.epsilon):
            same &= known.epsilon == row.epsilon
        reached = onset(known[same])
        evidence[name] = {
            "are": row.are,
            "sem": row.sem,
            "limit": row.are_limit,
            "within 10 % from n": None if math.isnan(reached) else int(reached),
        }
    return [
        from_checks(
            "F4",
            "theorems 3.1 and 3.2, remark 1, table 1",
            "Beta-Bernoulli model: the relative efficiency tends to 2 for a sample and 1 for the mean of the true and "
            "the Laplace posterior, and to 1 + T for an OPS sample.",
            f"efficiency at the largest n within {TOLERANCE:.0%} of its limit plus {z:.2f} standard errors (joint "
            f"false-alarm rate {FALSE_ALARM} over {len(last)} comparisons)",
            checks,
            evidence,
        )
    ]
