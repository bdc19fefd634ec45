"""Distance of private posteriors from the true one (Bernstein and Sheldon 2018, figure 1c)."""

import numpy as np

from privpost.evaluation.calibration import LEVEL
from privpost.evaluation.claims import Claim, from_checks
from privpost.evaluation.multiplicity import critical_value
from privpost.experiments.claim_helpers import estimate


def claims(tables) -> list[Claim]:
    """Score B5, B6, B12, and B14, that redacted sums decide nothing."""
    table = tables["utility"]
    table = table[table.method != "exact"]
    bounded = table[table.model != "exponential"]
    redacted = table[table.model == "exponential"]
    return [_at_least_as_good(bounded), _naive_converges(bounded), _gain_vanishes(bounded), _inconclusive(redacted)]


def _inconclusive(table) -> Claim:
    """B14: where the naive method reads the unredacted sum it is sometimes better, sometimes worse."""
    rows = table[table.method == "gibbs"]
    limit, z = critical_value(max(1, len(rows)), LEVEL), rows.below_naive_mean / rows.below_naive_sem
    evidence: dict = {"standard errors asked for": limit}
    for row, errors in zip(rows.itertuples(), z, strict=True):
        name = f"n={row.n:g}, epsilon={row.epsilon:g}"
        evidence[f"(naive − gibbs)/standard error, {name}"] = errors
        evidence |= estimate(f"MMD² of naive less that of Gibbs, {name}", row.below_naive_mean, row.below_naive_sem)
    checks = {"Gibbs is closer at some point": (z > limit).any(), "naive is closer at some point": (z < -limit).any()}
    return from_checks(
        "B14",
        "section 4, results",
        "On redacted sums the naive method, which sees more, is closer to the true posterior at some points, not all.",
        "paired over trials: MMD²(naive) − MMD²(gibbs) above 0 at some point and below 0 at another, each by more than "
        "the two-sided Bonferroni limit (5 % over all points)",
        checks if len(rows) else {},
        evidence,
        untestable="no rows to compare",
    )


# Of the naive method's MMD², what Gibbs saves: more than half where noise dominates, a fifth where it is negligible.
MUCH, LITTLE = 0.5, 0.2
# Standard errors beyond which they are different.
LIMIT = 4.0


def _gain_vanishes(table) -> Claim:
    """B12: the noise that naive inference ignores matters at moderate n only."""
    checks, evidence = {}, {}
    gibbs, naive = (table[table.method == method].set_index(["n", "epsilon"]) for method in ("gibbs", "naive"))
    for model in sorted(table.model.unique()):
        one, other = gibbs[gibbs.model == model], naive[naive.model == model]
        share = one.below_naive_mean / other.mmd2_mean
        error = (one.below_naive_sem / other.mmd2_mean).abs()
        low, high = min(share.index), max(share.index)
        for corner in (low, high):
            name = f"share of the naive MMD² that Gibbs saves, {model}, n={corner[0]:g}, epsilon={corner[1]:g}"
            evidence |= estimate(name, share[corner], error[corner])
        checks[f"more than half at the smallest n and epsilon ({model})"] = share[low] - LIMIT * error[low] > MUCH
        checks[f"less than a fifth at the largest ({model})"] = share[high] - LIMIT * error[high] < LITTLE
        both = np.hypot(error[low], error[high])
        checks[f"less at the largest than at the smallest ({model})"] = share[low] - share[high] > LIMIT * both
    return from_checks(
        "B12",
        "section 4, methods and figure 1c",
        "The noise that the naive method ignores matters at moderate n, and becomes negligible as n and epsilon grow.",
        "share of the naive MMD² that Gibbs saves, paired over trials: above 1/2 at the smallest n and epsilon, below "
        f"1/5 at the largest, and smaller there, each with {LIMIT:g} standard errors (by the naive mean as if it were "
        "known)",
        checks,
        evidence,
    )


def _at_least_as_good(table) -> Claim:
    rows = table[table.method == "gibbs"]
    # One-sided 5 % over the cells: two-sided 10 %.
    limit = critical_value(len(rows), 0.1)
    checks, evidence = {}, {}
    for row in rows.itertuples():
        name = f"{row.model}, n={row.n:g}, epsilon={row.epsilon:g}"
        z = row.below_naive_mean / row.below_naive_sem
        evidence[f"(naive − gibbs)/standard error, {name}"] = z
        less = f"MMD² of naive less that of Gibbs, {name}"
        evidence |= estimate(less, row.below_naive_mean, row.below_naive_sem, of=name)
        checks[name] = z > -limit
    return from_checks(
        "B5",
        "section 4, figure 1c",
        "Gibbs's MMD to the true posterior is at most the naive method's in every cell.",
        "paired over trials: mean of MMD²(naive) − MMD²(gibbs) not below 0 by more than the one-sided Bonferroni limit "
        "(5 % over all cells)",
        checks,
        evidence,
    )


def _naive_converges(table) -> Claim:
    checks, evidence = {}, {}
    naive = table[table.method == "naive"].sort_values("n")
    for (model, epsilon), rows in naive.groupby(["model", "epsilon"]):
        first, last = rows.iloc[0], rows.iloc[-1]
        name = f"{model}, epsilon={epsilon:g}"
        slope = np.log(max(last.mmd, 1e-300) / first.mmd) / np.log(last.n / first.n)
        evidence[f"MMD at the smallest and largest n, {name}"] = [first.mmd, last.mmd]
        # By the delta method: the MMD is the root of the mean of MMD².
        errors = [0.5 * float(r.mmd2_sem / max(r.mmd, 1e-300)) for r in (first, last)]
        evidence[f"standard errors of MMD at the smallest and largest n, {name}"] = errors
        evidence[f"log-log slope of MMD in n, {name}"] = slope
        relative = np.hypot(errors[0] / first.mmd, errors[1] / max(last.mmd, 1e-300))
        evidence[f"standard error of the slope, {name}"] = relative / np.log(last.n / first.n)
        decreases = (np.diff(rows.mmd2_mean) < LIMIT * np.hypot(rows.mmd2_sem[1:], rows.mmd2_sem[:-1].values)).all()
        # The noise moves the posterior mean by O(1/(nε)): the slope tends to −1; half of it is asked for.
        checks[f"MMD decreases in n ({name})"] = decreases and slope < -0.5
    return from_checks(
        "B6",
        "section 4",
        "The naive method converges to the true posterior as n grows.",
        f"per model and epsilon: no increase of the mean of MMD² in n by more than {LIMIT:g} standard errors, and a "
        "log-log slope of the MMD over the whole range below −0.5",
        checks,
        evidence,
    )
