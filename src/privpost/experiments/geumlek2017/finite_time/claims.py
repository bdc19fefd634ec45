"""Private logistic regression by Langevin steps: their charge and their error beside exact draws."""

from privpost.evaluation.claims import Claim, from_checks
from privpost.experiments.claim_helpers import student_limit

LEVEL = 0.05


def claims(tables) -> list[Claim]:
    """Score G15."""
    table = tables["finite_time"]
    steps = table[table.method == "langevin"]
    longest = steps[steps.steps == steps.groupby(["dataset", "log_epsilon"]).steps.transform("max")]
    limit = student_limit(int(table.n_repeats.min()), LEVEL / len(longest))
    checks = {"never a larger charge than the exact draw": bool((steps.share_of_budget <= 1).all())}
    evidence = {"largest share of the exact draw's charge": steps.share_of_budget.max(), "critical t": limit}
    for row in longest.itertuples():
        name = f"{row.metric} on {row.dataset}, ln epsilon = {row.log_epsilon:g}"
        checks[f"{name}: as good after {row.steps:.0f} steps"] = row.behind_mean <= limit * row.behind_sem
        evidence[name] = {"behind by": row.behind_mean, "its standard error": row.behind_sem, "steps": row.steps}
    return [
        from_checks(
            "G15",
            "ours",
            "Langevin steps cost at every number of steps no more than an exact draw with the same power of the "
            "likelihood, and after four relaxation times are as good.",
            "RDP charge at the study's order; test error and log-likelihood not significantly behind the exact draw's "
            "(one-sided t, 5 %, Bonferroni)",
            checks,
            evidence,
            variant="public bounds",
        )
    ]
