"""All mechanisms for binary data at the same (ε, δ): divergence, error of one draw, and calibration."""

import math
from collections import Counter

from privpost.evaluation.calibration import LEVEL
from privpost.evaluation.multiplicity import critical_value
from privpost.evaluation.rows import select
from privpost.evaluation.summaries import in_standard_errors
from privpost.experiments.claim_helpers import above, below
from privpost.lab.claims import check, claim, number, word

# Mechanisms whose release is a draw from a posterior.
SAMPLING = ("diffused", "concentrated", "direct", "ops")
PAIRED = f"paired differences beyond {{z:.2f}} standard errors ({100 * LEVEL:g} % over {{pairs}} comparisons)"


def beaten(pairs, by: list[str], z: float) -> dict[tuple, dict[str, set[str]]]:
    """Return, by setting and method, the methods that this one equals, or beats by more than `z` standard errors."""
    by_setting: dict[tuple, dict[str, set[str]]] = {}
    for key, part in pairs.groupby(by):
        by_setting[key] = ahead = {method: set() for method in sorted({*part["first"], *part["second"]})}
        # If a difference is exactly 0, the budget allows the true posterior, and both methods have this law.
        for first, second, lag in zip(part["first"], part["second"], in_standard_errors(part), strict=True):
            if lag < -z or lag == 0:
                ahead[first].add(second)
            if lag > z or lag == 0:
                ahead[second].add(first)
    return by_setting


def multiplicity(pairs):
    """Yield words for a claim's text: `z`, the critical value at the joint level, and `pairs`, the number of pairs."""
    yield word("z", critical_value(len(pairs), LEVEL))
    yield word("pairs", len(pairs))


def budget(row) -> str:
    """Return a row's budget as text."""
    return f"epsilon = {row.epsilon:g}, delta = {row.delta:g}"


@claim(
    "X1",
    "ours",
    "At every n, in most settings of epsilon and delta, a draw from a posterior is closest to the true posterior, "
    "or has the same law as those that are.",
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
    "X5",
    "ours",
    "With exact privacy curves the divergence of posterior draws from the true posterior is at most half of that "
    "with converted guarantees.",
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
