"""Calibration of noise-aware and other posteriors (Bernstein and Sheldon 2018, figures 1a and 1b)."""

import numpy as np

from privpost.evaluation.calibration import LEVEL
from privpost.evaluation.rows import select
from privpost.experiments import width_claims
from privpost.experiments.claim_helpers import at_joint_level, ends
from privpost.lab.claims import about, check, claim, number, numbers, untestable

# The parameters that the paper shows: the only one, or the first category's.
SHOWN = ("theta", "theta_1")
TEST = (
    "tests at every n, epsilon and parameter where those of the non-private posterior pass, and z² of the true "
    f"parameters in their prior: {width_claims.BOTH}; "
    "{seen}; one check per model and test"
)
# The columns that tell points of the non-private posterior apart.
POINTS = ["variant", "model", "parameter", "n"]
NO_CHAIN = "the posterior without a chain"


def calibrated_by_model(table, method: str, what: str):
    """Yield evidence and two checks per model: KS and z² reject a method nowhere where the non-private one passes."""
    rows = width_claims.sound(table, method, POINTS)
    left = select(table, method=method)
    left = left[~left.index.isin(rows.index)].drop_duplicates(["model", "n"])
    places = [f"{row.model}, n={row.n:g}" for row in left.itertuples()]
    yield from number(f"left out, as draws of the true parameters fail, {what}", ", ".join(places) or "none")
    if method == "gibbs":
        yield width_claims.power(rows)
    for model, group in rows.groupby("model", sort=False):
        yield check(f"{model}: KS rejects {what} nowhere", not (group.p_value < group.level).any())
        yield check(f"{model}: z² rejects {what} nowhere", not (group.z2_p < group.z2_level).any())
        yield from numbers(width_claims.evidence(group, what, model))
        for name, column in (("p-value", "p_value"), ("p-value by z²", "z2_p")):
            where = "n={0.n:g}, epsilon={0.epsilon:g}".format(group.loc[group[column].idxmin()])
            yield from number(f"where the {name} of {what} is smallest, {model}", where)


def evidence(parts):
    """Return the evidence among some parts."""
    return (part for part in parts if part.kind == "number")


@claim(
    "B1",
    "section 4, figure 1a",
    "Gibbs is as well calibrated as the non-private posterior.",
    f"{TEST}; U is the share of draws of one chain, whose autocorrelation adds up to about 1/(2 ESS) to the "
    "KS statistic and is part of what is tested; the posterior without a chain is tested alike as evidence",
)
def gibbs(calibration):
    paper = calibration[calibration.variant == "paper"]
    yield untestable("no rows to compare")
    yield from calibrated_by_model(paper, "gibbs", "Gibbs")
    yield from evidence(calibrated_by_model(paper, "exact", NO_CHAIN))
    yield from by_the_chain(paper)


def by_the_chain(table):
    """Yield, per model, at how many points Gibbs is rejected, and at which of these the law without a chain is not."""
    failed = {}
    for method in ("gibbs", "exact"):
        rows = width_claims.sound(table, method, POINTS)
        failed[method] = set(rows[rows.rejected][["model", "n", "epsilon"]].itertuples(index=False, name=None))
    for model in table.model.unique():
        gibbs, exact = (sorted(place[1:] for place in failed[method] if place[0] == model) for method in failed)
        yield from number(f"points where Gibbs rejects, {model}", len(gibbs))
        alone = [f"n={n:g}, epsilon={epsilon:g}" for n, epsilon in gibbs if (n, epsilon) not in exact]
        yield from number(f"of these where {NO_CHAIN} does not, {model}", "; ".join(alone) or "none")


@claim(
    "B2",
    "section 4, figure 1a",
    "The naive method is miscalibrated at small n and epsilon and improves with both.",
    "per model: KS at the smallest n and epsilon beyond the Bonferroni limit, and larger than at the largest n and "
    "than at the largest epsilon by more than 1.358 √(2/M); corners in the order (n, ε) low-low, high-low, "
    "low-high, high-high",
)
def naive(calibration):
    rows = calibration[(calibration.method == "naive") & calibration.parameter.isin(SHOWN)]
    (low_n, high_n), (low, high) = ends(rows.n), ends(rows.epsilon)
    corners = (low_n, low), (high_n, low), (low_n, high), (high_n, high)
    models = rows.groupby(["model", "variant"])
    for (model, variant), group in models:
        worst, better_n, better_epsilon, best = (group.set_index(["n", "epsilon"]).loc[corner] for corner in corners)
        name = f"{model}, {variant}"
        yield from number(f"KS at the corners, {name}", [row.ks for row in (worst, better_n, better_epsilon, best)])
        # The difference of two empirical distribution functions of M values is within this with probability 95 %.
        noise = float(worst.ks_limit) * np.sqrt(2)
        yield check(f"miscalibrated at the smallest n and epsilon ({name})", worst.p_value < LEVEL / len(models))
        yield check(f"improves with n ({name})", worst.ks - better_n.ks > noise)
        yield check(f"improves with epsilon ({name})", worst.ks - better_epsilon.ks > noise)
    yield from number("95 % limit of a KS statistic", worst.ks_limit)
    yield from about(variant=", ".join(sorted(rows.variant.unique())))


@claim(
    "B3",
    "section 4, figure 1a",
    "OPS is calibrated at no n and epsilon.",
    "prior and likelihood tempered, as in Foulds et al. (2016), whose method the paper says it uses; every KS "
    f"statistic has a p-value below {LEVEL:g} / number of points (Bonferroni)",
)
def ops(calibration):
    rows = at_joint_level(calibration[(calibration.method == "ops") & (calibration.tempered == "joint")])
    for row in rows.itertuples():
        yield check(f"n={row.n:g}, epsilon={row.epsilon:g}", row.p_value < row.level)
    yield from number("smallest KS", rows.ks.min())
    yield from number("largest KS", rows.ks.max())
    yield from number("95 % limit of a KS statistic", rows.ks_limit.max())


@claim(
    "B13",
    "ours",
    "OPS that tempers the likelihood alone, and leaves the prior as it is, is calibrated.",
    "no test rejects at any point where z² of the true parameters in their prior passes: "
    f"{width_claims.BOTH}; {{seen}}; U is the randomised rank among the draws, exactly "
    "uniform under calibration",
)
def ops_untempered_prior(calibration):
    yield untestable("the draws of the true parameters fail at every point")
    rows = width_claims.from_prior(calibration)
    rows = width_claims.tested(select(rows, method="ops", tempered="likelihood"))
    for row in rows.itertuples():
        yield check(f"n={row.n:g}, epsilon={row.epsilon:g}", not row.rejected)
    yield from number("smallest KS", rows.ks.min())
    yield width_claims.power(rows)
    if len(rows):
        yield from numbers(width_claims.evidence(rows, "OPS with its prior"))


@claim(
    "B4",
    "section 4, figure 1b",
    "At n = 1000, epsilon = 0.01 the naive U pile up at 0 and 1, those of OPS in the middle.",
    "share of U in the outer tenths above 0.2, or in the middle half above 0.5, by more than 2 · 1.358/√M",
)
def shapes(ecdf):
    # The outer tenths and the middle half: 0.2 and 0.5 of the values if U is uniform.
    # OPS that tempers the likelihood alone is left out: it is not the paper's mechanism (see B13).
    shown = ecdf[ecdf.parameter.isin(SHOWN) & ecdf.method.isin(["naive", "ops"]) & (ecdf.tempered != "likelihood")]
    for (method, model, variant), rows in shown.sort_values("u").groupby(["method", "model", "variant"]):
        tenth, quarter, three_quarters, nine_tenths = np.interp([0.1, 0.25, 0.75, 0.9], rows.u, rows.ecdf)
        # Twice the KS limit bounds the sampling error of any difference of two values of the function.
        noise = 2 * float((rows.band_high - rows.u)[(rows.u > 0.4) & (rows.u < 0.6)].iloc[0])
        outer, middle = float(tenth + 1 - nine_tenths), float(three_quarters - quarter)
        where = f"{model}, {variant}"
        yield from number(f"share in the outer tenths and in the middle half, {method}, {where}", [outer, middle])
        if method == "naive":
            both = outer > 0.2 + noise and min(tenth, 1 - nine_tenths) > 0.1
            yield check(f"naive piles up at 0 and 1 ({where})", both)
        else:
            yield check(f"ops piles up in the middle ({where})", middle > 0.5 + noise)
    yield from number("95 % limit of the sampling error of a share", noise)
    yield from about(variant=", ".join(sorted(shown.variant.unique())))
