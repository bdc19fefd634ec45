"""Bayesian networks with several parents from Laplace-released counts: a chain on the latent records."""

import numpy as np

from privpost.evaluation.calibration import LEVEL
from privpost.evaluation.claims import Claim
from privpost.evaluation.diagnostics import LARGEST_RHAT
from privpost.experiments.noise_aware import score_claims as scores
from privpost.experiments.noise_aware.score_claims import Comparison


def claims(tables) -> list[Claim]:
    """Score N5 in three parts."""
    pairs, chains = tables["networks_pairs"], tables["networks_chains"]
    aware = scores.calibrated(tables["networks_calibration"], ["gibbs", "non_private"])
    # Chains that could not be assessed have no R-hat, and do not count.
    mixed = set(chains[chains.rhat_max <= LARGEST_RHAT][["graph", "epsilon"]].itertuples(index=False, name=None))
    return [
        scores.calibration_claim(
            "N5-calibration",
            "On networks with several parents the noise-aware posterior is calibrated at every epsilon.",
            f"KS statistics of all parameters within the limit (joint false-alarm rate {LEVEL} over {len(aware)} "
            f"tests), where the true posterior's are and the chains have an R-hat of at most {LARGEST_RHAT}",
            aware,
            "gibbs",
            ["graph"],
            {
                "smallest p-value of the noise-aware posterior": aware[aware.method == "gibbs"].p_value.min(),
                "largest R-hat": chains.rhat_max.max(),
                "smallest effective sample size": chains.ess_min.min(),
            },
            valid=lambda rows: np.array([place in mixed for place in zip(rows.graph, rows.epsilon, strict=True)], bool),
        ),
        scores.gain_claim(
            "N5-predictions",
            "On networks with several parents noise-aware predictions have the higher log-likelihood at every epsilon, "
            "and are not less accurate.",
            f"paired differences to truncated and to least-squares counts beyond joint chance ({LEVEL} per "
            "metric and variant); accuracy not below by as much",
            pairs,
            [Comparison("log_likelihood"), Comparison("accuracy", ahead=False)],
            ["graph"],
        ),
        scores.gain_claim(
            "N5-distance",
            "On networks with several parents the noise-aware posterior is closer to the true posterior than the one "
            "that ignores the noise, at every epsilon.",
            f"paired differences of MMD², mean over parameters, beyond joint chance ({LEVEL} per variant)",
            pairs,
            [Comparison("mmd2", sign=-1)],
            ["graph"],
        ),
    ]
