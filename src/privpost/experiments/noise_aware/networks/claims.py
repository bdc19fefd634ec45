"""Bayesian networks with several parents from Laplace-released counts: a chain on the latent records."""

from privpost.evaluation.calibration import LEVEL
from privpost.evaluation.diagnostics import LARGEST_RHAT
from privpost.experiments import width_claims
from privpost.experiments.noise_aware.score_claims import Comparison, gained, uniform
from privpost.lab.claims import claim, number


@claim(
    "N5-calibration",
    "ours",
    "On networks with several parents the noise-aware posterior is calibrated at every epsilon.",
    f"quantiles of all parameters, in {{tests}} rows, where the true posterior passes and the chains have an R-hat of "
    f"at most {LARGEST_RHAT}: {width_claims.BOTH}; {{seen}}",
)
def calibration(networks_calibration, networks_chains):
    keys = ["graph", "epsilon"]
    # Chains that could not be assessed have no R-hat, and do not count.
    mixed = networks_chains[networks_chains.rhat_max <= LARGEST_RHAT].set_index(keys).index
    yield from uniform(
        networks_calibration, "gibbs", ["graph"], valid=lambda rows: rows.set_index(keys).index.isin(mixed)
    )
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
