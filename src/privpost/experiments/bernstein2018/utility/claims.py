"""Claims on the distance of private posteriors from the true posterior (Bernstein and Sheldon 2018, figure 1c)."""

import numpy as np

from privpost.evaluation.calibration import LEVEL
from privpost.evaluation.multiplicity import critical_value
from privpost.evaluation.rows import select
from privpost.experiments.claim_helpers import joint_limit
from privpost.lab.claims import check, claim, number, untestable, word

# At the smallest n and epsilon, Gibbs has to save more than this share of the naive method's MMD².
MUCH = 0.5
# At the largest n and epsilon, Gibbs has to save less than this share of the naive method's MMD².
LITTLE = 0.2


def bounded(utility, method: str):
    """Return a method's rows on models with bounded records."""
    return select(utility[utility.model != "exponential"], method=method)


@claim(
    "B5",
    "section 4, figure 1c",
    "Gibbs's MMD to the true posterior is at most the naive method's in every cell.",
    "paired over trials: mean of MMD²(naive) − MMD²(gibbs) not below 0 by more than the one-sided Bonferroni limit "
    "(5 % over all cells)",
)
def at_least_as_good(utility):
    rows = bounded(utility, "gibbs")
    # A one-sided test at 5 % has the limit of a two-sided test at 10 %.
    limit = critical_value(len(rows), 0.1)
    for row in rows.itertuples():
        name, z = f"{row.model}, n={row.n:g}, epsilon={row.epsilon:g}", row.below_naive_mean / row.below_naive_sem
        yield from number(f"(naive − gibbs)/standard error, {name}", z)
        less = f"MMD² of naive less that of Gibbs, {name}"
        yield from number(less, row.below_naive_mean, row.below_naive_sem, of=name)
        yield check(name, z > -limit)


@claim(
    "B6",
    "section 4",
    "The naive method converges to the true posterior as n grows.",
    "per model and epsilon: no increase of the mean of MMD² in n by more than {allowed}, and a log-log slope of the "
    "MMD over the whole range below −0.5",
)
def naive_converges(utility):
    curves = bounded(utility, "naive").sort_values("n").groupby(["model", "epsilon"])
    limit, words = joint_limit(int((curves.size() - 1).sum()))
    yield word("allowed", words)
    for (model, epsilon), rows in curves:
        name, ends = f"{model}, epsilon={epsilon:g}", rows.iloc[[0, -1]]
        mmd, range_of_n = np.maximum(ends.mmd.to_numpy(), 1e-300), np.log(rows.n.iloc[-1] / rows.n.iloc[0])
        slope = np.log(mmd[1] / mmd[0]) / range_of_n
        # The delta method gives the standard error of the MMD, which is the root of the mean of MMD².
        errors = 0.5 * ends.mmd2_sem.to_numpy() / mmd
        yield from number(f"MMD at the smallest and largest n, {name}", list(ends.mmd))
        yield from number(f"standard errors of MMD at the smallest and largest n, {name}", list(errors))
        yield from number(f"log-log slope of MMD in n, {name}", slope)
        yield from number(f"standard error of the slope, {name}", np.hypot(*(errors / mmd)) / range_of_n)
        decreases = (np.diff(rows.mmd2_mean) < limit * np.hypot(rows.mmd2_sem[1:], rows.mmd2_sem[:-1].values)).all()
        # The noise moves the posterior mean by O(1/(nε)), so the slope tends to −1. The check asks for −1/2.
        yield check(f"MMD decreases in n ({name})", decreases and slope < -0.5, of=model)


@claim(
    "B12",
    "section 4, methods and figure 1c",
    "The noise that the naive method ignores matters at moderate n. It becomes negligible as n and epsilon grow.",
    "share of the naive MMD² that Gibbs saves, paired over trials: above 1/2 at the smallest n and epsilon, below "
    "1/5 at the largest, and smaller there, each with {allowed}; the naive mean counts as known",
)
def gain_vanishes(utility):
    places = ["model", "n", "epsilon"]
    gibbs, naive = (bounded(utility, method).set_index(places).sort_index() for method in ("gibbs", "naive"))
    shares = (gibbs.below_naive_mean / naive.mmd2_mean).dropna()
    errors = (gibbs.below_naive_sem / naive.mmd2_mean).abs()
    limit, words = joint_limit(3 * shares.index.unique("model").size)
    yield word("allowed", words)
    for model, share in shares.groupby("model"):
        low, high = share.index[0], share.index[-1]
        for _, n, epsilon in (low, high):
            name = f"share of the naive MMD² that Gibbs saves, {model}, n={n:g}, epsilon={epsilon:g}"
            yield from number(name, share[model, n, epsilon], errors[model, n, epsilon])
        both = np.hypot(errors[low], errors[high])
        much, little = share[low] - limit * errors[low] > MUCH, share[high] + limit * errors[high] < LITTLE
        yield check(f"more than half at the smallest n and epsilon ({model})", much, of=model)
        yield check(f"less than a fifth at the largest ({model})", little, of=model)
        less = share[low] - share[high] > limit * both
        yield check(f"less at the largest than at the smallest ({model})", less, of=model)


@claim(
    "B14",
    "section 4, results",
    "On redacted sums the naive method, which sees the unredacted sum, is closer to the true posterior at some "
    "points, but not at all.",
    "paired over trials: MMD²(naive) − MMD²(gibbs) above 0 at some point and below 0 at another, each by more than "
    "the two-sided Bonferroni limit (5 % over all points)",
)
def redacted(utility):
    # The naive method reads the unredacted sum.
    rows = select(utility, model="exponential", method="gibbs")
    limit, z = critical_value(max(1, len(rows)), LEVEL), rows.below_naive_mean / rows.below_naive_sem
    yield from number("standard errors asked for", limit)
    for row, errors in zip(rows.itertuples(), z, strict=True):
        name = f"n={row.n:g}, epsilon={row.epsilon:g}"
        yield from number(f"(naive − gibbs)/standard error, {name}", errors)
        yield from number(f"MMD² of naive less that of Gibbs, {name}", row.below_naive_mean, row.below_naive_sem)
    if len(rows):
        yield check("Gibbs is closer at some point", (z > limit).any())
        yield check("naive is closer at some point", (z < -limit).any())
    yield untestable("no rows to compare")
