"""Claims of Bernstein and Sheldon (2018) that go beyond one figure, scored from the paper's tables together."""

from privpost.evaluation.calibration import LEVEL
from privpost.evaluation.rows import select
from privpost.experiments import width_claims
from privpost.experiments.bernstein2018.calibration.claims import NO_CHAIN, TEST, calibrated_by_model, evidence
from privpost.experiments.bernstein2018.truncation.claims import POINT, public_bounds
from privpost.experiments.claim_helpers import joint_limit
from privpost.lab.claims import check, claim, number, word

# Studies of other papers whose tables these claims read.
READS = ("noise_aware/rivals",)
SHOWN = "theta_1"  # the one category that the paper draws
# Families of which B7 speaks, and the total variation that is called small.
APPROXIMATED = ("binomial", "exponential", "normal")
SMALL = 0.02


@claim(
    "B7",
    "ours",
    "The normal approximation costs little: the sampler's law tends to the exact posterior as n grows.",
    f"bits, exponential and normal records: mean total variation over releases at most {SMALL:g} for n ≥ 100, of bits "
    "at the largest n below its worst value by {allowed}; by quadrature, without a chain",
)
def approximation(approximation):
    table = approximation[approximation.task.isin(APPROXIMATED)]
    bits = select(table, task="binomial")
    limit, words = joint_limit(len(bits.groupby(["prior", "epsilon"])))
    yield word("allowed", words)
    for (task, prior, epsilon), rows in table.sort_values("n").groupby(["task", "prior", "epsilon"]):
        name = f"{f'Beta({prior})' if task == 'binomial' else task}, epsilon={epsilon:g}"
        small = (rows[rows.n >= 100].total_variation <= SMALL).all()
        yield check(f"total variation at most {SMALL:g} from n = 100 on ({name})", small)
        at_largest, worst = rows.iloc[-1], rows.loc[rows.total_variation.idxmax()]
        # For redacted sums it first grows with n, as the noise hides less, and stays small (the first check).
        if task == "binomial":
            smaller = at_largest.total_variation + limit * at_largest.total_variation_sem < worst.total_variation
            yield check(f"smaller at the largest n than at its worst ({name})", smaller)
        largest, at_last = f"largest total variation, {name}", f"total variation at the largest n, {name}"
        for words, row, where in ((largest, worst, f" (n={worst.n:g})"), (at_last, at_largest, "")):
            yield from number(words + where, row.total_variation, row.total_variation_sem, of=words)
    yield from number("largest total variation of bits from n = 100 on", bits[bits.n >= 100].total_variation.max())


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
