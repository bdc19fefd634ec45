"""The loss in KL divergence that table 1 of Zhang et al. (2016) bounds up to constants."""

from privpost.lab.claims import check, claim, number

# A constant serves where the loss over both terms grows by less than this factor from one n to the next.
LEVEL_OFF = 1.1


@claim(
    "Z16",
    "theorem 1, last part; table 1",
    "The loss in KL divergence is O(mn ln n)(1 - exp(-n epsilon/(2|I|))) plus a term in ln delta, and the "
    "bound on its mean is refined for n of at least 2|I|/epsilon.",
    "one node, half of the records ones: exact mean loss over the sum of both terms without constants, along n with "
    f"epsilon = 2|I|/n (the premise of the refinement) and 1/n²: grows by less than {LEVEL_OFF:g} times over the last "
    "step of n",
)
def divergence(theorem1):
    names = {"n": "with the premise n >= 2|I|/epsilon", "n_squared": "without it, as table 1 prints it"}
    for rule, rows in theorem1.sort_values("n").groupby("epsilon_times"):
        ratio = (rows.mean_loss / (rows.first_term + rows.second_term)).to_numpy()
        yield check(f"a constant serves {names[rule]}", ratio[-1] < LEVEL_OFF * ratio[-2])
        yield from number(f"loss over both terms by n, {names[rule]}", dict(zip(rows.n, ratio, strict=True)))
