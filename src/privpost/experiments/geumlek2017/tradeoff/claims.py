"""Claims on privacy against utility of the beta-Bernoulli mechanisms under RDP (Geumlek et al. 2017, figure 2)."""

import math

import numpy as np

from privpost.evaluation.rows import select
from privpost.experiments.claim_helpers import ends, joint_limit
from privpost.lab.claims import check, claim, number, word

# Rounding error of a divergence in closed form.
ROUNDING = 1e-12
BOTH = "paper, corrected"


def curves(tradeoff, order):
    """Return the rows of KL at an order, sorted by log epsilon and grouped by variant and method."""
    rows = select(tradeoff[tradeoff.method != "non_private"], metric="kl", order=order)
    return rows.sort_values("log_epsilon").groupby(["variant", "method"])


@claim(
    "G3",
    "section 5.1, figure 2 (a)",
    "Below the critical order diffused and concentrated sampling reach KL 0 at a finite epsilon; the Gaussian "
    "mechanism never does.",
    f"smallest KL over the epsilon axis: below {ROUNDING:g}, or above the quadrature's error",
    variant=BOTH,
)
def reach_the_posterior(tradeoff):
    for (variant, method), curve in curves(tradeoff, tradeoff.order.min()):
        least = curve["mean"].min()
        yield from number(f"smallest KL, {method}, {variant}", least)
        if method == "gaussian":
            yield check(f"gaussian stays above 0 ({variant})", least > curve.error.max())
        else:
            # At coefficient 1 the output is the true posterior, up to rounding in the closed form.
            yield check(f"{method} reaches 0 ({variant})", least < ROUNDING)
            first = np.exp(curve[curve["mean"] < ROUNDING].log_epsilon.min())
            yield from number(f"epsilon of first zero, {method}, {variant}", first)


@claim(
    "G4",
    "section 5.1, figure 2 (b)",
    "Above the critical order both samplers stay away from the true posterior; the Gaussian mechanism tends to it.",
    "KL at the largest epsilon: constant and positive for the samplers, below 1 % of their floors for the Gaussian",
    variant=BOTH,
)
def floors(tradeoff):
    of_variant: dict[str, dict[str, float]] = {}
    for (variant, method), curve in curves(tradeoff, tradeoff.order.max()):
        before, floor = curve["mean"].iloc[-2:]
        of_variant.setdefault(variant, {})[method] = floor
        yield from number(f"KL at the largest epsilon, {method}, {variant}", floor)
        if method != "gaussian":
            yield check(f"{method} levels off above 0 ({variant})", floor > 1e-6 and abs(floor - before) < 1e-9)
    for variant, floor in of_variant.items():
        lowest = min(floor["diffused"], floor["concentrated"])
        yield check(f"gaussian falls below 1 % of both floors ({variant})", floor["gaussian"] < 0.01 * lowest)


def modes(curve) -> int:
    """Return the number of local maxima of a density that exceed 5 % of the largest value. Grid ends may be maxima."""
    density = np.concatenate([[0.0], curve.sort_values("theta").density.to_numpy(), [0.0]])
    middle = density[1:-1]
    return int(np.sum((middle > density[:-2]) & (middle > density[2:]) & (middle > 0.05 * middle.max())))


@claim(
    "G5",
    "section 5.1, figure 2",
    "As epsilon tends to 0, diffused sampling tends to the prior and concentrated sampling to a point mass; the "
    "Gaussian mechanism becomes bimodal.",
    "at the smallest epsilon: diffused's coefficient falls like the root of epsilon and its KL grows by less than "
    "2 % a step, to within 1 % of the prior's; concentrated's sd < 0.01 about the prior's mean with KL growing "
    "like 1/epsilon; the Gaussian's density has two local maxima (of at least 5 % of the highest)",
    variant=BOTH,
)
def small_budgets(tradeoff, limits):
    forgotten, point = float(limits.prior_kl.iloc[0]), float(limits.prior_mean.iloc[0])
    yield from number("KL of the prior from the true posterior", forgotten)
    for (variant, order, method), curve in limits.groupby(["variant", "order", "method"]):
        name = f"order {order:g}, {variant}"
        rows = curves(tradeoff, order).get_group((variant, method))
        step = float(np.diff(rows.log_epsilon)[0])
        kl, kl_next = rows["mean"].iloc[:2]
        if method == "gaussian":
            yield from number(f"modes, gaussian, {name}", modes(curve))
            yield check(f"gaussian is bimodal ({name})", modes(curve) == 2)
        elif method == "concentrated":
            width = float(curve.theta.max() - curve.theta.min()) / 12
            mean = np.trapezoid(curve.theta * curve.density, curve.theta) / np.trapezoid(curve.density, curve.theta)
            growth = float(kl / kl_next) if kl_next > 0 else 0.0
            yield from number(f"sd of the output, concentrated, {name}", width)
            yield from number(f"mean of the output, concentrated, {name}", mean)
            yield check(f"that point is the prior's mean ({name})", abs(mean - point) < 1e-4)
            # The KL divergence to a point mass grows like 1/epsilon: a step of h in ln epsilon multiplies it by e^h.
            yield from number(f"growth of KL per step, concentrated, {name}", growth)
            narrows = width < 0.01 and growth > 1 + 0.8 * math.expm1(step)
            yield check(f"concentrated narrows to a point ({name})", narrows)
        else:
            weight, next_weight = rows.coefficient.iloc[:2]
            fall = weight / next_weight
            yield from number(f"weight of the data, diffused, {name}", weight)
            yield from number(f"fall of that weight per step, diffused, {name}", fall)
            yield from number(f"growth of KL per step, diffused, {name}", kl / kl_next)
            # A small divergence is quadratic in r, so r falls like the root of epsilon. The KL tends to the KL of the
            # prior, so its growth per step vanishes.
            yield check(f"diffused forgets the data ({name})", abs(fall - math.exp(-step / 2)) < 0.02)
            yield check(f"diffused stays near the posterior ({name})", 1 <= kl / kl_next < 1.02)
            yield check(f"diffused ends at the prior ({name})", abs(kl / forgotten - 1) < 0.01)


@claim(
    "G22",
    "section 5.1, figure 2",
    "As epsilon tends to 0, the log-likelihood of concentrated sampling falls no further than to that under the "
    "prior's mode.",
    "mean of the output at the smallest epsilon against the prior's mode, which is where diffused's density is "
    "largest, to a step of its grid: in theta, and in the natural parameter, whose density has a factor theta (1 "
    "- theta)",
    variant=BOTH,
)
def mode_of_the_prior(limits):
    for (variant, order), curves_ in limits.groupby(["variant", "order"]):
        point, prior = (select(curves_, method=method).sort_values("theta") for method in ("concentrated", "diffused"))
        mean = np.trapezoid(point.theta * point.density, point.theta) / np.trapezoid(point.density, point.theta)
        step, name = float(np.diff(prior.theta).max()), f"order {order:g}, {variant}"
        natural = prior.density * prior.theta * (1 - prior.theta)
        yield from number(f"mean of the output, {name}", mean)
        for words, density in (("the natural parameter", natural), ("theta", prior.density)):
            mode = float(prior.theta[density.idxmax()])
            yield from number(f"mode of the prior in {words}, {name}", mode)
            yield check(f"the point is the mode of the prior in {words} ({name})", abs(mean - mode) <= step)


@claim(
    "G6",
    "section 5.1, figure 2 (c, d)",
    "Held-out likelihood has the same limits as KL, and is kinder to concentrated sampling than KL.",
    "at the smallest epsilon concentrated's mean is below diffused's though its KL is larger; at the largest "
    "epsilon the excess over the true posterior is 0 exactly where the KL vanishes; both with {allowed}. The "
    "standard errors are those of unpaired means, larger than the differences' own, as the methods share their "
    "random numbers",
    variant=BOTH,
)
def held_out(tradeoff):
    nll = select(tradeoff, metric="neg_log_likelihood")
    truth = float(select(nll, method="non_private")["mean"].iloc[0])
    groups = nll[nll.method != "non_private"].groupby(["variant", "order"])
    # Comparisons per group: diffused against concentrated, and each method against the true posterior.
    limit, words = joint_limit(int((1 + groups.method.nunique()).sum()), sides=2)
    yield word("allowed", words)
    for (variant, order), rows in groups:
        name = f"order {order:g}, {variant}"
        kl = {method: curve["mean"] for (of, method), curve in curves(tradeoff, order) if of == variant}
        at_smallest, at_largest = (select(rows, log_epsilon=end).set_index("method") for end in ends(nll.log_epsilon))
        diffused, concentrated = at_smallest.loc["diffused"], at_smallest.loc["concentrated"]
        less, error = float(diffused["mean"] - concentrated["mean"]), math.hypot(diffused["sem"], concentrated["sem"])
        yield from number(f"nll of diffused minus concentrated, {name}", less, error, of=name)
        kinder = less > limit * error and kl["concentrated"].iloc[0] > kl["diffused"].iloc[0]
        yield check(f"concentrated is ahead of diffused held out, behind in KL ({name})", kinder)
        yield check(f"gaussian is worst held out ({name})", at_smallest["mean"].idxmax() == "gaussian")
        for method, row in at_largest.iterrows():
            excess = float(row["mean"]) - truth
            yield from number(f"excess over the true posterior at the largest epsilon, {method}, {name}", excess)
            # The excess has to vanish where the KL vanishes, and to have a floor where the KL has a floor.
            small = abs(excess) < limit * math.sqrt(2) * row["sem"]
            yield check(f"limits agree for {method} ({name})", small == (kl[method].iloc[-1] < 1e-3))
