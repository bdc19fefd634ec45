"""Claims of Bernstein and Sheldon (2018) that go beyond one figure, scored from the paper's tables together."""

from __future__ import annotations

from privpost.evaluation.claims import Claim, from_checks

LEVEL = 0.05
SHOWN = "theta_1"  # the one category that the paper draws


def claims(tables) -> list[Claim]:
    """Score B11: what the paper shows for the first category of the multinomial holds for all of them."""
    table = tables["calibration"]
    rows = table[(table.model == "multinomial") & (table.variant == "paper") & (table.parameter != SHOWN)]
    gibbs, naive = rows[rows.method == "gibbs"], rows[rows.method == "naive"]
    hardest = naive[(naive.n == naive.n.min()) & (naive.epsilon == naive.epsilon.min())]
    limit = LEVEL / max(1, len(gibbs))
    checks, evidence = {}, {"p value below which a test rejects": limit}
    for parameter, part in gibbs.groupby("parameter"):
        evidence[f"smallest p value of Gibbs, {parameter}"] = float(part.p_value.min())
        evidence[f"largest KS statistic of Gibbs, {parameter}"] = float(part.ks.max())
        checks[f"Gibbs is calibrated at every n and epsilon ({parameter})"] = bool((part.p_value >= limit).all())
    for row in hardest.itertuples():
        evidence[f"KS statistic of naive at the smallest n and epsilon, {row.parameter}"] = float(row.ks)
        checks[f"naive is miscalibrated at the smallest n and epsilon ({row.parameter})"] = row.p_value < limit
    return [
        from_checks(
            "B11",
            "section 4, results",
            "The calibration shown for the first category of the multinomial holds for the other categories.",
            f"Kolmogorov-Smirnov tests of the categories that the paper does not show, at joint level {LEVEL:g} "
            "(Bonferroni over categories, n and epsilon)",
            checks,
            evidence,
        )
    ]
