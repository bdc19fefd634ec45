"""Logistic regression at the same (ε, δ): the effect of OPS's accounting, and which sampler is ahead."""

import numpy as np

from privpost.evaluation.calibration import LEVEL
from privpost.evaluation.summaries import in_standard_errors
from privpost.experiments.claim_helpers import student_limit
from privpost.lab.claims import check, claim, number, word

OPS = (
    "At the same (epsilon, delta) and on the paper's ball, OPS has a lower test error if it is charged by the Gaussian "
    "bound of its own law than by its pure cost alone."
)
BALL = (
    "At the same (epsilon, delta) OPS on its smallest ball, which is pure, has a lower test error than on the paper's "
    "ball with the same pure charge."
)
PURE = "Diffused sampling, which is not pure, has a higher test log-likelihood than OPS on its smallest ball."
DIFFUSED = "Diffused sampling has a higher test log-likelihood than concentrated sampling wherever they differ."


@claim(
    "{id}",
    "ours",
    "{says}",
    "{metric}, paired differences beyond {limit:.2f} standard errors (Student's t, "
    f"{100 * LEVEL:g} % over {{settings}} settings)",
    variant="public bounds",
    cases=(
        {"id": "X6", "says": OPS, "one": "ops_renyi", "other": "ops", "metric": "test error"},
        {"id": "X7", "says": DIFFUSED, "one": "diffused", "other": "concentrated", "metric": "test log likelihood"},
        {"id": "X9", "says": BALL, "one": "ops_smallest_ball", "other": "ops", "metric": "test error"},
        {"id": "X10", "says": PURE, "one": "diffused", "other": "ops_smallest_ball", "metric": "test log likelihood"},
    ),
)
def contest(logistic_pairs, id, says, one, other, metric):
    of_metric = logistic_pairs[logistic_pairs.metric == metric.replace(" ", "_")]
    rows = of_metric[[{*pair} == {one, other} for pair in zip(of_metric["first"], of_metric["second"], strict=True)]]
    # If the budget allows the direct posterior, both methods give the same draws from this posterior.
    differ = rows[rows.difference_mean != 0]
    if differ.empty:
        return
    # A smaller error is better, and so is a larger log-likelihood.
    better = np.where(differ["first"] == one, 1, -1) * (-1 if metric == "test error" else 1)
    differ = differ.assign(lead=better * in_standard_errors(differ))
    limit = student_limit(int(logistic_pairs.n_repeats.min()), LEVEL / (2 * len(rows)))
    yield word("limit", limit)
    yield word("settings", len(rows))
    for dataset, part in differ.groupby("dataset"):
        behind, undecided = part[part.lead < -limit], part[part.lead.abs() <= limit]
        least, settings = part.loc[part.lead.idxmin()], (rows.dataset == dataset).sum()
        yield check(f"{one} ahead of {other} on {dataset}", (part.lead > limit).all(), of=dataset)
        evidence = {
            "settings": settings,
            "same posterior": settings - len(part),
            "ahead": (part.lead > limit).sum(),
            "behind": len(behind),
            "smallest lead in standard errors": least.lead,
            "its difference": least.difference_mean,
            "its standard error": least.difference_sem,
            "behind at (epsilon, delta)": behind[["epsilon", "delta"]].values.tolist(),
            "undecided at (epsilon, delta)": undecided[["epsilon", "delta"]].values.tolist(),
        }
        yield from number(f"{one} against {other} on {dataset}", evidence)
