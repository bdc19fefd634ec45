"""Claims on private logistic regression with Langevin steps, compared with exact posterior draws."""

from privpost.evaluation.rows import select
from privpost.experiments.claim_helpers import student_limit
from privpost.lab.claims import check, claim, number

LEVEL = 0.05


@claim(
    "G15",
    "ours",
    "After any number of Langevin steps the state costs no more than an exact draw with the same power of the "
    "likelihood. After four relaxation times it is as good.",
    "RDP charge at the study's order; test error and log-likelihood not significantly behind the exact draw's "
    "(one-sided t, 5 %, Bonferroni)",
    variant="public bounds",
)
def langevin(finite_time):
    steps = select(finite_time, method="langevin")
    longest = steps[steps.steps == steps.groupby(["dataset", "log_epsilon"]).steps.transform("max")]
    limit = student_limit(int(finite_time.n_repeats.min()), LEVEL / len(longest))
    yield check("never a larger charge than the exact draw", (steps.share_of_budget <= 1).all())
    yield from number("largest share of the exact draw's charge", steps.share_of_budget.max())
    yield from number("critical t", limit)
    for row in longest.itertuples():
        name = f"{row.metric} on {row.dataset}, ln epsilon = {row.log_epsilon:g}"
        yield check(f"{name}: as good after {row.steps:.0f} steps", row.behind_mean <= limit * row.behind_sem)
        evidence = {"behind by": row.behind_mean, "its standard error": row.behind_sem, "steps": row.steps}
        yield from number(name, evidence)
