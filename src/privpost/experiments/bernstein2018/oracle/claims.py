"""The noise-aware posterior against the exact one (ours; models of Bernstein and Sheldon 2018)."""

from privpost.experiments.claim_helpers import joint_limit
from privpost.lab.claims import check, claim, number, word

# The total variation that is called small.
SMALL = 0.02


@claim(
    "B7",
    "ours",
    "The normal approximation costs little: the sampler's law tends to the exact posterior as n grows.",
    f"mean total variation over trials at most {SMALL:g} for n ≥ 100, of bits at the largest n below its worst "
    "value by {allowed}, and binned draws within their floor of the law without a chain",
)
def approximation(oracle):
    limit, words = joint_limit(len(oracle[oracle.model == "binomial"].groupby(["prior", "epsilon"])))
    yield word("allowed", words)
    for (model, prior, epsilon), rows in oracle.sort_values("n").groupby(["model", "prior", "epsilon"]):
        name = f"{prior if model == 'binomial' else model}, epsilon={epsilon:g}"
        small = (rows[rows.n >= 100].total_variation <= SMALL).all()
        yield check(f"total variation at most {SMALL:g} from n = 100 on ({name})", small)
        at_largest, worst = rows.iloc[-1], rows.loc[rows.total_variation.idxmax()]
        # For redacted sums it first grows with n, as the noise hides less, and stays small (the first check).
        if model == "binomial":
            smaller = at_largest.total_variation + limit * at_largest.total_variation_sem < worst.total_variation
            yield check(f"smaller at the largest n than at its worst ({name})", smaller)
        # Bins can only lose distance, and the floor is about what independent draws would show.
        excess = rows.total_variation_sampled - rows.total_variation - 2 * rows.sampling_floor
        yield check(f"the sampler's draws are no further than its stationary law ({name})", (excess <= 0).all())
        largest, at_last = f"largest total variation, {name}", f"total variation at the largest n, {name}"
        for words, row, where in ((largest, worst, f" (n={worst.n:g})"), (at_last, at_largest, "")):
            yield from number(words + where, row.total_variation, row.total_variation_sem, of=words)
    large = oracle[(oracle.n >= 100) & (oracle.model == "binomial")]
    yield from number("largest total variation of bits from n = 100 on", large.total_variation.max())
