"""Claims on methods of noise-aware inference, compared with the exact posterior given the same releases (ours)."""

import itertools

import numpy as np

from privpost.evaluation.rows import select
from privpost.evaluation.spread import Spread, halves, seen
from privpost.experiments.claim_helpers import joint_limit
from privpost.inference_benchmark.leaderboard import POINT, TOLD
from privpost.lab.claims import check, claim, number, numbers, word

# Largest `excess` that draws from the exact posterior may have. It is above 1, as the estimated effective sample size
# has an error of about a quarter.
LIMIT = 1.6
# √m times the expected 1-Wasserstein distance of m normal draws from the normal law: √(2/π) ∫ √(F(1 − F)), m large.
NORMAL = 1.288
# Chains have reached the posterior if the mean distance is at most this, in standard deviations. The mean distance of
# 50 effective draws is 0.2.
FAR = 0.3
# Largest mean relative error of a method's posterior sd over the method's rows. The sd of 400 exact draws is 0.3 % low.
OF_SD = 0.01
# Rows with fewer effective draws are left out, as they carry too little information.
FEW = 50
# Samplers whose law is the posterior itself.
EXACT = ("data_augmentation", "simulation", "abc_smc", "reversible_jump", "records", "table")
LEVEL = 0.05
NETWORKS = ("collider", "three_parents")
COUNTS = ("binomial", "multinomial")
# Fewest effective draws of the samplers that the classifier is asked about, and the share of points at which the
# classifier has to detect an error.
MANY, SEEN = 500, 0.8


def excess(rows):
    """Return each row's distance from the reference draws, divided by its expectation for `ess` independent draws."""
    return rows.distance / (NORMAL * np.sqrt(1 / rows.ess + 1 / rows.reference_draws))


def of_method(rivals, method: str):
    """Return a method's rows with at least FEW effective draws, with a column of their `excess`."""
    rows = select(rivals, method=method)
    return rows.assign(excess=excess(rows))[rows.ess >= FEW]


def sd_error(rows) -> float:
    """Return the mean relative error of the posterior's sd over rows, weighted by the rows' precision."""
    # The standard error from few releases can be small by chance, so it counts as at least 0.003.
    weight = 1 / np.maximum(rows.sd_error_sem, 0.003) ** 2
    return float((weight * rows.sd_error).sum() / weight.sum())


def spread_of(rows) -> Spread:
    """Return the test of z² over one method's rows of `rivals`, which have the same data sets at every ε."""
    values = float(rows.groupby(["task", "n"]).n_releases.max().sum())
    mean = float((rows.z2 * rows.n_releases).sum() / rows.n_releases.sum())
    return Spread(mean, values, *halves(mean, values))


def spread_at(points) -> Spread:
    """Return the test of z² over one method's rows of `rivals_calibration`, which have independent data sets."""
    values = float(points.z2_values.sum())
    mean = float((points.z2 * points.z2_values).sum() / values)
    return Spread(mean, values, *halves(mean, values))


@claim(
    "N11",
    "ours",
    "Samplers of latent records and tables, and weighted simulations, have the exact posterior given the release. "
    "Only the number of their draws separates them from it.",
    f"rows whose draws are worth at least {FEW}, per method: the distance over that of as many independent draws "
    f"is at most {LIMIT} in the median, and at epsilon of at most 1 the mean error of the posterior's sd is within "
    f"{OF_SD:.0%}. Only the second sees a noise scale told 20 % too small or 25 % too large, and may not see less; "
    "{rows}",
)
def exact_laws(rivals):
    counted_rows = []
    for method in EXACT:
        rows, name = of_method(rivals, method), method.replace("_", " ")
        noisy = rows[rows.epsilon <= 1]
        if noisy.empty:
            continue
        median, error = float(rows.excess.median()), sd_error(noisy)
        yield check(f"{name} has the posterior's law", median <= LIMIT)
        yield check(f"{name} has the posterior's width", abs(error) <= OF_SD)
        yield from numbers({f"median ratio of distances, {name}": median, f"error of the sd, {name}": error})
        yield from number(f"largest ratio of distances, {name}", rows.excess.max())
        counted_rows.append(f"{len(rows)} rows of {name}")
    yield word("rows", ", ".join(counted_rows))


@claim(
    "N12",
    "ours",
    "A posterior that takes the noise into account is calibrated over all tasks; one that does not is too narrow.",
    "true parameters of {releases} releases at each point, n = 100 (or fewer) and epsilon = 1: two-sided chi-squared "
    "test of z² over all points, and that of Kolmogorov and Smirnov on ranks at each, together at level "
    f"{LEVEL} over the methods ({{seen}}); for the naive posterior the half of z² that finds posteriors too narrow",
)
def calibrated(rivals_calibration):
    methods = [name for name in dict.fromkeys(rivals_calibration.method) if name != "naive"]
    least: list[tuple[float, float]] = []
    for method in [*methods, "naive"]:
        points = select(rivals_calibration, method=method)
        if points.empty:
            continue
        spread, name, level = spread_at(points), method.replace("_", " "), LEVEL / (2 * len(methods))
        if method in methods:
            uniform = points.rank_p.min() * len(points)
            yield check(f"{name} is calibrated", spread.p_value > level and uniform > level)
            yield from numbers({f"p-value, {name}": spread.p_value, f"p-value of ranks, {name}": min(1.0, uniform)})
        else:
            yield check(f"{name} is too narrow", spread.narrow < LEVEL / 2)
        least.append(seen(spread.values, level))
        for share in (50, 95):
            yield from number(f"coverage of {share} % intervals, {name}", points[f"coverage_{share}"].mean())
        yield from numbers({f"mean z², {name}": spread.mean, f"points, {name}": len(points)})
    narrow, wide = np.max(least, axis=0)
    yield word("releases", rivals_calibration.n_releases.max())
    yield word("seen", f"every test sees an sd {narrow:.0%} too small or {wide:.0%} too large with a chance of 80 %")


@claim(
    "N5",
    "ours",
    "On networks whose nodes have two or three parents the noise-aware posterior of Laplace-released counts is "
    "calibrated, and nearer to the exact one than the posterior that ignores the noise, at every n and epsilon.",
    "chains on the records and on the table: mean z² of the true parameters over all rows of a network, two-sided "
    f"chi-squared test at level {LEVEL} over both, with as many independent values as data sets ({{seen}}); the naive "
    "posterior's distance less theirs above 0 by {allowed} in every row of a method",
)
def networks(rivals):
    told: list = []
    for network, method in itertools.product(NETWORKS, ("records", "table")):
        table = select(rivals, task=network)
        naive, rows = select(table, method="naive").set_index(["n", "epsilon"]), select(table, method=method)
        if rows.empty:
            continue
        spread = spread_of(rows)
        yield check(f"{method} is calibrated ({network})", spread.p_value > LEVEL / 2, of=network)
        yield from numbers(
            {f"mean z², {method}, {network}": spread.mean, f"p-value, {method}, {network}": spread.p_value}
        )
        limit, allowed = joint_limit(len(rows))
        gains = {}
        for row in rows.itertuples():
            other = naive.loc[(row.n, row.epsilon)]
            gap, error = other.distance - row.distance, np.hypot(other.distance_sem, row.distance_sem)
            at = f"n = {row.n}, epsilon = {row.epsilon:g}"
            yield check(f"{method} is nearer ({at}, {network})", bool(gap > limit * error), of=network)
            gains[at] = other.distance / row.distance
        yield from number(f"distance of the naive posterior over that of {method}, {network}", gains)
        # Both networks have equally many values, so the last network stands for both.
        narrow, wide = seen(spread.values, LEVEL / 2)
        seen_by_it = f"it sees an sd {narrow:.0%} too small or {wide:.0%} too large with a chance of 80 %"
        told = [word("seen", seen_by_it), word("allowed", allowed)]
    yield from told


@claim(
    "N13",
    "ours",
    "Quadrature with a normal law of the latent sum needs records: at n = 1000 it is as near to the exact "
    "posterior as its number of draws allows, at n = 10 not everywhere.",
    f"distance of quadrature over that of as many independent draws: at most {LIMIT} in every row of the largest n, "
    f"with the posterior's sd within {OF_SD:.0%}; above {LIMIT} somewhere at the smallest n",
)
def normal_sums(rivals):
    rows = of_method(rivals, "quadrature")
    if rows.empty:
        return
    large, small = (rows[rows.n == end(rows.n)] for end in (max, min))
    error = sd_error(large)
    yield check(f"exact at n = {rows.n.max()}", bool((large.excess <= LIMIT).all()))
    yield check(f"of the exact width at n = {rows.n.max()}", abs(error) <= OF_SD)
    yield check(f"not exact at n = {rows.n.min()}", bool(small.excess.max() > LIMIT))
    yield from numbers(
        {
            "largest ratio, quadrature, largest n": large.excess.max(),
            "largest ratio, quadrature, smallest n": small.excess.max(),
            "error of the sd, largest n": error,
        }
    )


@claim(
    "N14",
    "ours",
    "A normal likelihood with the variance of Laplace noise is not exact: at small epsilon, where the noise "
    "rules, it is farther from the exact posterior than quadrature.",
    "distance of the normal likelihood over that of quadrature, redacted sums, at the smallest epsilon: above 1 beyond "
    "two joint standard errors in each row with at least 100 records",
)
def laplace_tails(rivals):
    rows = rivals[(rivals.epsilon == rivals.epsilon.min()) & (rivals.n >= 100)].set_index(POINT)
    normal, laplace = (rows[rows.method == name] for name in ("noise_calibrated", "quadrature"))
    both = normal.join(laplace[["distance", "distance_sem"]].add_suffix("_laplace"), how="inner")
    if both.empty:
        return
    gap = (both.distance - both.distance_laplace) / np.hypot(both.distance_sem, both.distance_sem_laplace)
    for (task, _, n, _), value in gap.items():
        yield check(f"farther ({task}, n = {n})", value > 2, of=task)
    yield from number("smallest ratio of distances", (both.distance / both.distance_laplace).min())
    yield from number("largest ratio of distances", (both.distance / both.distance_laplace).max())


@claim(
    "N15",
    "ours",
    "Four chains that start from draws of the prior reach the exact posterior within 500 steps.",
    f"distance of Gibbs and of data augmentation, mean over releases: at most {FAR:g} standard deviations in every row "
    f"whose draws are worth at least {FEW}, by task",
)
def reached(rivals):
    for method in ("gibbs", "data_augmentation"):
        rows = of_method(rivals, method)
        for task, part in rows.groupby("task", sort=False):
            near = bool((part.distance <= FAR).all())
            yield check(f"{method.replace('_', ' ')} reaches it ({task})", near, of=task)
            yield from number(f"largest distance, {method.replace('_', ' ')}, {task}", part.distance.max())


@claim(
    "N22",
    "ours",
    "A classifier cannot tell an exact method's draws from the posterior's. It can if their standard deviation is "
    "a tenth too small.",
    f"the classifier's accuracy on as many draws of either, mean over releases: below {TOLD} at every point; for "
    f"samplers, where their draws are worth at least {MANY}. On exact draws made a tenth too narrow it is larger "
    f"than on exact draws by two joint standard errors, at {SEEN:.0%} of the points or more",
)
def indistinguishable(rivals, classifier):
    for method in ("exact", *EXACT):
        rows, name = select(rivals, method=method), method.replace("_", " ")
        rows = rows[rows.ess >= MANY]
        if rows.empty:
            continue
        yield check(f"{name} is not told apart", bool((rows.c2st < TOLD).all()))
        yield from numbers({f"largest accuracy, {name}": rows.c2st.max(), f"points, {name}": len(rows)})
    exact = select(rivals, method="exact").set_index(POINT)[["c2st", "c2st_sem"]]
    both = classifier.set_index(POINT).join(exact)
    told = both.narrow - both.c2st > 2 * np.hypot(both.narrow_sem, both.c2st_sem)
    yield check("a tenth too narrow is told apart", bool(told.mean() >= SEEN))
    yield from numbers({"share of points where a tenth too narrow is told apart": told.mean()})
    yield from number("smallest accuracy, a tenth too narrow", both.narrow.min())


@claim(
    "N23",
    "ours",
    "A normal law with the noise's variance (NAPSU-MQ) gives the exact posterior under Gaussian noise, but not "
    "under Laplace noise at small epsilon.",
    f"bits and categories, at least 100 records: the classifier's accuracy is below {TOLD} at every epsilon under "
    "Gaussian noise, where the prior is told apart somewhere; under Laplace noise of the smallest epsilon it is above",
)
def normal_noise(rivals):
    rows = rivals[rivals.task.isin(COUNTS) & (rivals.n >= 100)]
    for task, part in rows.groupby("task", sort=False):
        gaussian, laplace = (select(part, noise=noise, method="napsu_mq") for noise in ("gaussian", "laplace"))
        floor = select(part, noise="gaussian", method="prior")
        if gaussian.empty or laplace.empty or floor.empty:
            continue
        yield check(f"exact under Gaussian noise ({task})", bool((gaussian.c2st < TOLD).all()), of=task)
        yield check(f"Gaussian noise leaves more than the prior ({task})", bool(floor.c2st.max() > TOLD), of=task)
        for row in laplace[laplace.epsilon == laplace.epsilon.min()].itertuples():
            above = row.c2st - 2 * row.c2st_sem > 0.5
            yield check(f"told apart under Laplace noise ({task}, n = {row.n})", bool(above), of=task)
            yield from number(f"accuracy under Laplace noise, {task}, n = {row.n}", row.c2st, row.c2st_sem)
        yield from number(f"largest accuracy under Gaussian noise, {task}", gaussian.c2st.max())


@claim(
    "N21",
    "ours",
    "If n is not known, the posterior is wider by as much as the exact sum over n says: at small epsilon, and "
    "hardly at large.",
    "posterior sd given the same release with n private over that with n known, by sums: above 1 by {allowed} at the "
    "smallest epsilon, and smaller at the largest; samplers that use no such sum have the width of it within "
    f"{OF_SD:.0%} or three of its standard errors",
)
def unknown_number(unknown_n, rivals):
    limit, allowed = joint_limit(len(unknown_n.groupby(["task", "n"])))
    yield word("allowed", allowed)
    for (task, n), rows in unknown_n.sort_values("epsilon").groupby(["task", "n"], sort=False):
        first, last, at = rows.iloc[0], rows.iloc[-1], f"{task}, n = {n}"
        yield check(f"wider ({at})", bool(first.sd_ratio - limit * first.sd_ratio_sem > 1), of=task)
        yield check(f"less so at large epsilon ({at})", bool(last.sd_ratio < first.sd_ratio), of=task)
        for row in (first, last):
            yield from number(f"ratio of sds, {at}, epsilon = {row.epsilon:g}", row.sd_ratio, row.sd_ratio_sem)
        for method in ("abc_smc", "reversible_jump"):
            own = select(rivals, task=task, n=n, method=method)
            if len(own):
                allowed_error = np.maximum(OF_SD, 3 * own.sd_error_sem)
                name = method.replace("_", " ")
                yield check(f"{name} has that width ({at})", bool((own.sd_error.abs() <= allowed_error).all()), of=task)
