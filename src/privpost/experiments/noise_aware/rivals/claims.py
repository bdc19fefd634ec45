"""Noise-aware inference by several methods against the exact posterior of the same releases (ours)."""

import numpy as np

from privpost.evaluation.rows import select
from privpost.evaluation.spread import Spread, halves
from privpost.lab.claims import check, claim, number, numbers, word

# A law's draws may be so many times as far from the reference as independent ones; the estimate of how many they are
# worth, and three sets of about 20 releases, vary by about a quarter.
LIMIT = 1.6
# Expected 1-Wasserstein distance of m draws of a normal law from it, times √m.
NORMAL = 1.43
# Distance at which half of the chains may be somewhere else, in standard deviations.
FAR = 0.3
# Draws of a release that are too few to say anything.
FEW = 50
# Samplers whose law is the posterior itself, and which approximate it.
EXACT = ("data_augmentation", "simulation", "records", "table")
KEYS = ["task", "n", "epsilon"]
LEVEL = 0.05


def excess(rows):
    """Return the distance of rows over that of as many independent draws as theirs are worth."""
    return rows.distance / (NORMAL * np.sqrt(1 / rows.ess + 1 / rows.reference_draws))


def of_method(rivals, method: str):
    """Return a method's rows whose draws are worth enough."""
    rows = select(rivals, method=method)
    return rows.assign(excess=excess(rows))[rows.ess >= FEW]


@claim(
    "N11",
    "ours",
    "Samplers of latent records, tables and weighted simulations have the exact posterior given the release: what "
    "separates them from it is the number of their draws.",
    f"distance of each row over that of as many independent draws as these are worth, where these are at least {FEW}: "
    f"median at most {LIMIT}, per method; {{rows}}",
)
def exact_laws(rivals):
    told = []
    for method in EXACT:
        rows = of_method(rivals, method)
        if rows.empty:
            continue
        median = float(rows.excess.median())
        yield check(f"{method.replace('_', ' ')} has the posterior's law", median <= LIMIT)
        yield from number(f"median ratio of distances, {method.replace('_', ' ')}", median)
        yield from number(f"largest ratio of distances, {method.replace('_', ' ')}", rows.excess.max())
        told.append(f"{len(rows)} rows of {method.replace('_', ' ')}")
    yield word("rows", ", ".join(told))


@claim(
    "N12",
    "ours",
    "Over all tasks a posterior that takes the noise into account is calibrated, and one that does not is too narrow.",
    f"mean z² of the true parameters over all rows: two-sided chi-squared test at level {LEVEL} over the methods, with "
    "as many independent values as data sets, since releases at several epsilon share them; "
    "for the naive posterior and its widening the half that finds posteriors too narrow",
)
def calibrated(rivals):
    methods = [name for name in dict.fromkeys(rivals.method) if name not in ("naive", "widened")]
    for method in [*methods, "naive", "widened"]:
        rows = select(rivals, method=method)
        if rows.empty:
            continue
        # Data sets are shared by the values of ε.
        values = float(rows.groupby(["task", "n"]).n_releases.max().sum())
        mean = float((rows.z2 * rows.n_releases).sum() / rows.n_releases.sum())
        spread = Spread(mean, values, *halves(mean, values))
        name = method.replace("_", " ")
        if method in methods:
            yield check(f"{name} is calibrated", spread.p_value > LEVEL / len(methods))
        else:
            yield check(f"{name} is too narrow", spread.narrow < LEVEL / 2)
        yield from numbers({f"mean z², {name}": mean, f"p-value, {name}": spread.p_value})
        yield from number(f"fewest effective draws, {name}", rows.ess.min())


@claim(
    "N13",
    "ours",
    "The normal approximations of the latent sum need records: their distance from the exact posterior is that of the "
    "number of their draws at n = 1000, and more at n = 10.",
    "distance over that of as many independent draws, median over models and epsilon, of quadrature and of the normal "
    f"likelihood with the noise's variance added: at most {LIMIT} at the largest n; above {LIMIT} somewhere at the "
    "smallest n",
)
def normal_sums(rivals):
    for method in ("quadrature", "noise_calibrated"):
        rows = of_method(rivals, method)
        if rows.empty:
            continue
        name = method.replace("_", " ")
        large, small = (rows[rows.n == end(rows.n)].excess for end in (max, min))
        yield check(f"{name} is exact at n = {rows.n.max()}", large.median() <= LIMIT)
        yield check(f"{name} is not at n = {rows.n.min()}", small.max() > LIMIT)
        yield from numbers(
            {f"median ratio, {name}, largest n": large.median(), f"largest ratio, {name}, smallest n": small.max()}
        )


@claim(
    "N14",
    "ours",
    "Normal likelihoods that add the variance of the noise do not have its law: at small epsilon, where Laplace noise "
    "rules, they are farther from the exact posterior than its quadrature.",
    "distance of the normal likelihood over that of quadrature, redacted sums, at the smallest epsilon: above 1 beyond "
    "two joint standard errors in each row with at least 100 records",
)
def laplace_tails(rivals):
    rows = rivals[(rivals.epsilon == rivals.epsilon.min()) & (rivals.n >= 100)].set_index(KEYS)
    normal, laplace = (rows[rows.method == name] for name in ("noise_calibrated", "quadrature"))
    both = normal.join(laplace[["distance", "distance_sem"]].add_suffix("_laplace"), how="inner")
    if both.empty:
        return
    gap = (both.distance - both.distance_laplace) / np.hypot(both.distance_sem, both.distance_sem_laplace)
    for (task, n, _), value in gap.items():
        yield check(f"farther ({task}, n = {n})", value > 2)
    yield from number("smallest ratio of distances", (both.distance / both.distance_laplace).min())
    yield from number("largest ratio of distances", (both.distance / both.distance_laplace).max())


@claim(
    "N15",
    "ours",
    "Four chains that begin among the prior's draws reach the exact posterior within 500 steps.",
    f"distance of Gibbs and of data augmentation, mean over releases: at most {FAR:g} standard deviations in every row "
    f"whose draws are worth at least {FEW}, by task",
)
def reached(rivals):
    for method in ("gibbs", "data_augmentation"):
        rows = of_method(rivals, method)
        for task, part in rows.groupby("task", sort=False):
            yield check(f"{method.replace('_', ' ')} reaches it ({task})", bool((part.distance <= FAR).all()))
            yield from number(f"largest distance, {method.replace('_', ' ')}, {task}", part.distance.max())
