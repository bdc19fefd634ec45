"""Private Bayesian networks of 14 nodes on Adult."""

from privpost.evaluation.calibration import LEVEL
from privpost.evaluation.claims import Claim, from_checks
from privpost.evaluation.diagnostics import LARGEST_RHAT
from privpost.experiments.claim_helpers import below, estimate, student_limit
from privpost.experiments.noise_aware.score_claims import AWARE


def claims(tables) -> list[Claim]:
    """Score Z17, which is ours: the paper has no such experiment."""
    table = tables["adult_network"]
    aware = table.method.isin(AWARE)
    # Chains that have not mixed support nothing.
    rows = table[aware & ((table.sampling == "exact") | (table.rhat_max <= LARGEST_RHAT))]
    checks, evidence = {}, {"points left out": int(aware.sum()) - len(rows)}
    for row in rows.itertuples():
        limit = student_limit(row.n_repeats, LEVEL / (4 * len(rows)))
        name = f"{row.graph}, n={row.n:g}, epsilon={row.epsilon:.3g}"
        checks[f"nearer to the true posterior ({name})"] = below(row, "divergence_less_laplace", limit)
        checks[f"predicts no worse ({name})"] = not below(row, "accuracy_less_laplace", limit)
        less = f"divergence less that of the paper's posterior, {name}"
        evidence |= estimate(less, row.divergence_less_laplace_mean, row.divergence_less_laplace_sem)
    return [
        from_checks(
            "Z17",
            "ours",
            "On real data the noise-aware posterior of a Laplace release is nearer to the true posterior than the "
            "paper's from the same release, and predicts no worse, at every epsilon.",
            "networks of 14 nodes on Adult, paired over repeats: KL divergence less than that of the paper's "
            "posterior, and accuracy not less, by more than the two-sided limit of Student's t "
            f"({LEVEL:g} over all comparisons); chains only where their R-hat is at most {LARGEST_RHAT}",
            checks,
            evidence,
            untestable="no rows to compare",
        )
    ]
