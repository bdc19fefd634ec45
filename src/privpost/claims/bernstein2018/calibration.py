"""Calibration of noise-aware and other posteriors (Bernstein and Sheldon 2018, figures 1a and 1b)."""

from __future__ import annotations

import numpy as np

from privpost.evaluation.claims import Claim, Why, from_checks

LEVEL = 0.05


def claims(tables) -> list[Claim]:
    """Score B1 to B4; B8 needs the finer test of `truncation` as well."""
    table, ecdf = tables["calibration"], tables["ecdf"]
    return [
        _gibbs_calibrated(table),
        _naive_miscalibrated(table),
        _ops_miscalibrated(table),
        _shapes(ecdf),
    ]


def excesses(table, method: str):
    """Return a method's rows with the KS statistic of the non-private method at the same point, `reference`."""
    keys = ["variant", "model", "parameter", "n"]
    reference = table[table.method == "non_private"][[*keys, "ks"]].rename(columns={"ks": "reference"})
    return table[table.method == method].merge(reference, on=keys)


def calibration_by_model(table, variant: str) -> tuple[dict[str, bool], dict]:
    """Return one check per model of a variant, that Gibbs is calibrated where the true posterior is, and its evidence.

    θ and data are shared across ε, so the (model, n) blocks are the units. Rows count where the non-private KS
    statistic is within its 95 % limit; a block is beyond when any Gibbs statistic in it leaves the limit. A calibrated
    method's block does so with probability at most 5 % times its number of statistics (union bound, whatever their
    dependence), and blocks are independent. A model fails when its number of blocks beyond has a binomial tail below
    half of 5 % / number of models, or its smallest p-value is below that over its number of statistics.
    """
    from scipy.stats import binom

    rows = excesses(table[table.variant == variant], "gibbs")
    rows = rows[rows.reference <= rows.ks_limit]
    level = LEVEL / (2 * max(1, rows.model.nunique()))
    checks, evidence = {}, {"level of each of a model's two tests": level}
    for model, group in rows.groupby("model"):
        blocks = (group.ks > group.ks_limit).groupby(group.n).agg(["any", "size"])
        beyond, rate = int(blocks["any"].sum()), min(1.0, LEVEL * int(blocks["size"].max()))
        tail = float(binom.sf(beyond - 1, len(blocks), rate))
        worst = group.loc[group.ks.idxmax()]
        where = f"n={worst.n:g}, epsilon={worst.epsilon:g}, {worst.parameter}"
        evidence[f"blocks beyond the limit, blocks, statistics, {model}"] = [beyond, len(blocks), len(group)]
        evidence[f"binomial tail at rate {rate:g} per block, {model}"] = tail
        evidence[f"KS and p-value beyond the limit, {model}"] = {
            f"n={row.n:g}, epsilon={row.epsilon:g}, {row.parameter}": [row.ks, row.p_value]
            for row in group[group.ks > group.ks_limit].itertuples()
        }
        evidence[f"largest KS and its p-value, {model} ({where})"] = [worst.ks, worst.p_value]
        name = f"{model}: neither too many blocks beyond the limit nor too small a p-value"
        checks[name] = tail >= level and bool((group.p_value >= level / len(group)).all())
    return checks, evidence


def _gibbs_calibrated(table) -> Claim:
    statement = "Gibbs is as well calibrated as the non-private posterior."
    test = (
        "per model, where the non-private KS statistic is within its 95 % limit: binomial tail of the number of n with "
        "a Gibbs statistic beyond the limit, at the union bound of 5 % per statistic of a block, not below 2.5 % / "
        "number of models, and no p-value below that over the model's number of statistics; U is the share of draws of "
        "one chain, whose autocorrelation adds up to about 1/(2 ESS) to the statistic and is part of what is tested"
    )
    place = "section 4, figure 1a"
    checks, evidence = calibration_by_model(table, "paper")
    evidence["95 % limit of a KS statistic"] = table.ks_limit.max()
    if not checks:
        return Claim("B1", place, statement, test, "not testable", reason="no rows to compare")
    beyond, blocks, _ = evidence.get("blocks beyond the limit, blocks, statistics, exponential", (0, 0, 0))
    whys = [
        Why(
            "The exponential's bounds are quantiles of the model at the true rate, so that even a correct posterior is "
            f"not calibrated under them, and its segments are taken as independent; {beyond} of {blocks} values of n "
            "lie beyond the limit. B10 takes the two apart; few effective draws of the chain may add to it.",
            ("exponential:*",),
            "docs/bernstein2018.md#is-u-uniform-calibration-figures-1a-and-1b",
        )
    ]
    return from_checks("B1", place, statement, test, checks, evidence, whys=whys)


def _naive_miscalibrated(table) -> Claim:
    rows = table[(table.method == "naive") & table.parameter.isin(["theta", "theta_1"])]
    checks, evidence = {}, {}
    low_n, high_n = rows.n.min(), rows.n.max()
    low, high = rows.epsilon.min(), rows.epsilon.max()
    for (model, variant), group in rows.groupby(["model", "variant"]):
        at = group.set_index(["n", "epsilon"])
        worst, better_n = at.loc[(low_n, low)], at.loc[(high_n, low)]
        better_epsilon, best = at.loc[(low_n, high)], at.loc[(high_n, high)]
        name = f"{model}, {variant}"
        evidence[f"KS at the corners, {name}"] = [r.ks for r in (worst, better_n, better_epsilon, best)]
        evidence["95 % limit of a KS statistic"] = worst.ks_limit
        # The difference of two empirical distribution functions of M values is within this with 95 %.
        noise = float(worst.ks_limit) * np.sqrt(2)
        checks[f"miscalibrated at the smallest n and epsilon ({name})"] = worst.p_value < 0.05 / (
            2 * rows.model.nunique()
        )
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
    rows = table[table.method == "ops"]
    share = float((rows.p_value < 0.05 / max(1, len(rows))).mean()) if len(rows) else 0.0
    return from_checks(
        "B3",
        "section 4, figure 1a",
        "OPS is calibrated at no n and epsilon.",
        "every KS statistic has a p-value below 5 % / number of points (Bonferroni)",
        {f"n={row.n:g}, epsilon={row.epsilon:g}": (row.p_value < 0.05 / len(rows)) for row in rows.itertuples()},
        {
            "smallest KS": rows.ks.min(),
            "largest KS": rows.ks.max(),
            "95 % limit of a KS statistic": rows.ks_limit.max(),
            "share miscalibrated": share,
        },
    )


def _shapes(ecdf) -> Claim:
    checks, evidence = {}, {}
    # The outer tenths and the middle half: 0.2 and 0.5 of the values if U is uniform.
    for (method, model, variant), rows in ecdf[ecdf.parameter.isin(["theta", "theta_1"])].groupby(
        ["method", "model", "variant"]
    ):
        if method not in ("naive", "ops"):
            continue
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
