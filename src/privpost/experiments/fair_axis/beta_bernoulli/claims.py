"""All mechanisms for bits at the same (ε, δ): divergence, error of one draw, and calibration."""

import math
from collections import Counter

from privpost.evaluation.calibration import LEVEL, ks_limit
from privpost.evaluation.multiplicity import critical_value
from privpost.evaluation.rows import one, select
from privpost.evaluation.summaries import in_standard_errors
from privpost.experiments.claim_helpers import above, below
from privpost.lab.claims import check, claim, number, word

# Mechanisms whose release is a draw from a posterior.
WEIGHTED = ("diffused", "concentrated", "direct")
SAMPLING = (*WEIGHTED, "ops")
PAIRED = f"paired differences beyond {{z:.2f}} standard errors ({100 * LEVEL:g} % over {{pairs}} comparisons)"


def beaten(pairs, by: list[str], z: float) -> dict[tuple, dict[str, set[str]]]:
    """Return, by setting, each method with the methods that it leads by more than `z`, or equals.

    A difference of exactly 0 means one law: the true posterior, where the budget affords it.
    """
    by_setting: dict[tuple, dict[str, set[str]]] = {}
    for key, part in pairs.groupby(by):
        by_setting[key] = ahead = {method: set() for method in sorted({*part["first"], *part["second"]})}
        for first, second, lag in zip(part["first"], part["second"], in_standard_errors(part), strict=True):
            if lag < -z or lag == 0:
                ahead[first].add(second)
            if lag > z or lag == 0:
                ahead[second].add(first)
    return by_setting


def multiplicity(pairs):
    """Yield the words for the limit of all comparisons."""
    yield word("z", critical_value(len(pairs), LEVEL))
    yield word("pairs", len(pairs))


def budget(row) -> str:
    """Return the words for a row's budget."""
    return f"epsilon = {row.epsilon:g}, delta = {row.delta:g}"


@claim(
    "X1",
    "ours",
    "At every n, in most settings of epsilon and delta, a draw from a posterior is closest to the true posterior, "
    "or has that posterior's law, as others then do.",
    "KL, exact accounting: settings in which a draw is ahead of all others, or of the same law as those ahead; "
    f"{PAIRED}; undecided settings count against it",
    variant="exact",
)
def draws_closest(beta_bernoulli_pairs):
    z, settings, draws = critical_value(len(beta_bernoulli_pairs), LEVEL), Counter[int](), Counter[int]()
    winners: dict[str, dict[str, str]] = {"l1_error": {}, "kl": {}}
    for metric, of_metric in winners.items():
        rows = select(beta_bernoulli_pairs, metric=metric)
        for (accounting, n, *rest), ahead in beaten(rows, ["accounting", "n", "epsilon", "delta"], z).items():
            best = [method for method, others in ahead.items() if len(others) == len(ahead) - 1]
            of_metric["{}/n={}/eps={:g}/delta={:g}".format(accounting, n, *rest)] = " = ".join(best)
            if (metric, accounting) == ("kl", "exact"):
                settings[n] += 1
                draws[n] += bool({*best} & {*SAMPLING})
    yield from number("winners", winners)
    yield from number("settings with a winner", {metric: sum(map(bool, of.values())) for metric, of in winners.items()})
    for n in sorted(settings):
        name = f"settings in which a draw from a posterior is closest or ties, exact accounting, n = {n}"
        yield from number(name, draws[n])
        yield check(f"n = {n}", 2 * draws[n] > settings[n])
    yield from number("standard errors that decide", z)
    yield from multiplicity(beta_bernoulli_pairs)


@claim(
    "X2",
    "ours",
    "At n = {smallest} a draw from a weighted posterior is closest to the true posterior, at every epsilon.",
    "KL under exact accounting: some weighted posterior is ahead of every mechanism of another kind, or the "
    f"same law; {PAIRED}",
    variant="exact",
)
def weighted_closest(beta_bernoulli, beta_bernoulli_pairs):
    smallest = beta_bernoulli.n.min()
    here = {"metric": "kl", "accounting": "exact", "n": smallest}
    table, pairs = select(beta_bernoulli, **here), select(beta_bernoulli_pairs, **here)
    z = critical_value(len(beta_bernoulli_pairs), LEVEL)
    yield word("smallest", smallest)
    yield from multiplicity(beta_bernoulli_pairs)
    for (epsilon, delta), ahead in beaten(pairs, ["epsilon", "delta"], z).items():
        rows, others = select(table, epsilon=epsilon, delta=delta), {*ahead} - {*WEIGHTED}
        closest, name = any(ahead[method] >= others for method in WEIGHTED if method in ahead), budget(rows.iloc[0])
        yield check(name, closest)
        for kind, of_kind in (("weighted", rows.method.isin(WEIGHTED)), ("other", ~rows.method.isin(WEIGHTED))):
            if of_kind.any():
                best = rows.loc[rows["mean"][of_kind].idxmin()]
                evidence = {"method": best.method, "KL": best["mean"], "standard error": best["sem"]}
                yield from number(f"smallest KL, {kind}, {name}", evidence)
        lead = select(pairs, first="diffused", second="laplace", epsilon=epsilon, delta=delta)
        for row in lead.itertuples() if not closest else ():
            yield from number(f"share of the data that diffused keeps, {name}", one(rows, method="diffused").setting)
            yield from number(f"KL, diffused minus Laplace, {name}", row.difference_mean, row.difference_sem)


@claim(
    "X3",
    "ours",
    "Laplace noise beats Gaussian noise on a single count at the smallest delta; at the largest delta and the "
    "smallest epsilon the Gaussian is ahead.",
    f"KL, exact accounting; {PAIRED}",
    variant="exact",
)
def laplace_or_gaussian(beta_bernoulli, beta_bernoulli_pairs):
    z = critical_value(len(beta_bernoulli_pairs), LEVEL)
    noise = select(beta_bernoulli_pairs, metric="kl", accounting="exact", first="gaussian", second="laplace")
    corner = {"delta": noise.delta.max(), "epsilon": noise.epsilon.min()}
    strict, loose = select(noise, delta=noise.delta.min()), select(noise, **corner)
    for rows, winner, ahead in ((strict, "Laplace", above), (loose, "Gaussian", below)):
        for row in rows.itertuples():
            name = f"n = {row.n}, {budget(row)}"
            yield check(f"{winner} ahead: {name}", ahead(row, "difference", z))
            evidence = {"difference": row.difference_mean, "standard error": row.difference_sem}
            yield from number(f"KL, Gaussian minus Laplace, {name}", evidence)
    settings = select(beta_bernoulli, accounting="exact", **corner).groupby("method").setting.first()
    deviation, scale = settings["gaussian"], 1 / settings["laplace"]
    yield from number("standard deviation and median error, gaussian, records", [deviation, 0.6745 * deviation])
    laplace = [math.sqrt(2) * scale, math.log(2) * scale]
    yield from number("standard deviation and median error, laplace, records", laplace)
    yield from multiplicity(beta_bernoulli_pairs)


@claim(
    "X4",
    "ours",
    "Taken as a posterior, no release is calibrated at the smallest epsilon.",
    f"KS distance of the quantile of theta above {{limit:.4f}} ({100 * LEVEL:g} % over {{tests}} tests)",
    variant="converted, exact",
)
def calibrated_nowhere(beta_bernoulli):
    ks = beta_bernoulli[(beta_bernoulli.metric == "ks") & (beta_bernoulli.method != "non_private")]
    repeats = int(beta_bernoulli.n_repeats.min())
    limit, passed = ks_limit(repeats, LEVEL / max(len(ks), 1)), {}
    yield word("limit", limit)
    yield word("tests", len(ks))
    for row in select(ks, epsilon=ks.epsilon.min()).itertuples():
        name = f"{row.method}, {row.accounting}, n = {row.n}, delta = {row.delta:g}"
        yield check(name, row.mean > limit)
        if row.mean <= limit:
            passed[name] = {"KS": row.mean, "standard error": row.sem}
            yield from number(f"weight of the data, records, {name}", row.setting * row.n)
    shares = {method: (part["mean"] > limit).mean() for method, part in ks.groupby("method")}
    yield from number("share of all settings that are rejected", shares)
    yield from number("not rejected at the smallest epsilon", passed)
    yield from number("KS beyond which all tests jointly, and a single one, reject", [limit, ks_limit(repeats, LEVEL)])


@claim(
    "X5",
    "ours",
    "Exact privacy curves halve the divergence of posterior samples from the true posterior that converted "
    "guarantees leave.",
    "median over n, epsilon and delta of the ratio of mean KL, exact accounting over converted, at most one half; "
    "each mechanism",
    variant="converted, exact",
)
def exact_curves_pay(beta_bernoulli):
    rows = select(beta_bernoulli[beta_bernoulli.method.isin(["ops", "diffused", "concentrated"])], metric="kl")
    wide = rows.pivot_table(index=["method", "n", "epsilon", "delta"], columns="accounting", values="mean").dropna()
    ratios = (wide["exact"] / wide["converted"]).groupby("method").median().to_dict()
    for method, ratio in ratios.items():
        yield check(method, ratio <= 0.5)
    yield from number("median of exact / converted", ratios)
