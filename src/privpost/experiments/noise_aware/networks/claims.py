"""Bayesian networks with several parents from Laplace-released counts: a chain on the latent records."""

from privpost.evaluation.calibration import LEVEL
from privpost.evaluation.diagnostics import LARGEST_RHAT
from privpost.experiments.noise_aware.score_claims import Comparison, calibrated, gained, uniform
from privpost.lab.claims import claim, number, word


@claim(
    "N5-calibration",
    "ours",
    "On networks with several parents the noise-aware posterior is calibrated at every epsilon.",
    f"KS statistics of all parameters within the limit (joint false-alarm rate {LEVEL} over {{tests}} tests), where "
    f"the true posterior's are and the chains have an R-hat of at most {LARGEST_RHAT}",
)
def calibration(networks_calibration, networks_chains):
    rows, keys = calibrated(networks_calibration, ["gibbs", "non_private"]), ["graph", "epsilon"]
    # Chains that could not be assessed have no R-hat, and do not count.
    mixed = networks_chains[networks_chains.rhat_max <= LARGEST_RHAT].set_index(keys).index
    yield word("tests", len(rows))
    yield from uniform(rows, "gibbs", ["graph"], valid=lambda rows: rows.set_index(keys).index.isin(mixed))
    yield from number("largest R-hat", networks_chains.rhat_max.max())
    yield from number("smallest effective sample size", networks_chains.ess_min.min())


@claim(
    "N5-predictions",
    "ours",
    "On networks with several parents noise-aware predictions have the higher log-likelihood at every epsilon, and are "
    "not less accurate.",
    f"paired differences to truncated and to least-squares counts beyond joint chance ({LEVEL} per metric and "
    "variant); accuracy not below by as much",
    variant="paper, consistent",
)
def predictions(networks_pairs):
    return gained(networks_pairs, [Comparison("log_likelihood"), Comparison("accuracy", ahead=False)], ["graph"])


@claim(
    "N5-distance",
    "ours",
    "On networks with several parents the noise-aware posterior is closer to the true posterior than the one that "
    "ignores the noise, at every epsilon.",
    f"paired differences of MMD², mean over parameters, beyond joint chance ({LEVEL} per variant)",
    variant="paper, consistent",
)
def distance(networks_pairs):
    return gained(networks_pairs, [Comparison("mmd2", sign=-1)], ["graph"])
