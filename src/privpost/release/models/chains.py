"""Markov chains on what a release hides, and their diagnostics."""

from __future__ import annotations

import math

import numpy as np

from privpost.evaluation import diagnostics
from privpost.release.models.base import Posterior, by_name
from privpost.release.specification import Specification
from privpost.samplers import chain, noise_aware_events
from privpost.samplers import hidden_markov_gibbs as gibbs

# Chains of the noise-aware Gibbs samplers, and their sweeps before and between the draws that are kept.
CHAINS, BURN_IN, THIN = 8, 2000, 25
# Those of the chains on counts, which mix faster and cost more.
COUNT_BURN_IN, COUNT_THIN = 800, 10


def sweeps(draws: int) -> int:
    """Sweeps of each chain that are kept: enough for the draws that are asked for, and for diagnostics."""
    return max(math.ceil(draws / CHAINS), diagnostics.MINIMUM_DRAWS)


def gibbs_chains(kernel, draws: int, rng) -> np.ndarray:
    """Every `THIN`-th sweep of the chains after the burn-in, shape (sweeps, *theta.shape)."""
    run = chain.run(kernel, rng, draws=sweeps(draws), burn_in=BURN_IN, thin=THIN)
    return np.stack([state.theta for state, _ in run])


def latent_counts(noisy, sizes, spec: Specification, scale: float, rng) -> tuple[np.ndarray, np.ndarray]:
    """Chains on the counts of records behind their noisy release, each row of counts with probabilities of its own.

    Args:
        noisy: the release, (rows, levels), the fields' levels one after the other.
        sizes: number of levels of each field.

    Returns:
        Probabilities (sweeps, chains, rows, levels), and totals of the rows (sweeps, chains, rows).
    """
    prior = gibbs.Prior(len(noisy), tuple(sizes), emission=spec.prior["concentration"])
    release, every = np.tile(noisy, (CHAINS, 1, 1)), np.ones((CHAINS, len(noisy)), bool)
    latent = noise_aware_events.LatentCounts(release, every, prior, scale, spec.n, fixed=True)
    rows = noise_aware_events.Chains([latent], gibbs.Layout.of(np.arange(len(noisy))), prior, 0)
    run = chain.run(rows, [rng], draws=sweeps(spec.draws), burn_in=COUNT_BURN_IN, thin=COUNT_THIN)
    kept = [(state.probabilities, state.counts[0][..., prior.fields[0]].sum(axis=-1)) for state, _ in run]
    probabilities, totals = map(np.stack, zip(*kept, strict=True))
    return probabilities, totals


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
