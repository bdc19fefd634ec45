"""The noise-aware posterior against the exact one (ours; models of Bernstein and Sheldon 2018)."""

from privpost.evaluation.claims import Claim, Why, from_checks
from privpost.experiments.claim_helpers import estimate

# Standard errors beyond which a mean is smaller, and the total variation that is called small.
LIMIT, SMALL = 4.0, 0.02


def claims(tables) -> list[Claim]:
    """Score B7."""
    table = tables["oracle"].sort_values("n")
    checks, evidence = {}, {}
    small = f"total variation at most {SMALL:g} from n = 100 on"
    for (model, prior, epsilon), rows in table.groupby(["model", "prior", "epsilon"]):
        name = f"{prior}, epsilon={epsilon:g}" if model == "binomial" else f"{model}, epsilon={epsilon:g}"
        paper = rows[rows.n >= 100]
        checks[f"{small} ({name})"] = (paper.total_variation <= SMALL).all()
        last, worst = rows.iloc[-1], rows.loc[rows.total_variation.idxmax()]
        # Of a redacted sum it first grows with n, as the noise hides less, and stays small (the first check).
        if model == "binomial":
            checks[f"smaller at the largest n than at its worst ({name})"] = (
                last.total_variation + LIMIT * last.total_variation_sem < worst.total_variation
            )
        # Bins only lose distance, and the floor is about what independent draws would show.
        excess = rows.total_variation_sampled - rows.total_variation - 2 * rows.sampling_floor
        checks[f"the sampler's draws are no further than its stationary law ({name})"] = (excess <= 0).all()
        for words, row, where in (
            (f"largest total variation, {name}", worst, f" (n={worst.n:g})"),
            (f"total variation at the largest n, {name}", last, ""),
        ):
            evidence |= estimate(words + where, row.total_variation, row.total_variation_sem, of=words)
    large = table[(table.n >= 100) & (table.model == "binomial")]
    skew = large.prior[large.total_variation.idxmax()] if len(large) else ""
    far = float(large.total_variation.max())
    return [
        from_checks(
            "B7",
            "ours",
            "The normal approximation costs little: the sampler's law tends to the exact posterior as n grows.",
            f"mean total variation over trials at most {SMALL:g} for n ≥ 100, of bits at the largest n below its worst "
            f"value by {LIMIT:g} standard errors, and binned draws within their floor of the law without a chain",
            checks,
            evidence,
            whys=[
                Why(
                    f"A prior of {skew} puts the count near 0 or n, where its law is skew and no normal law fits: the "
                    f"total variation is still {far:.2g} at n = {large.n.min():g}.",
                    (f"{small} ({skew}*",),
                    "docs/bernstein2018.md#how-good-is-the-normal-approximation-oracle-ours",
                )
            ],
        )
    ]
