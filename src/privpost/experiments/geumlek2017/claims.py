"""Claims of Geumlek et al. (2017) that do not belong to a single study."""

from privpost.lab.claims import check, claim, number


@claim(
    "G12",
    "theorems 13 and 14",
    "A small enough coefficient reaches any privacy level, also above the critical order.",
    "the coefficient found for each of several epsilons under four priors and two orders, below and above the "
    "critical ones: positive, at most 1, and growing with epsilon (exact, no multiplicity)",
    variant="paper, corrected",
)
def reach_any_level(reach):
    groups = reach.sort_values("log_epsilon").groupby(["variant", "method", "order", "alpha", "beta"])
    for (variant, method, order, alpha, beta), curve in groups:
        name = f"{method}, order {order:g}, Beta({alpha:g}, {beta:g}), {variant}"
        grows = curve.coefficient.between(0, 1, "right").all() and curve.coefficient.is_monotonic_increasing
        yield from number(f"coefficient at the smallest epsilon, {name}", curve.coefficient.iloc[0])
        yield check(f"a coefficient in (0, 1] at every epsilon, growing with it ({name})", grows)
