"""Privacy loss of posterior sampling on an adversary's data, and of chains (Foulds et al. 2016, figure 8, prop. 3)."""

import math

import numpy as np

from privpost.evaluation.claims import Claim, from_checks

# How near to its first-order value 1/(n a0) the gap below 2Δ has to be at the largest n.
TOLERANCE = 0.1
# Sums of a few hundred probabilities, and powers of kernels, are off by less; far below what the claims compare.
ROUNDING = 1e-9


def claims(tables) -> list[Claim]:
    """Score F6, F14 and F22."""
    return [_adversary(tables["adversary"]), _distance(tables["stopped_chains"]), _bound(tables["stopped_chains"])]


def _adversary(table) -> Claim:
    checks, evidence = {}, {}
    for a0, rows in table.groupby("a0"):
        path = rows.sort_values("n")
        sensitivity = math.log((1 - a0) / a0)
        gap = 2 * sensitivity - path.local_epsilon.to_numpy()
        last = int(path.n.iloc[-1])
        ratio = gap[-1] * last * a0
        checks[f"below 2Δ at every n (a0 = {a0:g})"] = (gap > 0).all()
        terms = path[["likelihood_term", "partition_term"]].to_numpy()
        checks[f"each term at most Δ (a0 = {a0:g})"] = (terms <= sensitivity + ROUNDING).all()
        checks[f"never falls (a0 = {a0:g})"] = (np.diff(gap) <= ROUNDING).all()
        checks[f"the gap vanishes like 1/(n a0) (a0 = {a0:g})"] = abs(ratio - 1) < TOLERANCE
        evidence[f"a0 = {a0:g}"] = {
            "n": last,
            "local epsilon": path.local_epsilon.iloc[-1],
            "limit": 2 * sensitivity,
            "gap times n a0": ratio,
            "successes": int((path.added == "success").sum()),
        }
    return from_checks(
        "F6",
        "appendix A, figure 8",
        "On an adversary's data the local epsilon of posterior sampling approaches the worst case 2Δ.",
        f"along the greedy path: below 2Δ and rising, both terms at most Δ (rounding {ROUNDING:g}), and at the "
        f"largest n a gap to 2Δ within {TOLERANCE:.0%} of 1/(n a0); deterministic",
        checks,
        evidence,
    )


def _distance(table) -> Claim:
    checks, evidence = {}, {}
    for (epsilon, chain, start), rows in table.groupby(["epsilon", "chain", "start"]):
        path = rows.sort_values("steps")
        name = f"{chain} {_start(start)}, epsilon {epsilon:g}"
        allowed = (1 + np.exp(path.exact_cost)) * path.distance
        within = f"delta within (1 + e^epsilon) times the distance at every number of steps ({name})"
        checks[within] = (path.delta <= allowed + ROUNDING).all()
        checks[f"distance and delta vanish ({name})"] = path[["distance", "delta"]].iloc[-1].max() < ROUNDING
        used = (path.delta / allowed)[path.distance > ROUNDING].max()
        evidence[name] = {"largest delta": path.delta.max(), "largest share of the bound": used}
    return from_checks(
        "F14",
        "proposition 3",
        "A chain whose law is close enough to the posterior keeps the posterior's privacy, up to that distance.",
        "Metropolis chains on all data sets of a few bits, whose laws after any number of steps are computed: the "
        "smallest delta at the exact draw's own epsilon, over all neighbours, is at most (1 + e^epsilon) times the "
        f"total variation from the posterior, and both vanish (rounding {ROUNDING:g}); total variation, half the "
        "l1 norm, makes the bound the stronger one; of a chain whose law is not known it cannot be tested",
        checks,
        evidence,
    )


def _start(start: str) -> str:
    return "from a uniform start" if start == "uniform" else "from the mode"


def _bound(table) -> Claim:
    checks, evidence = {}, {}
    for (epsilon, start), rows in table[table.chain == "independence"].groupby(["epsilon", "start"]):
        path = rows.sort_values("steps")
        name, last = f"{_start(start)}, epsilon {epsilon:g}", path.iloc[-1]
        within = (path.cost <= path.cost_bound + ROUNDING).all()
        checks[f"cost within the bound at every number of steps ({name})"] = within
        comes_down = abs(last.cost_bound - last.exact_cost) < ROUNDING
        checks[f"the bound comes down to the exact draw's cost ({name})"] = comes_down
        evidence[name] = {"bound after one step": path.cost_bound.iloc[0], "cost after one step": path.cost.iloc[0]}
    return from_checks(
        "F22",
        "ours, beside proposition 3",
        "The state of an independence chain has a pure guarantee after every number of steps, which tends to the "
        "posterior's.",
        "the chains of F14 that propose independently: the largest log-ratio of two neighbours' laws against epsilon "
        f"+ ln[(1 + a(H − 1))/(1 − a)], a = (1 − 1/M)^k, at every number of steps (rounding {ROUNDING:g})",
        checks,
        evidence,
    )
