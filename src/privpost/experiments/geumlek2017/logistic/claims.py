"""Claims on Bayesian logistic regression under RDP (Geumlek et al. 2017, section 5.2, figure 3 and appendix)."""

import numpy as np

from privpost.evaluation.rows import one, select
from privpost.evaluation.summaries import in_standard_errors
from privpost.experiments.claim_helpers import student_limit
from privpost.experiments.geumlek2017.logistic.study import METRICS, decisive
from privpost.lab.claims import check, claim, number, word

# One-sided joint level of all comparisons of a claim (Bonferroni).
LEVEL = 0.05
# ln ε at which OPS on its smallest ball is compared. At smaller budgets, OPS on any ball is near guessing.
LARGE = (0, 1, 2, 3)
# On its smallest ball, OPS must have a lower test error than the paper's OPS, by more than this.
GAIN = 0.01
# A sampler is no better than guessing if its test error is at least this share of the error of guessing the majority.
MAJORITY = 0.9
# Largest allowed excess of the test error on the smallest ball over that on the best ball.
LOSS = 0.05
# Largest relative distance of the farthest mode from the rim of the smallest ball.
RIM = 1e-6


def leads(rows):
    """Return paired rows with a column `lead`: how far the second method is ahead, in standard errors."""
    sign = np.where(rows.metric == "test_error", 1, -1)
    return rows.assign(lead=sign * in_standard_errors(rows))


def critical(rows, comparisons: int) -> float:
    """Return the one-sided critical value of Student's t, with Bonferroni's correction for `comparisons` tests."""
    return student_limit(int(rows.n_repeats.min()), LEVEL / comparisons)


def counts(rows, limit: float) -> dict[str, int]:
    """Return, by name, the numbers of rows where the second method is significantly ahead, and significantly behind."""
    return {"significantly ahead": (rows.lead > limit).sum(), "significantly behind": (rows.lead < -limit).sum()}


@claim(
    "{id}",
    "{place}",
    "Both samplers have a {words} than OPS at every epsilon, order and data set, with OPS on the paper's ball "
    "and charged as in the paper.",
    "paired difference in {score} between each sampler and OPS, in favour of the sampler in every cell "
    "(one-sided t, 5 %, Bonferroni)",
    cases=(
        {"id": "G7", "place": "section 5.2, figure 3", "score": "test error", "words": "lower test error"},
        {"id": "G14", "place": "appendix", "score": "test log likelihood", "words": "larger test log-likelihood"},
    ),
)
def beats_ops(logistic_pairs, id, place, score, words):
    rows = leads(select(logistic_pairs, variant="paper", first="ops", metric=score.replace(" ", "_")))
    for (dataset, variant, second), part in rows.groupby(["dataset", "variant", "second"]):
        name, limit = f"{second} on {dataset}, {variant}", critical(rows, len(rows))
        least = part.loc[part.lead.idxmin()]
        yield check(f"{name}: {words} than OPS", least.lead > limit, of=dataset)
        evidence = {"cells": len(part), "critical t": limit, **counts(part, limit), "smallest t": least.lead}
        evidence |= {"its difference": least.difference_mean, "its standard error": least.difference_sem}
        yield from number(name, evidence)


@claim(
    "G8",
    "section 5.2, figure 3",
    "Diffused sampling is at least as good as concentrated sampling everywhere.",
    "paired difference between the two, in test error and in log-likelihood: in no cell significantly against "
    "diffused (one-sided t, 5 %, Bonferroni over data sets, orders and epsilons); from the run with the most draws",
)
def diffused_not_behind(logistic_pairs):
    rows = select(logistic_pairs, variant="paper", first="concentrated", second="diffused")
    rows = leads(decisive(rows)) if len(rows) else rows
    for (dataset, metric), part in rows.groupby(["dataset", "metric"]):
        limit = critical(part, len(rows) // len(METRICS))
        behind = part[part.lead < -limit]
        where = behind.assign(by=behind.difference_mean.abs())[["order", "log_epsilon", "by", "difference_sem"]]
        evidence = {
            "cells": len(part),
            "cells over many splits": (part.n_splits > 1).sum(),
            "draws, at most": int((part.n_repeats * part.draws).max()),
            "critical t": limit,
            **{f"diffused {words}": count for words, count in counts(part, limit).items()},
            "largest standard error": part.difference_sem.max(),
            "where behind (order, log epsilon, by how much, standard error)": where.values.tolist(),
        }
        yield from number(f"{metric} on {dataset}", evidence)
        yield check(f"{metric} on {dataset}", behind.empty, of=dataset)


@claim(
    "G9",
    "section 5.2",
    "At the same parameters a posterior draw has a smaller RDP epsilon than OPS, as the paper charges it, up to "
    "the order 2n/rho. Charged what its pure cost implies, OPS costs more up to the order n/rho. Charged by "
    "theorem 17 as well, it never costs more.",
    "epsilon of one draw against that of OPS, at orders on either side of the crossing and at least 1 % away from it",
    variant="paper, corrected_charge, own_bound",
)
def crossing(rdp_glm):
    keys = ["dataset", "power", "order"]

    def beside(variant):
        ops = rdp_glm[(rdp_glm.method == "ops") & (rdp_glm.variant == variant)]
        return rdp_glm[rdp_glm.method != "ops"].merge(ops[[*keys, "epsilon"]], "left", on=keys, suffixes=("", "_ops"))

    for variant, factor in (("paper", 2), ("corrected_charge", 1)):
        both = beside(variant)
        below = both.order <= factor * both.n / both.power
        right = (both.epsilon <= both.epsilon_ops) == below
        yield check(f"crossing at {factor} n / rho, {variant} charge", right.all() and 0 < below.sum() < len(below))
        yield from number(f"orders on the right side, {variant} charge", [right.sum(), len(right)])
    both = beside("own_bound")
    yield check("never more than the draw, own_bound charge", (both.epsilon_ops <= both.epsilon).all())


@claim(
    "G10",
    "ours",
    "Charge OPS, on the paper's ball, the smaller of what its pure cost implies and the bound of theorem 17, "
    "which holds on that ball too. Then OPS is nowhere behind diffused sampling: its loss in figure 3 comes from "
    "the charge.",
    "paired difference between OPS and diffused sampling, in test error and in log-likelihood: in no cell "
    "significantly against OPS (one-sided t, 5 %, Bonferroni over data sets, orders, epsilons and both scalings "
    "of the features)",
    variant="own_bound, corrected_own_bound",
)
def own_bound(logistic_pairs):
    rows = select(logistic_pairs[logistic_pairs.variant.str.endswith("own_bound")], first="ops", second="diffused")
    # The lead of OPS, which is the first method of each pair.
    rows = leads(rows).assign(lead=lambda table: -table.lead)
    for (dataset, variant, metric), part in rows.groupby(["dataset", "variant", "metric"]):
        name, limit = f"{metric} on {dataset}, {variant}", critical(rows, len(rows) // len(METRICS))
        same = (part.difference_mean == 0) & (part.difference_sem == 0)
        evidence = {"cells": len(part), "critical t": limit, "the same draws": same.sum(), **counts(part, limit)}
        yield check(name, (part.lead >= -limit).all(), of=dataset)
        yield from number(name, evidence | {"smallest t": part.lead.min()})


@claim(
    "G25",
    "ours",
    "OPS on its smallest ball is pure epsilon-DP. At epsilon = e^0 to e^3 its test error is more than {gain} "
    "below that of the paper's OPS on every data set.",
    "difference in test error, unpaired, above {gain} and above 0 (one-sided t, 5 %, Bonferroni) at every epsilon",
    variant="paper, smallest_ball",
)
def smallest_ball(logistic):
    rows = select(logistic, method="ops", metric="test_error")
    rows = rows[rows.log_epsilon.isin(LARGE) & (rows.order == rows.order.min())]
    both = select(rows, variant="smallest_ball").merge(
        select(rows, variant="paper"), on=["dataset", "log_epsilon"], suffixes=("", "_paper")
    )
    if both.empty:
        return
    yield word("gain", GAIN)
    both = both.assign(gain=both.mean_paper - both["mean"], error=np.hypot(both.sem_paper, both["sem"]))
    both = both.rename(columns={"mean": "smallest"})
    for dataset, part in both.groupby("dataset"):
        limit = critical(part, len(both))
        least = part.loc[part.gain.idxmin()]
        clear = ((part.gain > GAIN) & (part.gain > limit * part.error)).all()
        yield check(f"below the paper's OPS on {dataset}", clear, of=dataset)
        evidence = {"smallest gain": least.gain, "its standard error": least.error, "critical t": limit}
        evidence |= {"at ln epsilon": least.log_epsilon, "largest error on the smallest ball": part.smallest.max()}
        yield from number(f"on {dataset}", evidence)


@claim(
    "G26",
    "ours",
    "On Abalone at the largest order OPS on its smallest ball, though pure, has a lower test error than "
    "concentrated sampling at epsilon = e^0 to e^3, and than diffused sampling at e^2 and e^3.",
    "paired difference in test error over splits beyond 0 in favour of OPS at each of these epsilons (one-sided t, "
    "5 %, Bonferroni)",
    variant="smallest_ball",
)
def smallest_ball_beside_samplers(logistic_pairs):
    rows = select(logistic_pairs, variant="smallest_ball", first="ops", metric="test_error")
    # The lead of OPS, which is the first method of each pair.
    rows = leads(rows).assign(lead=lambda table: -table.lead)
    most = select(decisive(rows), dataset="abalone")
    most = most[most.order == most.order.max()]
    contests = {"concentrated": LARGE, "diffused": LARGE[2:]}
    parts = {second: most[(most.second == second) & most.log_epsilon.isin(at)] for second, at in contests.items()}
    if not (comparisons := sum(map(len, parts.values()))):
        return
    for second, part in parts.items():
        if part.empty:
            continue
        limit = critical(part, comparisons)
        yield check(f"ahead of {second} on abalone", (part.lead > limit).all(), of="abalone")
        least = part.loc[part.lead.idxmin()]
        evidence = {"critical t": limit, "smallest t": least.lead, "its difference": least.difference_mean}
        yield from number(f"{second} on abalone", {**evidence, "its standard error": least.difference_sem})
    for (dataset, second), part in rows[rows.draws == rows.draws.min()].groupby(["dataset", "second"]):
        # Evidence from all cells, on one split. The samplers are not pure DP, and are charged at their order.
        evidence = {"cells": len(part), **counts(part, critical(part, len(rows)))}
        yield from number(f"all cells, {second} on {dataset}", evidence)


@claim(
    "G29",
    "ours",
    "On Adult noise on the mode beats exact draws in some cells, in which the mode predicts the larger class for "
    "nearly every record. Both have the same power of the likelihood, but the noise is as wide as the prior, and "
    "wider than the posterior. In half of the draws it changes no prediction; in the rest it gets the likeliest "
    "records of the other class right.",
    "paired difference in test error between noise on the mode and diffused sampling, both with features scaled "
    "by public bounds: in favour of noise in some cell (one-sided t, 5 %, Bonferroni over orders and epsilons). "
    "In each such cell the power is the same, the draw's error is at least {majority:.0%} of that of predicting "
    "the larger class, and its log-likelihood is above that of the noise, at the same limit",
    variant="corrected",
)
def noise_on_the_mode(logistic, logistic_pairs):
    rows = select(logistic_pairs, variant="corrected", dataset="adult", first="output_noise", second="diffused")
    if rows.empty:
        return
    rows, cells = leads(rows), len(rows) // len(METRICS)
    limit = critical(rows, cells)
    yield word("majority", MAJORITY)
    adult = select(logistic, variant="corrected", dataset="adult")
    errors = select(rows, metric="test_error")
    ahead = errors[errors.lead < -limit]
    yield check("noise on the mode ahead in some cell", not ahead.empty)
    evidence = {"cells": cells, "critical t": limit, **counts(errors, limit)}
    yield from number("diffused sampling against noise on the mode", evidence)
    for cell in ahead.itertuples():
        at = {"order": cell.order, "log_epsilon": cell.log_epsilon}
        name = f"(order {cell.order:g}, ln epsilon = {cell.log_epsilon:g})"
        noise, draw = (one(adult, metric="test_error", method=method, **at) for method in ("output_noise", "diffused"))
        yield check(f"of one power {name}", abs(noise.coefficient - draw.coefficient) < 1e-6 * draw.coefficient)
        yield check(f"the draw near the majority {name}", draw["mean"] >= MAJORITY * draw.majority_error)
        likelihood = one(rows, metric="test_log_likelihood", **at)
        yield check(f"the draw's log-likelihood higher {name}", likelihood.lead > limit)
        evidence = {"test error, noise": noise["mean"], "draw": draw["mean"], "majority": draw.majority_error}
        evidence |= {"difference": cell.difference_mean, "its standard error": cell.difference_sem}
        yield from number(name.strip("()"), evidence)


@claim(
    "G27",
    "section 5.2",
    "The ball of radius c/beta is the smallest one that surely holds the mode of the posterior.",
    "whatever the data, the mode is no farther from 0 than sqrt(rho kappa/beta). At the power rho = 1, where this "
    "distance is largest, it must not be below c/beta (exact, no multiplicity)",
)
def radius_of_the_mode(ops_radius):
    # The bound at the power ρ is √ρ times the bound at the power 1.
    largest = float((ops_radius.mode_bound / np.sqrt(ops_radius.power)).max())
    radius = float(ops_radius.radius[ops_radius.times_smallest.isna()].min())
    yield check("a mode may be as far away as c/beta", largest >= radius)
    yield from number("largest norm of a mode, at power 1", largest)
    yield from number("c/beta", radius)
    yield from number("c/beta over that norm", radius / largest)


@claim(
    "G28",
    "ours",
    "The smallest ball that surely holds the mode has the radius sqrt(rho kappa/beta). At the same pure epsilon "
    "the test error of OPS on it is at most {loss} above that on the best ball, and below that on the paper's "
    "ball.",
    "farthest mode of equal records within {rim} of the smallest ball's rim; test error on the smallest ball at "
    "most {loss} above the least of all balls, and below that on the paper's ball (one-sided t, 5 %, Bonferroni "
    "over data sets)",
)
def radius_matters(ops_radius):
    yield word("loss", LOSS)
    yield word("rim", RIM)
    smallest = ops_radius[ops_radius.times_smallest == 1]
    reached = (smallest.mode_farthest / smallest.radius - 1).abs().max()
    yield check("a mode reaches the rim of the smallest ball", reached < RIM)
    yield from number("largest relative distance of the farthest mode from the rim", reached)
    rows = ops_radius[ops_radius.metric == "test_error"]
    for dataset, part in rows.groupby("dataset"):
        smallest, paper = one(part, times_smallest=1), one(part, times_smallest=None)
        best = part.loc[part["mean"].idxmin()]
        limit = student_limit(int(part.n_repeats.min()), LEVEL / rows.dataset.nunique())
        gain, error = paper["mean"] - smallest["mean"], np.hypot(paper["sem"], smallest["sem"])
        yield check(f"near the best radius on {dataset}", smallest["mean"] - best["mean"] <= LOSS, of=dataset)
        yield check(f"below the paper's ball on {dataset}", gain > limit * error, of=dataset)
        evidence = {"above the best radius": smallest["mean"] - best["mean"], "gain": gain, "its standard error": error}
        evidence |= {"best radius, in smallest ones": best.times_smallest, "critical t": limit}
        yield from number(f"on {dataset}", evidence)
