"""Posteriors of Markov chains on what a release hides, with their diagnostics."""

import math

import numpy as np

from privpost.evaluation import diagnostics
from privpost.release.models.base import Posterior, by_name
from privpost.samplers import noise_aware_draws


def latent_posterior(names, chains: np.ndarray, draws: int) -> Posterior:
    """Draws from chains (sweeps, chains, quantities) on whole-numbered counts."""
    return _assessed(names, chains, draws, "Markov chains on the true counts, with the noise's own law", ())


def gibbs_posterior(names, chains: np.ndarray, draws: int, approximations: tuple[str, ...] = ()) -> Posterior:
    """Draws from the Gibbs sampler of Bernstein and Sheldon (2018), chains (sweeps, chains, quantities)."""
    method = "noise-aware Gibbs sampler of Bernstein and Sheldon (2018)"
    normal = "normal law of the latent sum", "continuous Laplace law of the noise"
    return _assessed(names, chains, draws, method, (*normal, *approximations))


def _assessed(names, chains: np.ndarray, draws: int, method: str, approximations: tuple[str, ...]) -> Posterior:
    """The last draws of all chains, with diagnostics of all that were kept."""
    assessed = diagnostics.assess(chains)
    return Posterior(
        by_name(names, noise_aware_draws.pooled(chains, draws)),
        True,
        f"{method}, {noise_aware_draws.CHAINS} chains",
        (*approximations, "Markov chain Monte Carlo"),
        None if math.isnan(assessed.rhat_max) else assessed.rhat_max,
        None if math.isnan(assessed.ess_min) else assessed.ess_min,
    )
