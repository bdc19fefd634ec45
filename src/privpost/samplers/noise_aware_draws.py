"""Draws from posteriors given one noisy release, by Markov chains that run side by side."""

import math

import numpy as np

from privpost.evaluation import diagnostics
from privpost.samplers import chain, noise_aware_table

# Chains of the noise-aware Gibbs samplers, and their sweeps before and between the draws that are kept.
CHAINS, BURN_IN, THIN = 8, 2000, 25
# Those of the chains on counts, which mix faster and cost more.
COUNT_BURN_IN, COUNT_THIN = 800, 10
# Networks of more nodes have too large a table of records.
LARGEST_TABLE = 5


def sweeps(draws: int) -> int:
    """Sweeps of each chain that are kept: enough for the draws that are asked for, and for diagnostics."""
    return max(math.ceil(draws / CHAINS), diagnostics.MINIMUM_DRAWS)


def pooled(chains: np.ndarray, draws: int) -> np.ndarray:
    """The last draws (draws, ...) of all chains (sweeps, chains, ...)."""
    return chains.reshape(-1, *chains.shape[2:])[-draws:]


def redacted_sum(family, release: float, n: int, scale: float, low, high, draws: int, rng) -> np.ndarray:
    """θ (sweeps, chains) given a noisy sum of the records in [low, high]; arguments as of `redacted_kernel`."""
    # Compiled code is loaded where chains are run.
    from privpost.samplers.noise_aware_redacted import redacted_kernel

    kernel = redacted_kernel(family, np.full(CHAINS, float(release)), n, scale, low, high)
    run = chain.run(kernel, rng, draws=sweeps(draws), burn_in=BURN_IN, thin=THIN)
    return np.stack([state.theta for state, _ in run])


def network(model, release, n: int, scale: float, draws: int, rng) -> np.ndarray:
    """θ (sweeps, chains, m) of a Bayesian network given its noisy counts (2m,), by a table of all records if small."""
    given = model, np.tile(np.asarray(release, float), (CHAINS, 1)), n, scale
    if len(model.nodes) <= LARGEST_TABLE:
        sampler = noise_aware_table.Tables(*given)
    else:
        from privpost.samplers.noise_aware_records import Records

        sampler = Records(*given)
    run = chain.run(sampler, rng, draws=sweeps(draws), burn_in=COUNT_BURN_IN, thin=COUNT_THIN)
    kept = np.stack([_by_chain(state.counts.copy()) for state, _ in run])
    return model.sample(model.posterior(kept), rng)


def _by_chain(counts) -> np.ndarray:
    """Counts (chains, 2m) of a table's (2m, chains) or of records' (chains, m, 2)."""
    return counts.T if counts.ndim == 2 else counts.reshape(len(counts), -1)
