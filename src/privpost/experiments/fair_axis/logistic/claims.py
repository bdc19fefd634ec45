"""Logistic regression at the same (ε, δ): what OPS's accounting does, and which sampler is ahead."""

from privpost.evaluation.claims import Claim, from_checks
from privpost.evaluation.multiplicity import FALSE_ALARM
from privpost.evaluation.rows import select
from privpost.evaluation.summaries import in_standard_errors
from privpost.experiments.claim_helpers import student_limit


def leads(pairs, one: str, other: str, metric: str):
    """Rows in which both methods stand, with `lead`: how many standard errors `one` is ahead of `other`."""
    rows = pairs[pairs.metric == metric]
    forward, backward = select(rows, first=one, second=other), select(rows, first=other, second=one)
    # A smaller error is better, a larger log-likelihood too.
    sign = -1 if metric == "test_error" else 1
    for part, direction in ((forward, sign), (backward, -sign)):
        if len(part):
            return part.assign(lead=direction * in_standard_errors(part))
    return rows.iloc[:0].assign(lead=[])


def claims(tables) -> list[Claim]:
    """Score X6 and X7."""
    pairs = tables["logistic_pairs"]
    ops = (
        "At the same (epsilon, delta) OPS charged by the Gaussian bound of its own law has a lower test error than OPS "
        "charged by its pure cost alone."
    )
    diffused = "Diffused is ahead of concentrated sampling in test log-likelihood wherever they differ."
    found = [
        _contest("X6", ops, pairs, "ops_renyi", "ops", "test_error"),
        _contest("X7", diffused, pairs, "diffused", "concentrated", "test_log_likelihood"),
    ]
    return [claim for claim in found if claim is not None]


def _contest(id: str, statement: str, pairs, one: str, other: str, metric: str) -> Claim | None:
    """Score whether one method is ahead of another wherever they differ; None where they never do."""
    rows = leads(pairs, one, other, metric)
    if (rows.difference_mean == 0).all():
        return None
    limit = student_limit(int(pairs.n_repeats.min()), FALSE_ALARM / (2 * len(rows)))
    checks, evidence = {}, {}
    for dataset, every in rows.groupby("dataset"):
        # Where the budget affords the direct posterior both are it, draw by draw.
        part = every[every.difference_mean != 0]
        if part.empty:
            continue
        behind, undecided = part[part.lead < -limit], part[part.lead.abs() <= limit]
        least = part.loc[part.lead.idxmin()]
        checks[f"{one} ahead of {other} on {dataset}"] = (part.lead > limit).all()
        evidence[f"{one} against {other} on {dataset}"] = {
            "settings": len(every),
            "same posterior": len(every) - len(part),
            "ahead": (part.lead > limit).sum(),
            "behind": len(behind),
            "smallest lead in standard errors": least.lead,
            "its difference": least.difference_mean,
            "its standard error": least.difference_sem,
            "behind at (epsilon, delta)": behind[["epsilon", "delta"]].values.tolist(),
            "undecided at (epsilon, delta)": undecided[["epsilon", "delta"]].values.tolist(),
        }
    return from_checks(
        id,
        "ours",
        statement,
        f"{metric.replace('_', ' ')}, paired differences beyond {limit:.2f} standard errors (Student's t, joint "
        f"false-alarm rate {FALSE_ALARM} over {len(rows)} settings)",
        checks,
        evidence,
        variant="public bounds",
    )
