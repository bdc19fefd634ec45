"""Draws from the posterior of event counts given one noisy release, by Markov chains that run side by side."""

from __future__ import annotations

import numpy as np

from privpost.samplers import chain, noise_aware_events
from privpost.samplers import hidden_markov_gibbs as gibbs
from privpost.samplers import noise_aware_draws as draw


def event_counts(noisy, prior: gibbs.Prior, regions, n: int, scale: float, draws: int, rng):
    """Emissions given noisy counts of their records, by chains on the true counts.

    Args:
        noisy: the release, (cells, levels), the fields' levels one after the other.
        prior: sizes and concentrations.
        regions: region of each cell, (cells,).
        n: public number of records in all cells.
        scale: scale of the Laplace noise.

    Returns:
        Probabilities (sweeps, chains, K, levels).
    """
    release, every = np.tile(noisy, (draw.CHAINS, 1, 1)), np.ones((draw.CHAINS, len(noisy)), bool)
    latent = noise_aware_events.LatentCounts(release, every, prior, scale, n)
    sampler = noise_aware_events.Chains([latent], gibbs.Layout.of(np.asarray(regions)), prior, draw.COUNT_BURN_IN)
    run = chain.run(sampler, [rng], draws=draw.sweeps(draws), burn_in=draw.COUNT_BURN_IN, thin=draw.COUNT_THIN)
    return np.stack([state.probabilities for state, _ in run])
