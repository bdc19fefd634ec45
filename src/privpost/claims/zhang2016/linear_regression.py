"""Mean squared error of private linear regression against the prior's precision (Zhang et al. 2016, figure 2)."""

from __future__ import annotations

from privpost.claims.shared import above, ends, estimate, undecided
from privpost.evaluation.claims import Claim, Why, from_checks

# Paired differences of means over splits are compared with 0 at this many standard errors: one-sided 1.3e-3.
LIMIT = 3.0
LINEAR = "docs/zhang2016.md#linear-regression-linear_regression-figure-2"


def claims(tables) -> list[Claim]:
    """Score Z5 and Z9 on every data set of the table."""
    return [_errors(tables["linear_regression"]), _privacy(tables["linear_regression"])]


def _privacy(table) -> Claim:
    """Z9: what a more concentrated prior does to the privacy of the sampler."""
    private = table[table.method == "sampler_record"]
    checks, evidence = {}, {}
    for dataset, rows in private.groupby("dataset"):
        curve = rows.sort_values("prior_precision")
        per_norm = curve.epsilon / curve.radius
        checks[f"epsilon falls as the prior gets more concentrated ({dataset})"] = (
            curve.epsilon.is_monotonic_decreasing and curve.epsilon.is_unique
        )
        checks[f"epsilon is proportional to the bound on the norm ({dataset})"] = per_norm.max() < 1.01 * per_norm.min()
        evidence[f"epsilon, smallest and largest over b, {dataset}"] = ends(curve.epsilon)
        evidence[f"epsilon over the bound on the norm, smallest and largest, {dataset}"] = ends(per_norm)
    return from_checks(
        "Z9",
        "section on linear regression, figure 2",
        "As the prior gets more concentrated the sampler's privacy improves, in proportion to the bound on the norm.",
        "epsilon falls from each prior precision b to the next, and is the same multiple of the bound R on the norm at "
        "every b within 1 % (closed form, no multiplicity)",
        checks,
        evidence,
        whys=[
            Why(
                "With labels of at most Y and features of norm at most X a record moves the log-likelihood by "
                "(Y + R X)²/(2σ²), quadratic in R and positive without it. Nor is it much privacy: epsilon is still "
                f"{private.epsilon.min():.3g} at the most concentrated prior.",
                ("epsilon is proportional*",),
                LINEAR,
                when=all(passed for name, passed in checks.items() if "falls" in name),
            )
        ],
        stand_in=bool(table.stand_in.any()),
    )


def _errors(table) -> Claim:
    checks, evidence, whys = {}, {}, []
    for dataset, rows in table.groupby("dataset"):
        for method, curve in rows.groupby("method"):
            last = curve.sort_values("prior_precision").iloc[-1]
            name = f"{method}, {dataset}"
            rise = f"rise of the MSE to b = {last.prior_precision:g}, {name}"
            evidence |= estimate(rise, last.rise_mean, last.rise_sem, of=name)
            check = f"the strongest prior has a larger MSE than the weakest ({name})"
            checks[check] = above(last, "rise", LIMIT)
            whys.append(
                Why(
                    f"The non-private error does not move measurably ({last.rise_mean:+.1g} ± {last.rise_sem:.1g}): "
                    "tens of thousands of training rows outweigh any prior precision up to "
                    f"{last.prior_precision:g}. What rises in the private curve is the truncation's doing, not the "
                    "prior's.",
                    (check,),
                    LINEAR,
                    when=method == "non_private" and undecided(last, "rise", LIMIT),
                )
            )
        private = rows[rows.method == "sampler_record"]
        relative = private.excess_mean / (private.mse_mean - private.excess_mean)
        excess = f"excess of the private MSE relative to the other, smallest and largest over b, {dataset}"
        evidence[excess] = ends(relative)
        evidence[f"epsilon, smallest and largest over b, {dataset}"] = ends(private.epsilon)
        checks[f"the private regression is worse at every b ({dataset})"] = above(private, "excess", LIMIT).all()
        checks[f"by less than 1 % at every b ({dataset})"] = (relative < 0.01).all()
    return from_checks(
        "Z5",
        "section on linear regression, figure 2",
        "A more concentrated prior raises the MSE of both regressions, and the private one is only slightly worse.",
        f"paired differences over splits above 0 by {LIMIT} standard errors (one-sided 1.3e-3, 15 comparisons); "
        "slightly: less than 1 % of the MSE, the whole rise in the paper's figure",
        checks,
        evidence,
        whys=whys,
        stand_in=bool(table.stand_in.any()),
    )
