"""Accuracy of a naive Bayes classifier from private posteriors (Zhang et al. 2016, figure 1)."""

from privpost.evaluation.rows import select
from privpost.experiments.claim_helpers import above, below, ends, joint_limit
from privpost.lab.claims import check, claim, number, word

# Half a standard deviation of the accuracy over models. A difference of this size is not small.
SMALL = 0.05
FIGURE = "section on naive Bayes, figure 1"


def pair(pairs, method, other, *, variant="paper", runs="all", average=False):
    """Return one comparison's rows, sorted by ε, or only the row averaged over ε if `average` is true."""
    contest = {"method": method, "variant": variant, "runs": runs, "other": other, "other_variant": "paper"}
    rows = select(pairs, **contest).sort_values("epsilon")
    return rows[rows.epsilon.isna()].iloc[0] if average else rows[rows.epsilon.notna()]


def difference(name: str, row):
    """Return a row's difference and its standard error as evidence."""
    return number(name, row.difference_mean, row.difference_sem)


@claim(
    "Z1",
    FIGURE,
    "At small epsilon every private mechanism loses accuracy against the true posterior.",
    "paired difference of accuracy at the smallest epsilon below 0 by {allowed}",
    variant="paper, bound, corrected",
)
def loss(naive_bayes_pairs):
    against = select(naive_bayes_pairs, other="non_private", runs="all")
    groups = against[against.epsilon.notna()].groupby(["method", "variant"])
    limit, words = joint_limit(len(groups))
    for (method, variant), rows in groups:
        first = rows.sort_values("epsilon").iloc[0]
        name = f"{method} ({variant}) at epsilon {first.epsilon:g}"
        yield from difference(name, first)
        yield check(f"{name} is below the true posterior", below(first, "difference", limit))
    yield word("allowed", words)


@claim(
    "Z2",
    FIGURE,
    "Fourier is a little less accurate than Laplace, because of the increments.",
    "paired differences of accuracy on stealthy runs, limits of {allowed}: below 0 at some epsilon, above 0 at "
    f"none, within {SMALL:g} at all. A far larger increment, ln 10, tests the reason: it may gain at none",
)
def fourier(naive_bayes, naive_bayes_pairs):
    # The paper plots stealthy runs only.
    rows = pair(naive_bayes_pairs, "fourier", "laplace", runs="stealthy")
    # If increments are the reason, a far larger increment must raise the loss everywhere.
    larger = pair(naive_bayes_pairs, "fourier", "fourier", variant="bound")
    limit, words = joint_limit(2 * len(rows) + len(larger))
    behind, gains = below(rows, "difference", limit), above(larger, "difference", limit)
    lowest, highest = rows.loc[rows.difference_mean.idxmin()], rows.loc[rows.difference_mean.idxmax()]
    yield check("below Laplace at some epsilon", behind.any())
    yield check("nowhere above Laplace", not above(rows, "difference", limit).any())
    yield check(f"by less than {SMALL:g} everywhere", float(rows.difference_mean.abs().max()) < SMALL)
    for runs in ("stealthy", "all"):
        row = pair(naive_bayes_pairs, "fourier", "laplace", runs=runs, average=True)
        yield from difference(f"Fourier minus Laplace, average over epsilon, {runs} runs", row)
    for row in (lowest, highest):
        yield from difference(f"Fourier minus Laplace at epsilon {row.epsilon:.3g}, stealthy runs", row)
    gain = larger.loc[larger.difference_mean.idxmax()]
    yield from difference(f"t = ln 10 minus the t for 90 % at epsilon {gain.epsilon:.3g}, all runs", gain)
    yield check("a larger increment nowhere gains accuracy", not gains.any())
    rate = select(naive_bayes, method="fourier", variant="paper", runs="all").stealth_rate
    yield from number("stealth rate, smallest and largest over epsilon", ends(rate))
    both = gains[larger.epsilon.isin(rows.epsilon[behind])].mean()
    yield from number("share of the epsilons at which Fourier is behind where the larger increment gains", both)
    yield word("allowed", words)


@claim(
    "Z3",
    FIGURE,
    "The trimmed posterior sampler is poor at small epsilon and overtakes the noisy mechanisms past a threshold.",
    "paired differences of accuracy at the epsilons up to 1 and at the largest, limits of {allowed}, for both readings "
    "of the trimming",
    variant="record level, attribute level",
)
def sampler(naive_bayes_pairs):
    contests = [(reading, other) for reading in ("record", "attribute") for other in ("laplace", "fourier")]
    for reading, other in contests:
        rows = pair(naive_bayes_pairs, f"sampler_{reading}", other)
        lower, at_largest = rows[rows.epsilon <= 1], rows.iloc[-1]
        limit, words = joint_limit(len(contests) * (len(lower) + 1))
        for row in (lower.loc[lower.difference_mean.idxmin()], at_largest):
            yield from difference(f"sampler ({reading} level) minus {other} at epsilon {row.epsilon:g}", row)
        behind, ahead = below(lower, "difference", limit).any(), above(at_largest, "difference", limit)
        yield check(f"behind {other} at some epsilon up to 1 ({reading} level)", behind)
        yield check(f"ahead of {other} at epsilon {at_largest.epsilon:g} ({reading} level)", ahead)
    yield word("allowed", words)
