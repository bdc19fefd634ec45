"""Local privacy loss of posterior sampling on data that an adversary adds greedily (Foulds et al. 2016, figure 8)."""

from __future__ import annotations

import math

import numpy as np

from privpost.evaluation.claims import Claim, from_checks

# How near to its first-order value 1/(n a0) the gap below 2Δ has to be at the largest n.
TOLERANCE = 0.1


def claims(tables) -> list[Claim]:
    """Score F6."""
    checks, evidence = {}, {}
    for a0, rows in tables["adversary"].groupby("a0"):
        path = rows.sort_values("n")
        sensitivity = math.log((1 - a0) / a0)
        gap = 2 * sensitivity - path.local_epsilon.to_numpy()
        last = int(path.n.iloc[-1])
        ratio = gap[-1] * last * a0
        checks[f"below 2Δ at every n (a0 = {a0:g})"] = (gap > 0).all()
        checks[f"each term at most Δ (a0 = {a0:g})"] = (
            path[["likelihood_term", "partition_term"]].to_numpy() <= sensitivity + 1e-9
        ).all()
        checks[f"never falls (a0 = {a0:g})"] = (np.diff(gap) <= 1e-9).all()
        checks[f"the gap vanishes like 1/(n a0) (a0 = {a0:g})"] = abs(ratio - 1) < TOLERANCE
        evidence[f"a0 = {a0:g}"] = {
            "n": last,
            "local epsilon": path.local_epsilon.iloc[-1],
            "limit": 2 * sensitivity,
            "gap times n a0": ratio,
            "successes": int((path.added == "success").sum()),
        }
    return [
        from_checks(
            "F6",
            "appendix A, figure 8",
            "On an adversary's data the local epsilon of posterior sampling approaches the worst case 2Δ.",
            f"along the greedy path: below 2Δ and rising, both terms at most Δ (rounding 1e-9), and at the largest n a "
            f"gap to 2Δ within {TOLERANCE:.0%} of 1/(n a0); deterministic",
            checks,
            evidence,
        )
    ]
