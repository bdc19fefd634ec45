"""Logistic regression at the same (ε, δ): what OPS's accounting does, and which sampler is ahead."""

from __future__ import annotations

from privpost.claims.shared import student_limit
from privpost.evaluation.claims import Claim, from_checks
from privpost.evaluation.multiplicity import FALSE_ALARM
from privpost.evaluation.summaries import in_standard_errors


def leads(pairs, one: str, other: str, metric: str):
    """Rows in which both methods stand, with `lead`: how many standard errors `one` is ahead of `other`."""
    rows = pairs[pairs.metric == metric]
    forward = rows[(rows["first"] == one) & (rows["second"] == other)]
    backward = rows[(rows["first"] == other) & (rows["second"] == one)]
    # A smaller error is better, a larger log-likelihood too.
    sign = -1 if metric == "test_error" else 1
    for part, direction in ((forward, sign), (backward, -sign)):
        if len(part):
            return part.assign(lead=direction * in_standard_errors(part))
    return rows.iloc[:0].assign(lead=[])


def claims(tables) -> list[Claim]:
    """Score X6 and X7."""
    pairs = tables["logistic_pairs"]
    results = []
    for id, statement, contests in (
        (
            "X6",
            "At the same (epsilon, delta) OPS charged by the Gaussian bound of its own law has a lower test error than "
            "OPS charged by its pure cost alone.",
            (("ops_renyi", "ops"),),
        ),
        (
            "X7",
            "Diffused is ahead of concentrated sampling in test log-likelihood wherever they differ.",
            (("diffused", "concentrated"),),
        ),
    ):
        metric = "test_error" if id == "X6" else "test_log_likelihood"
        found = {contest: leads(pairs, *contest, metric) for contest in contests}
        total = sum(map(len, found.values()))
        if not any((rows.difference_mean != 0).any() for rows in found.values()):
            continue
        limit = student_limit(int(pairs.n_repeats.min()), FALSE_ALARM / (2 * total))
        checks, evidence = {}, {}
        for (one, other), rows in found.items():
            for dataset, every in rows.groupby("dataset"):
                # Where the budget affords the direct posterior both are it, draw by draw.
                part = every[every.difference_mean != 0]
                if part.empty:
                    continue
                checks[f"{one} ahead of {other} on {dataset}"] = (part.lead > limit).all()
                evidence[f"{one} against {other} on {dataset}"] = {
                    "settings": len(every),
                    "same posterior": len(every) - len(part),
                    "ahead": int((part.lead > limit).sum()),
                    "behind": int((part.lead < -limit).sum()),
                    "smallest lead in standard errors": part.lead.min(),
                    "its difference": part.difference_mean[part.lead.idxmin()],
                    "its standard error": part.difference_sem[part.lead.idxmin()],
                    "behind at (epsilon, delta)": [
                        [row.epsilon, row.delta] for row in part[part.lead < -limit].itertuples()
                    ],
                    "undecided at (epsilon, delta)": [
                        [row.epsilon, row.delta] for row in part[part.lead.abs() <= limit].itertuples()
                    ],
                }
        results.append(
            from_checks(
                id,
                "ours",
                statement,
                f"{metric.replace('_', ' ')}, paired differences beyond {limit:.2f} standard errors (Student's t, "
                f"joint false-alarm rate {FALSE_ALARM} over {total} settings)",
                checks,
                evidence,
                variant="public bounds",
            )
        )
    return results
