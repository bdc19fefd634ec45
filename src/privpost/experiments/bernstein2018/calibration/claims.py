"""Claims on calibration of noise-aware and other posteriors (Bernstein and Sheldon 2018, figures 1a and 1b)."""

import numpy as np

from privpost.evaluation.calibration import LEVEL
from privpost.evaluation.rows import select
from privpost.experiments import width_claims
from privpost.experiments.bernstein2018.calibrated import (
    NO_CHAIN,
    POINT,
    POINTS,
    TEST,
    calibrated_by_model,
    evidence,
    public_bounds,
)
from privpost.experiments.claim_helpers import at_joint_level, ends
from privpost.lab.claims import about, check, claim, number, numbers, untestable

# The parameters that the paper shows: the model's only parameter, or the probability of the first category.
SHOWN = ("theta", "theta_1")


@claim(
    "B1",
    "section 4, figure 1a",
    "Gibbs is as well calibrated as the non-private posterior.",
    f"{TEST}; U is the share of draws of one chain, whose autocorrelation adds up to about 1/(2 ESS) to the KS "
    "statistic and is part of what is tested; as evidence the posterior without a chain has the same tests",
)
def gibbs(calibration):
    paper = calibration[calibration.variant == "paper"]
    yield untestable("no rows to compare")
    yield from calibrated_by_model(paper, "gibbs", "Gibbs")
    yield from evidence(calibrated_by_model(paper, "exact", NO_CHAIN))
    yield from by_the_chain(paper)


def by_the_chain(table):
    """Yield evidence, for each model, on the points (n, ε) where tests reject Gibbs."""
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
        # With probability 95 %, two empirical distribution functions of M values differ by less than this.
        noise = float(worst.ks_limit) * np.sqrt(2)
        yield check(
            f"miscalibrated at the smallest n and epsilon ({name})", worst.p_value < LEVEL / len(models), of=model
        )
        yield check(f"improves with n ({name})", worst.ks - better_n.ks > noise, of=model)
        yield check(f"improves with epsilon ({name})", worst.ks - better_epsilon.ks > noise, of=model)
    yield from number("95 % limit of a KS statistic", worst.ks_limit)
    yield from about(variant=", ".join(sorted(rows.variant.unique())))


@claim(
    "B3",
    "section 4, figure 1a",
    "OPS is calibrated at no n and no epsilon.",
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
    "OPS is calibrated if it tempers the likelihood alone and leaves the prior as it is.",
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
    "At n = 1000, epsilon = 0.01 the naive method's U pile up at 0 and 1, those of OPS in the middle.",
    "share of U in the outer tenths above 0.2, or in the middle half above 0.5, by more than 2 · 1.358/√M",
)
def shapes(ecdf):
    # A uniform U has 0.2 of its values in the two outer tenths and 0.5 in the middle half.
    # OPS that tempers the likelihood alone is left out, because it is not the paper's mechanism (see B13).
    shown = ecdf[ecdf.parameter.isin(SHOWN) & ecdf.method.isin(["naive", "ops"]) & (ecdf.tempered != "likelihood")]
    for (method, model, variant), rows in shown.sort_values("u").groupby(["method", "model", "variant"]):
        tenth, quarter, three_quarters, nine_tenths = np.interp([0.1, 0.25, 0.75, 0.9], rows.u, rows.ecdf)
        # Twice the KS limit bounds the sampling error of a difference between two values of a distribution function.
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


@claim(
    "B10",
    "ours",
    "With public bounds Algorithm 2 is calibrated with dependent segments, but not with independent ones.",
    f"{width_claims.BOTH}; {{seen}}; no test rejects for dependent segments, nor for the same posterior without a "
    "chain; one does for independent segments at some point where none does for dependent ones",
    variant="public_bounds, corrected",
)
def segments(truncation):
    yield from public_bounds(truncation, "gibbs", f"dependent segments pass ({POINT})")
    yield from public_bounds(truncation, "exact", f"no chain passes ({POINT})")
    gibbs = select(truncation, method="gibbs")
    both = (width_claims.tested(select(gibbs, variant=variant)) for variant in ("corrected", "public_bounds"))
    dependent, independent = (rows.set_index(["n", "epsilon"]) for rows in both)
    yield width_claims.power(dependent.reset_index())
    alone = independent[independent.rejected & ~dependent.rejected.reindex(independent.index)]
    yield check("independent segments fail somewhere where dependent ones pass", len(alone) > 0)
    places = [POINT.format(row=row) for row in alone.reset_index().itertuples()]
    evidence = width_claims.evidence(independent.reset_index(), "Gibbs", "exponential, independent segments")
    yield from numbers({"where independent segments alone fail": "; ".join(places) or "nowhere", **evidence})


@claim(
    "B11",
    "section 4, results",
    "The other categories of the multinomial are as calibrated as the first, which the paper shows.",
    f"tests of the categories that the paper does not show: {width_claims.BOTH}, z² of all categories together; "
    "{seen}",
)
def other_categories(calibration):
    rows = select(calibration[~calibration.parameter.isin(SHOWN)], model="multinomial", variant="paper")
    gibbs, naive = (select(rows, method=method) for method in ("gibbs", "naive"))
    gibbs = width_claims.tested(width_claims.from_prior(gibbs))
    limit = LEVEL / 2 / max(1, len(gibbs))
    yield width_claims.power(gibbs)
    yield from number("p value below which a test rejects", limit)
    yield from number("p value of z² below which a test rejects", gibbs.z2_level.max())
    yield from number("smallest p value of z², Gibbs", gibbs.z2_p.min())
    for parameter, part in gibbs.groupby("parameter"):
        yield from number(f"smallest p value of Gibbs, {parameter}", part.p_value.min())
        yield from number(f"largest KS statistic of Gibbs, {parameter}", part.ks.max())
        yield check(f"Gibbs is calibrated at every n and epsilon ({parameter})", not part.rejected.any())
    for row in select(naive, n=naive.n.min(), epsilon=naive.epsilon.min()).itertuples():
        yield from number(f"KS statistic of naive at the smallest n and epsilon, {row.parameter}", row.ks)
        yield check(f"naive is miscalibrated at the smallest n and epsilon ({row.parameter})", row.p_value < limit)
    yield from number("95 % limit of a KS statistic", gibbs.ks_limit.max())


@claim(
    "B15",
    "ours",
    "Algorithms 1 and 2 are calibrated for families that the paper does not try, each given by one file.",
    TEST,
)
def other_families(families):
    yield untestable("no rows to compare")
    yield from calibrated_by_model(families, "gibbs", "Gibbs")
    yield from calibrated_by_model(families, "exact", NO_CHAIN)
    yield from about(variant=", ".join(sorted(families.variant.unique())))
