"""Mean squared error of private linear regression against the prior's precision (Zhang et al. 2016, figure 2)."""

from privpost.experiments.claim_helpers import above, ends, joint_limit
from privpost.lab.claims import about, check, claim, number, untestable, word


def curves(table):
    """Yield, for each data set and noise variance, a name and the rows in the order of the prior precision b."""
    for (dataset, variance), rows in table.groupby(["dataset", "noise_variance"]):
        yield f"noise variance {variance:g}, {dataset}", rows.sort_values("prior_precision")


@claim(
    "Z9",
    "section on linear regression, figure 2",
    "The more concentrated the prior, the more private the posterior sampler.",
    "epsilon falls from each prior precision b to the next (closed form, no data, no multiplicity)",
)
def privacy(linear_regression):
    for name, curve in curves(linear_regression[linear_regression.method == "sampler_record"]):
        yield check(f"epsilon falls ({name})", curve.epsilon.is_monotonic_decreasing and curve.epsilon.is_unique)
        yield from number(f"epsilon, smallest and largest over b, {name}", ends(curve.epsilon))


@claim(
    "Z11",
    "section on linear regression, figure 2",
    "The sampler's privacy is proportional to the bound on the norm of the weights.",
    "none",
)
def proportional(linear_regression):
    yield untestable(
        "the constant stands in the full report only. Ours, epsilon = (Y + R X)²/σ² for labels of at most Y and "
        "features of norm at most X, is not proportional to the bound R, which says nothing about theirs"
    )
    for name, curve in curves(linear_regression[linear_regression.method == "sampler_record"]):
        ratio = (curve.epsilon / curve.radius).to_numpy()
        over = [ratio[-1], ratio[0]]
        yield from number(f"ours: epsilon over the bound on the norm, largest and smallest b, {name}", over)


@claim(
    "Z5",
    "section on linear regression, figure 2",
    "A more concentrated prior raises the MSE of both regressions; the private one is only slightly worse.",
    "at each noise variance, which the paper does not state: paired differences over splits above 0 by {allowed}; "
    "slightly: less than 1 % of the MSE, the height of the paper's figure",
)
def errors(linear_regression):
    # Comparisons: one rise of each method's curve, and the excess of the private curve at every b.
    rises = linear_regression.groupby(["dataset", "noise_variance"]).method.nunique().sum()
    limit, words = joint_limit(int(rises + (linear_regression.method == "sampler_record").sum()))
    for name, rows in curves(linear_regression):
        for method, curve in rows.groupby("method"):
            end, of = curve.iloc[-1], f"{method}, {name}"
            rise = f"rise of the MSE to b = {end.prior_precision:g}, {of}"
            yield from number(rise, end.rise_mean, end.rise_sem, of=of)
            yield check(f"the strongest prior has a larger MSE than the weakest ({of})", above(end, "rise", limit))
        private = rows[rows.method == "sampler_record"]
        true = private.mse_mean - private.excess_mean
        relative = private.excess_mean / true
        risen = rows[rows.method == "non_private"].rise_mean.iloc[-1] / true.iloc[0]
        yield check(f"the private regression is worse at every b ({name})", above(private, "excess", limit).all())
        yield check(f"by less than 1 % at every b ({name})", (relative < 0.01).all())
        both = f"excess of the private MSE relative to the other, smallest and largest over b, {name}"
        yield from number(both, ends(relative))
        yield from number(f"rise of the non-private MSE relative to it, {name}", risen)
        yield from number(f"largest excess of the private MSE, {name}", private.excess_mean.max())
        yield from number(f"MSE at the weakest prior, {name}", true.iloc[0])
    yield from number("standard errors that decide", limit)
    yield word("allowed", words)
    yield from about(stand_in=bool(linear_regression.stand_in.any()))
