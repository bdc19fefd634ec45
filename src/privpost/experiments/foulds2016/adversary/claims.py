"""Claims on the privacy of draws given an adversary's data, and of stopped Markov chains (Foulds et al. 2016)."""

import math

import numpy as np

from privpost.evaluation.rows import one
from privpost.lab.claims import check, claim, number

# At the largest n, the gap between the local epsilon and 2Δ may differ by this share from 1/(n a0).
TOLERANCE = 0.1
# Tolerance for rounding errors of sums of probabilities and of powers of kernels.
ROUNDING = 1e-9
# A stopped chain's epsilon may exceed the epsilon of an exact draw by this share.
NEAR = 0.01
# Number of sweeps after which the excess must be at most NEAR.
SWEEPS = 2
# After SWEEPS sweeps, the chain on some data set must be this many times as far from an exact draw as the chains on
# the two neighbours with the largest privacy loss.
FARTHER = 10
STARTS = {"uniform": "from a uniform start", "mode": "from the mode"}


@claim(
    "F6",
    "appendix A, figure 8",
    "On an adversary's data the local epsilon of posterior sampling approaches the worst case 2Δ.",
    "records added greedily: the local epsilon is below 2Δ and rises, each of its two terms is at most Δ "
    f"(rounding {ROUNDING:g}), and at the largest n the gap to 2Δ is within {TOLERANCE:.0%} of 1/(n a0); "
    "deterministic",
)
def worst_case(adversary):
    for a0, rows in adversary.groupby("a0"):
        path, name = rows.sort_values("n"), f"(a0 = {a0:g})"
        sensitivity = math.log((1 - a0) / a0)
        gap = 2 * sensitivity - path.local_epsilon.to_numpy()
        last = int(path.n.iloc[-1])
        ratio = gap[-1] * last * a0
        terms = path[["likelihood_term", "partition_term"]].to_numpy()
        yield check(f"below 2Δ at every n {name}", (gap > 0).all())
        yield check(f"each term at most Δ {name}", (terms <= sensitivity + ROUNDING).all())
        yield check(f"never falls {name}", (np.diff(gap) <= ROUNDING).all())
        yield check(f"the gap vanishes like 1/(n a0) {name}", abs(ratio - 1) < TOLERANCE)
        evidence = {"n": last, "local epsilon": path.local_epsilon.iloc[-1], "limit": 2 * sensitivity}
        successes = int((path.added == "success").sum())
        yield from number(f"a0 = {a0:g}", {**evidence, "gap times n a0": ratio, "successes": successes})


@claim(
    "F14",
    "proposition 3",
    "If the law of a chain's state is close to the posterior, the state is as private as an exact draw, up to "
    "that distance.",
    "Metropolis chains on all data sets of a few bits, whose laws after any number of steps are computed. At the "
    "exact draw's own epsilon the smallest delta, over all neighbours, is at most (1 + e^epsilon) times the total "
    f"variation from the posterior, and both vanish (rounding {ROUNDING:g}). Total variation, half the l1 norm, "
    "makes the bound the stronger one. Without the law of a chain this cannot be tested",
)
def distance_and_delta(stopped_chains):
    for (epsilon, chain, start), rows in stopped_chains.groupby(["epsilon", "chain", "start"]):
        path, name = rows.sort_values("steps"), f"{chain} {STARTS[start]}, epsilon {epsilon:g}"
        allowed = (1 + np.exp(path.exact_cost)) * path.distance
        within = f"delta within (1 + e^epsilon) times the distance at every number of steps ({name})"
        yield check(within, (path.delta <= allowed + ROUNDING).all())
        yield check(f"distance and delta vanish ({name})", path[["distance", "delta"]].iloc[-1].max() < ROUNDING)
        used = (path.delta / allowed)[path.distance > ROUNDING].max()
        yield from number(name, {"largest delta": path.delta.max(), "largest share of the bound": used})


@claim(
    "F22",
    "ours, beside proposition 3",
    "The state of an independence chain has a pure guarantee after every number of steps. It tends to the "
    "posterior's guarantee.",
    "the chains of F14 that propose independently: at every number of steps the largest log-ratio of two "
    f"neighbours' laws is at most epsilon + ln[(1 + a(H − 1))/(1 − a)], a = (1 − 1/M)^k (rounding {ROUNDING:g})",
)
def guarantee(stopped_chains):
    independent = stopped_chains[stopped_chains.chain == "independence"]
    for (epsilon, start), rows in independent.groupby(["epsilon", "start"]):
        path, name = rows.sort_values("steps"), f"{STARTS[start]}, epsilon {epsilon:g}"
        first, last = path.iloc[0], path.iloc[-1]
        within = (path.cost <= path.cost_bound + ROUNDING).all()
        yield check(f"cost within the bound at every number of steps ({name})", within)
        comes_down = abs(last.cost_bound - last.exact_cost) < ROUNDING
        yield check(f"the bound comes down to the exact draw's cost ({name})", comes_down)
        yield from number(name, {"bound after one step": first.cost_bound, "cost after one step": first.cost})


@claim(
    "F28",
    "ours, beside proposition 3 and section 4.1",
    "On a small hidden Markov model a Gibbs chain that starts without the data costs nearly what an exact draw "
    "costs, from its second sweep on. At epsilon = 10 this is so even before it has converged. Neither bound "
    "shows it. A start at the mode costs more.",
    "all neighbours of all data sets of a model of two states. The largest log-ratio of two laws of the states "
    "and emissions after k sweeps is at least the exact draw's and at most each of two bounds, the composition of "
    f"all updates and the guarantee of F22 (rounding {ROUNDING:g}). From a uniform start it is within {NEAR:.0%} "
    f"of the exact draw's after {SWEEPS} sweeps; both bounds are further off. At the largest epsilon some data "
    f"set's law is then more than {FARTHER} times as far from the exact draw's as the laws of the neighbours that "
    "lose most. After one sweep from the mode it is above that from a uniform start",
)
def hidden_markov_chain(stopped_hmm):
    bounds = stopped_hmm[["composed_bound", "minorised_bound"]].min(axis=1)
    table = stopped_hmm.assign(bound=bounds)
    for (epsilon, start), path in table.groupby(["epsilon", "start"]):
        name = f"({STARTS[start]}, epsilon {epsilon:g})"
        above = (path.cost >= path.exact_cost - ROUNDING).all()
        yield check(f"at least an exact draw's cost at every number of sweeps {name}", above)
        within = (path.cost <= path.bound + ROUNDING).all()
        yield check(f"within every bound at every number of sweeps {name}", within)
    for epsilon, rows in table.groupby("epsilon"):
        name, uniform = f"(epsilon {epsilon:g})", rows[rows.start == "uniform"]
        first, second = (one(uniform, sweeps=sweeps) for sweeps in (1, SWEEPS))
        mode = one(rows, start="mode", sweeps=1)
        near = second.exact_cost * (1 + NEAR)
        yield check(f"near an exact draw's cost after {SWEEPS} sweeps {name}", second.cost <= near)
        yield check(f"every bound further off after {SWEEPS} sweeps {name}", second.bound > near)
        yield check(f"one sweep from the mode costs more {name}", mode.cost > first.cost + ROUNDING)
        evidence = {"an exact draw": second.exact_cost, "one sweep": first.cost, "one sweep from the mode": mode.cost}
        evidence |= {f"{SWEEPS} sweeps": second.cost, f"least bound after {SWEEPS} sweeps": second.bound}
        yield from number(f"pure epsilon {name}", evidence)
        distances = {"largest": second.distance, "of the neighbours that lose most": second.distance_there}
        yield from number(f"distance after {SWEEPS} sweeps {name}", distances)
        if epsilon == table.epsilon.max():
            farther = second.distance > FARTHER * second.distance_there
            yield check(f"other data sets' chains farther from an exact draw {name}", farther)
