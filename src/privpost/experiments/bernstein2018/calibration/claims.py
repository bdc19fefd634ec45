"""Calibration of noise-aware and other posteriors (Bernstein and Sheldon 2018, figures 1a and 1b)."""

import numpy as np

from privpost.evaluation.calibration import LEVEL
from privpost.evaluation.claims import Claim, Why, from_checks
from privpost.experiments.claim_helpers import at_joint_level, ks_evidence, sound

# The parameters that the paper shows: the only one, or the first category's.
SHOWN = ("theta", "theta_1")
DOC = "docs/bernstein2018.md#is-u-uniform-calibration-figures-1a-and-1b"


def claims(tables) -> list[Claim]:
    """Score B1 to B4 and B13; B8 needs the finer test of `truncation` as well."""
    table = tables["calibration"]
    scored = [score(table) for score in (_gibbs_calibrated, _naive_miscalibrated, _ops_miscalibrated)]
    return [*scored, _shapes(tables["ecdf"]), _untempered_prior(table)]


def calibrated_by_model(table, method: str, what: str) -> tuple[dict[str, bool], dict]:
    """Return one check per model, that no test of a method rejects where the non-private one passes, and evidence."""
    checks, evidence = {}, {}
    for model, group in sound(table, method, ["variant", "model", "parameter", "n"]).groupby("model", sort=False):
        worst = group.loc[group.p_value.idxmin()]
        checks[f"{model}: no test of {what} rejects"] = (group.p_value >= group.level).all()
        evidence |= ks_evidence(group, what, model)
        evidence[f"where the p-value of {what} is smallest, {model}"] = f"n={worst.n:g}, epsilon={worst.epsilon:g}"
    return checks, evidence


TEST = (
    f"KS tests at every n, epsilon and parameter where that of the non-private posterior passes, at {LEVEL:g} over all "
    "of them (Bonferroni); one check per model"
)


def _gibbs_calibrated(table) -> Claim:
    paper = table[table.variant == "paper"]
    checks, evidence = calibrated_by_model(paper, "gibbs", "Gibbs")
    without, found = calibrated_by_model(paper, "exact", "the posterior without a chain")
    evidence |= found
    rejected = evidence.get("tests of the posterior without a chain that reject, exponential", 0)
    tests = evidence.get("tests of the posterior without a chain, exponential", 0)
    why = Why(
        "The exponential's bounds are quantiles of the model at the true rate, and its noise depends on it: even the "
        f"posterior without a chain fails at {rejected} of {tests} points. With public bounds it is calibrated (B8, "
        "B10).",
        ("exponential:*",),
        DOC,
        when=rejected > 0 and not all(without.values()),
    )
    return from_checks(
        "B1",
        "section 4, figure 1a",
        "Gibbs is as well calibrated as the non-private posterior.",
        f"{TEST}; U is the share of draws of one chain, whose autocorrelation adds up to about 1/(2 ESS) to the "
        "statistic and is part of what is tested; the posterior without a chain is tested alike as evidence",
        checks,
        evidence,
        whys=[why],
        untestable="no rows to compare",
    )


def _naive_miscalibrated(table) -> Claim:
    rows = table[(table.method == "naive") & table.parameter.isin(SHOWN)]
    checks, evidence = {}, {}
    low_n, high_n = rows.n.min(), rows.n.max()
    low, high = rows.epsilon.min(), rows.epsilon.max()
    tests = list(rows.groupby(["model", "variant"]).groups)
    for (model, variant), group in rows.groupby(["model", "variant"]):
        at = group.set_index(["n", "epsilon"])
        worst, better_n = at.loc[(low_n, low)], at.loc[(high_n, low)]
        better_epsilon, best = at.loc[(low_n, high)], at.loc[(high_n, high)]
        name = f"{model}, {variant}"
        evidence[f"KS at the corners, {name}"] = [r.ks for r in (worst, better_n, better_epsilon, best)]
        evidence["95 % limit of a KS statistic"] = worst.ks_limit
        # The difference of two empirical distribution functions of M values is within this with 95 %.
        noise = float(worst.ks_limit) * np.sqrt(2)
        checks[f"miscalibrated at the smallest n and epsilon ({name})"] = worst.p_value < LEVEL / len(tests)
        checks[f"improves with n ({name})"] = worst.ks - better_n.ks > noise
        checks[f"improves with epsilon ({name})"] = worst.ks - better_epsilon.ks > noise
    return from_checks(
        "B2",
        "section 4, figure 1a",
        "The naive method is miscalibrated at small n and epsilon and improves with both.",
        "per model: KS at the smallest n and epsilon beyond the Bonferroni limit, and larger than at the largest n and "
        "than at the largest epsilon by more than 1.358 √(2/M); corners in the order (n, ε) low-low, high-low, "
        "low-high, high-high",
        checks,
        evidence,
        variant=", ".join(sorted(rows.variant.unique())),
    )


def _ops_miscalibrated(table) -> Claim:
    rows = table[(table.method == "ops") & (table.tempered == "joint")]
    return from_checks(
        "B3",
        "section 4, figure 1a",
        "OPS is calibrated at no n and epsilon.",
        "prior and likelihood tempered, as in Foulds et al. (2016), whose method the paper says it uses; every KS "
        f"statistic has a p-value below {LEVEL:g} / number of points (Bonferroni)",
        {f"n={row.n:g}, epsilon={row.epsilon:g}": row.p_value < LEVEL / len(rows) for row in rows.itertuples()},
        {
            "smallest KS": rows.ks.min(),
            "largest KS": rows.ks.max(),
            "95 % limit of a KS statistic": rows.ks_limit.max(),
        },
    )


def _untempered_prior(table) -> Claim:
    rows = table[(table.method == "ops") & (table.tempered == "likelihood")]
    rows = at_joint_level(rows)
    return from_checks(
        "B13",
        "ours",
        "OPS that tempers the likelihood alone, and leaves the prior as it is, is calibrated.",
        f"every KS statistic has a p-value of at least {LEVEL:g} / number of points (Bonferroni); U is the randomised "
        "rank among the draws, exactly uniform under calibration",
        {f"n={row.n:g}, epsilon={row.epsilon:g}": row.p_value >= row.level for row in rows.itertuples()},
        {"smallest KS": rows.ks.min(), **ks_evidence(rows, "OPS with its prior")},
        whys=[
            Why(
                "Draws of so small a budget are hardly more than draws of the prior, and calibrated as these are. At "
                "the largest n and epsilon they begin to learn, and their tempered likelihood makes them too wide.",
                (f"n={rows.n.max():g}, epsilon={rows.epsilon.max():g}",),
                DOC,
            )
        ],
    )


def _shapes(ecdf) -> Claim:
    checks, evidence = {}, {}
    # The outer tenths and the middle half: 0.2 and 0.5 of the values if U is uniform.
    # The likelihood alone tempered is another mechanism than the paper's (B13).
    ecdf = ecdf[ecdf.parameter.isin(SHOWN) & ecdf.method.isin(["naive", "ops"]) & (ecdf.tempered != "likelihood")]
    for (method, model, variant), rows in ecdf.groupby(["method", "model", "variant"]):
        u, f = rows.sort_values("u").u.to_numpy(), rows.sort_values("u").ecdf.to_numpy()
        tenth, quarter, three_quarters, nine_tenths = np.interp([0.1, 0.25, 0.75, 0.9], u, f)
        # Twice the KS limit bounds the sampling error of any difference of two values of the function.
        noise = 2 * float((rows.band_high - rows.u)[(rows.u > 0.4) & (rows.u < 0.6)].iloc[0])
        outer, middle = float(tenth + 1 - nine_tenths), float(three_quarters - quarter)
        evidence["95 % limit of the sampling error of a share"] = noise
        evidence[f"share in the outer tenths and in the middle half, {method}, {model}, {variant}"] = [outer, middle]
        if method == "naive":
            checks[f"naive piles up at 0 and 1 ({model}, {variant})"] = (
                outer > 0.2 + noise and min(tenth, 1 - nine_tenths) > 0.1
            )
        else:
            checks[f"ops piles up in the middle ({model}, {variant})"] = middle > 0.5 + noise
    return from_checks(
        "B4",
        "section 4, figure 1b",
        "At n = 1000, epsilon = 0.01 the naive U pile up at 0 and 1, those of OPS in the middle.",
        "share of U in the outer tenths above 0.2, or in the middle half above 0.5, by more than 2 · 1.358/√M",
        checks,
        evidence,
        variant=", ".join(sorted(ecdf.variant.unique())),
    )
