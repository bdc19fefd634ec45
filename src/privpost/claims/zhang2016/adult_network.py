"""Private Bayesian networks of 14 nodes on Adult."""

from __future__ import annotations

from privpost.claims.shared import below, estimate
from privpost.evaluation.calibration import LEVEL
from privpost.evaluation.claims import Claim, from_checks
from privpost.evaluation.multiplicity import critical_value


def claims(tables) -> list[Claim]:
    """Score Z17, which is ours: the paper has no such experiment."""
    table = tables["adult_network"]
    rows = table[table.method == "exact"]
    statement = (
        "On real data the noise-aware posterior of a Laplace release is nearer to the true posterior than the paper's "
        "from the same release, and predicts no worse, at every epsilon."
    )
    test = (
        "naive Bayes of 14 nodes on Adult, paired over repeats: KL divergence less than that of the paper's posterior, "
        f"and accuracy not less, by more than the two-sided Bonferroni limit ({LEVEL:g} over all comparisons)"
    )
    if not len(rows):
        return [Claim("Z17", "ours", statement, test, "not testable", reason="no rows to compare")]
    limit, checks, evidence = critical_value(2 * len(rows), LEVEL), {}, {}
    for row in rows.itertuples():
        name = f"n={row.n:g}, epsilon={row.epsilon:.3g}"
        checks[f"nearer to the true posterior ({name})"] = below(row, "divergence_less_laplace", limit)
        checks[f"predicts no worse ({name})"] = not below(row, "accuracy_less_laplace", limit)
        less = f"divergence less that of the paper's posterior, {name}"
        evidence |= estimate(less, row.divergence_less_laplace_mean, row.divergence_less_laplace_sem)
    return [from_checks("Z17", "ours", statement, test, checks, evidence)]
