"""Claims of Bernstein and Sheldon (2018) that go beyond one figure, scored from the paper's tables together."""

from __future__ import annotations

from privpost.claims.bernstein2018.calibration import LEVEL, calibration_by_model
from privpost.claims.bernstein2018.truncation import dependent_segments, stuck_chains
from privpost.evaluation.claims import Claim, from_checks

SHOWN = "theta_1"  # the one category that the paper draws


def claims(tables) -> list[Claim]:
    """Score B8, calibration with public bounds, and B11, that the multinomial's other categories are as the first."""
    return [_public_bounds(tables), _other_categories(tables["calibration"])]


def _public_bounds(tables) -> Claim:
    """Both tables count: `calibration` has two families at 1000 trials, `truncation` one family at 4000."""
    checks, evidence = calibration_by_model(tables["calibration"], "corrected")
    finer, statistics = dependent_segments(tables["truncation"])
    evidence |= statistics
    trials = {name: int(tables[name].n_trials.iloc[0]) for name in ("calibration", "truncation")}
    for name, count in trials.items():
        evidence[f"KS limit at {count} trials, {name}"] = tables[name].ks_limit.iloc[0]
    chains = tables["convergence"]
    for (n, epsilon), passed in finer.items():
        checks[f"exponential at {trials['truncation']} trials, n={n:g}, epsilon={epsilon:g}"] = passed
        here = chains[(chains.model == "exponential") & (chains.n == n) & (chains.epsilon == epsilon)]
        # A chain that stays at one of several values of θ shows in R-hat: what fails is then the run, not the law.
        if not passed and len(here):
            evidence[f"largest R-hat where it fails, n={n:g}, epsilon={epsilon:g}"] = here.rhat.max()
    hats = [value for name, value in evidence.items() if name.startswith("largest R-hat where it fails")]
    return from_checks(
        "B8",
        "ours",
        "Gibbs is calibrated with fixed public bounds and dependent segments.",
        f"at {trials['calibration']} trials per family as for B1; for exponential records also at "
        f"{trials['truncation']} trials, p-values not below 5 % / number of points, as for B10",
        checks,
        evidence,
        whys=[
            stuck_chains(
                finer,
                tables["truncation"].n.max(),
                "exponential at * trials, n=*",
                f"R-hat of four chains there is {max(hats):.2f}." if hats else "",
            )
        ],
        variant="corrected",
    )


def _other_categories(table) -> Claim:
    """B11: what the paper shows for the first category of the multinomial holds for all of them."""
    rows = table[(table.model == "multinomial") & (table.variant == "paper") & (table.parameter != SHOWN)]
    gibbs, naive = rows[rows.method == "gibbs"], rows[rows.method == "naive"]
    hardest = naive[(naive.n == naive.n.min()) & (naive.epsilon == naive.epsilon.min())]
    limit = LEVEL / max(1, len(gibbs))
    checks, evidence = {}, {"p value below which a test rejects": limit}
    for parameter, part in gibbs.groupby("parameter"):
        evidence[f"smallest p value of Gibbs, {parameter}"] = part.p_value.min()
        evidence[f"largest KS statistic of Gibbs, {parameter}"] = part.ks.max()
        evidence["95 % limit of a KS statistic"] = part.ks_limit.max()
        checks[f"Gibbs is calibrated at every n and epsilon ({parameter})"] = (part.p_value >= limit).all()
    for row in hardest.itertuples():
        evidence[f"KS statistic of naive at the smallest n and epsilon, {row.parameter}"] = row.ks
        checks[f"naive is miscalibrated at the smallest n and epsilon ({row.parameter})"] = row.p_value < limit
    return from_checks(
        "B11",
        "section 4, results",
        "The calibration shown for the first category of the multinomial holds for the other categories.",
        f"Kolmogorov-Smirnov tests of the categories that the paper does not show, at joint level {LEVEL:g} "
        "(Bonferroni over categories, n and epsilon)",
        checks,
        evidence,
    )
