"""Claims of Bernstein and Sheldon (2018) that go beyond one figure, scored from the paper's tables together."""

from privpost.evaluation.calibration import LEVEL
from privpost.evaluation.rows import select
from privpost.experiments import width_claims
from privpost.experiments.bernstein2018.calibration.claims import NO_CHAIN, TEST, calibrated_by_model, evidence
from privpost.experiments.bernstein2018.truncation.claims import POINT, public_bounds
from privpost.lab.claims import check, claim, number

SHOWN = "theta_1"  # the one category that the paper draws


@claim(
    "B8",
    "ours",
    "Gibbs is calibrated with fixed public bounds and dependent segments.",
    f"{TEST}; for exponential records also by `truncation`, as for B10",
    variant="corrected",
)
def with_public_bounds(calibration, truncation, convergence):
    # Both tables count: `calibration` has two families, `truncation` one family at another epsilon.
    table = select(calibration, variant="corrected")
    yield from calibrated_by_model(table, "gibbs", "Gibbs")
    yield from evidence(calibrated_by_model(table, "exact", NO_CHAIN))
    yield from evidence(public_bounds(truncation, "exact", POINT))
    gibbs = list(public_bounds(truncation, "gibbs", f"exponential, truncation, {POINT}"))
    yield from gibbs
    failed = [part.name for part in gibbs if part.kind == "check" and not part.value]
    chains = select(convergence, model="exponential", variant="corrected", sampler="gibbs")
    for row in chains.itertuples():
        # A chain that stays at one of several values of θ shows in R-hat: what fails is then the run, not the law.
        if f"exponential, truncation, {POINT.format(row=row)}" in failed:
            yield from number(f"share of releases with stuck chains, {POINT.format(row=row)}", row.stuck_share)


@claim(
    "B11",
    "section 4, results",
    "The calibration shown for the first category of the multinomial holds for the other categories.",
    f"tests of the categories that the paper does not show: {width_claims.BOTH}, z² of all categories together; "
    "{seen}",
)
def other_categories(calibration):
    rows = select(calibration[calibration.parameter != SHOWN], model="multinomial", variant="paper")
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
