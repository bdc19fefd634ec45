"""Claims on private Bayesian networks of 14 nodes on Adult."""

from privpost.evaluation.calibration import LEVEL
from privpost.evaluation.diagnostics import LARGEST_RHAT
from privpost.experiments.claim_helpers import below, student_limit
from privpost.experiments.noise_aware.score_claims import AWARE
from privpost.lab.claims import check, claim, number, untestable

# A loss of accuracy of at least this size, one record in twenty, counts as worse.
MARGIN = 0.05


@claim(
    "Z17",
    "ours",
    "On real data the noise-aware posterior of a Laplace release is, at every epsilon, nearer to the true "
    "posterior than the paper's posterior from the same release, and predicts no worse.",
    "networks of 14 nodes on Adult, paired over repeats: KL divergence less than that of the paper's posterior, and "
    f"accuracy lower by less than {MARGIN:g} (non-inferiority), each beyond the one-sided limit of Student's t "
    f"({100 * LEVEL:g} % over all comparisons); chains only where their R-hat is at most {LARGEST_RHAT}",
)
def noise_aware_network(adult_network):
    aware = adult_network[adult_network.method.isin(AWARE)]
    # Chains that have not mixed support no verdict.
    rows = aware[(aware.sampling == "exact") | (aware.rhat_max <= LARGEST_RHAT)]
    yield untestable("no rows to compare")
    yield from number("points left out", len(aware) - len(rows))
    for row in rows.itertuples():
        limit = student_limit(row.n_repeats, LEVEL / (2 * len(rows)))
        name = f"{row.graph}, n={row.n:g}, epsilon={row.epsilon:.3g}"
        yield check(f"nearer to the true posterior ({name})", below(row, "divergence_less_laplace", limit))
        loss, error = row.accuracy_less_laplace_mean, row.accuracy_less_laplace_sem
        yield check(f"predicts no worse ({name})", loss - limit * error > -MARGIN)
        less = f"divergence less that of the paper's posterior, {name}"
        yield from number(less, row.divergence_less_laplace_mean, row.divergence_less_laplace_sem)
        yield from number(f"accuracy less that of the paper's posterior, {name}", loss, error)
        yield from number(f"repeats, {row.graph}", row.n_repeats)
