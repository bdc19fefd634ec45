"""Markov chains on what a release hides, and their diagnostics."""

from __future__ import annotations

import math

import numpy as np
from scipy.special import logsumexp

from privpost.evaluation import diagnostics
from privpost.release.models.base import Posterior, by_name
from privpost.release.specification import Specification
from privpost.samplers import hidden_markov_gibbs as gibbs
from privpost.samplers import noise_aware_events, noise_aware_gibbs

# Chains of the noise-aware Gibbs samplers, and their sweeps before and between the draws that are kept.
# Sweeps of the Gibbs sampler are handed over in chunks whose length is a multiple of THIN.
CHAINS, BURN_IN, THIN = 8, 2000, 25
# Those of the chains on counts, which mix faster and cost more.
COUNT_BURN_IN, COUNT_THIN = 800, 10


def sweeps(draws: int) -> int:
    """Sweeps of each chain that are kept: enough for the draws that are asked for, and for diagnostics."""
    return max(math.ceil(draws / CHAINS), diagnostics.MINIMUM_DRAWS)


def gibbs_chains(kernel, draws: int, rng) -> np.ndarray:
    """Every `THIN`-th sweep of the chains after the burn-in, shape (sweeps, *theta.shape)."""
    kept: list[np.ndarray] = []
    noise_aware_gibbs.run(kernel, rng, BURN_IN, THIN * sweeps(draws), lambda chunk: kept.append(chunk[::THIN].copy()))
    return np.concatenate(kept)


def latent_counts(noisy, sizes, spec: Specification, scale: float, rng) -> tuple[np.ndarray, np.ndarray]:
    """Chains on the counts of records behind their noisy release, each row of counts with probabilities of its own.

    Args:
        noisy: the release, (rows, levels), the fields' levels one after the other.
        sizes: number of levels of each field.

    Returns:
        Probabilities (sweeps, chains, rows, levels), and totals of the rows (sweeps, chains, rows).
    """
    n_rows = len(noisy)
    prior = gibbs.Prior(n_rows, tuple(sizes), emission=spec.prior["concentration"])
    release, every = np.tile(noisy, (CHAINS, 1, 1)), np.ones((CHAINS, n_rows), bool)
    latent = noise_aware_events.LatentCounts(release, every, prior, scale, np.full(CHAINS, spec.n), rng)
    own_row = np.tile(np.arange(n_rows)[:, None], CHAINS)
    probabilities, totals = [], []
    for sweep in range(COUNT_BURN_IN + COUNT_THIN * sweeps(spec.draws)):
        logs = log_dirichlet(prior.emission + latent.counts, prior.fields, rng)
        if sweep >= COUNT_BURN_IN and (sweep - COUNT_BURN_IN) % COUNT_THIN == 0:
            probabilities.append(np.exp(logs))
            totals.append(latent.totals.reshape(CHAINS, n_rows).copy())
        latent.update(own_row, logs)
    return np.stack(probabilities), np.stack(totals)


def log_dirichlet(parameters, fields: list[slice], rng) -> np.ndarray:
    """Logarithms of Dirichlet draws, field by field along the last axis; they stay finite where draws underflow."""
    # Gamma(α) = Gamma(α + 1) U^(1/α).
    logs = np.log(rng.standard_gamma(parameters + 1)) - rng.standard_exponential(parameters.shape) / parameters
    for field in fields:
        logs[..., field] -= logsumexp(logs[..., field], axis=-1, keepdims=True)
    return logs


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
    pooled = chains.reshape(-1, chains.shape[-1])[-draws:]
    return Posterior(
        by_name(names, pooled),
        True,
        f"{method}, {CHAINS} chains",
        (*approximations, "Markov chain Monte Carlo"),
        None if math.isnan(assessed.rhat_max) else assessed.rhat_max,
        None if math.isnan(assessed.ess_min) else assessed.ess_min,
    )
