"""Claims of Geumlek et al. (2017) that go beyond one figure, scored from the paper's tables together."""

from privpost.evaluation.claims import Claim, from_checks


def claims(tables) -> list[Claim]:
    """Score G12: every privacy level is reached by a small enough coefficient."""
    checks, evidence = {}, {}
    groups = ["variant", "method", "order", "alpha", "beta"]
    for (variant, method, order, alpha, beta), curve in tables["reach"].groupby(groups):
        name = f"{method}, order {order:g}, Beta({alpha:g}, {beta:g}), {variant}"
        coefficients = curve.sort_values("log_epsilon").coefficient
        evidence[f"coefficient at the smallest epsilon, {name}"] = coefficients.iloc[0]
        within = bool(((coefficients > 0) & (coefficients <= 1)).all())
        checks[f"a coefficient in (0, 1] at every epsilon, growing with it ({name})"] = (
            within and coefficients.is_monotonic_increasing
        )
    return [
        from_checks(
            "G12",
            "theorems 13 and 14",
            "A small enough coefficient reaches any privacy level, also above the critical order.",
            "the coefficient found for each of several epsilons under four priors and two orders, below and above the "
            "critical ones: positive, at most 1, and growing with epsilon (exact, no multiplicity)",
            checks,
            evidence,
            variant="paper, corrected",
        )
    ]
