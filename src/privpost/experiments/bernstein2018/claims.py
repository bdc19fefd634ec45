"""Claims of Bernstein and Sheldon (2018) that go beyond one figure, scored from the paper's tables together."""

from privpost.evaluation.calibration import LEVEL
from privpost.evaluation.claims import Claim, Why, from_checks
from privpost.evaluation.rows import select
from privpost.experiments.bernstein2018.calibration.claims import TEST, calibrated_by_model
from privpost.experiments.bernstein2018.truncation.claims import public_bounds, stuck_chains

SHOWN = "theta_1"  # the one category that the paper draws


def claims(tables) -> list[Claim]:
    """Score B8, calibration with public bounds, and B11, that the multinomial's other categories are as the first."""
    return [_public_bounds(tables), _other_categories(tables["calibration"])]


def _public_bounds(tables) -> Claim:
    """Both tables count: `calibration` has two families, `truncation` one family with more trials."""
    table = select(tables["calibration"], variant="corrected")
    checks, evidence = calibrated_by_model(table, "gibbs", "Gibbs")
    sure, found = calibrated_by_model(table, "exact", "the posterior without a chain")
    evidence |= found
    gibbs, found = public_bounds(tables["truncation"], "gibbs")
    exact, without = public_bounds(tables["truncation"], "exact")
    evidence |= without | found
    chains = select(tables["convergence"], model="exponential", variant="corrected", sampler="gibbs")
    stuck = []
    for (n, epsilon), passed in gibbs.items():
        checks[f"exponential, truncation, n={n:g}, epsilon={epsilon:g}"] = passed
        here = select(chains, n=n, epsilon=epsilon)
        # A chain that stays at one of several values of θ shows in R-hat: what fails is then the run, not the law.
        if not passed and len(here):
            stuck.append(here.stuck_share.item())
            evidence[f"share of releases with stuck chains, n={n:g}, epsilon={epsilon:g}"] = here.stuck_share.item()
    shares = f"Chains of up to {max(stuck):.0%} of releases are stuck there." if stuck else ""
    return from_checks(
        "B8",
        "ours",
        "Gibbs is calibrated with fixed public bounds and dependent segments.",
        f"{TEST}; for exponential records also by `truncation`, p-values not below {LEVEL:g} / number of points, as "
        "for B10",
        checks,
        evidence,
        whys=[
            stuck_chains(gibbs, exact, "exponential, truncation, n=*", f"Without a chain it is calibrated. {shares}"),
            Why(
                "One chain is worth few draws there, or is stuck: without a chain the posterior of every family is "
                "calibrated at the same points.",
                ("*: no test of Gibbs rejects",),
                "docs/bernstein2018.md#do-7000-sweeps-suffice-convergence",
                when=sure and all(sure.values()),
            ),
        ],
        variant="corrected",
    )


def _other_categories(table) -> Claim:
    """B11: what the paper shows for the first category of the multinomial holds for all of them."""
    rows = select(table[table.parameter != SHOWN], model="multinomial", variant="paper")
    gibbs, naive = (select(rows, method=method) for method in ("gibbs", "naive"))
    hardest = select(naive, n=naive.n.min(), epsilon=naive.epsilon.min())
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
