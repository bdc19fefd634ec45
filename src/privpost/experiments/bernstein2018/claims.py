"""Claims of Bernstein and Sheldon (2018) that do not belong to a single study."""

from privpost.evaluation.rows import select
from privpost.experiments.bernstein2018.calibrated import (
    NO_CHAIN,
    POINT,
    TEST,
    calibrated_by_model,
    evidence,
    public_bounds,
)
from privpost.experiments.claim_helpers import joint_limit
from privpost.lab.claims import check, claim, number, word

# Studies of other papers whose tables these claims read.
READS = ("noise_aware/rivals",)
# Families that claim B7 is about, and the largest total variation that claim B7 calls small.
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
        yield check(f"total variation at most {SMALL:g} from n = 100 on ({name})", small, of=task)
        at_largest, worst = rows.iloc[-1], rows.loc[rows.total_variation.idxmax()]
        # For redacted sums the error first grows with n, as the noise hides less. The first check bounds the error.
        if task == "binomial":
            smaller = at_largest.total_variation + limit * at_largest.total_variation_sem < worst.total_variation
            yield check(f"smaller at the largest n than at its worst ({name})", smaller, of=task)
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
    # The claim reads two tables. `calibration` has two families, and `truncation` has one of them at a further ε.
    table = select(calibration, variant="corrected")
    yield from calibrated_by_model(table, "gibbs", "Gibbs")
    yield from evidence(calibrated_by_model(table, "exact", NO_CHAIN))
    yield from evidence(public_bounds(truncation, "exact", POINT))
    gibbs = list(public_bounds(truncation, "gibbs", f"exponential, truncation, {POINT}"))
    yield from gibbs
    failed = [part.name for part in gibbs if part.kind == "check" and not part.value]
    chains = select(convergence, model="exponential", variant="corrected", sampler="gibbs")
    for row in chains.itertuples():
        # A large R-hat shows that chains are stuck at one of several modes. Then the run has failed, not the posterior.
        if f"exponential, truncation, {POINT.format(row=row)}" in failed:
            yield from number(f"share of releases with stuck chains, {POINT.format(row=row)}", row.stuck_share)
