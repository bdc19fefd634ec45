"""Draws from the posterior of event counts given one noisy release, by Markov chains that run side by side."""

from __future__ import annotations

import numpy as np

from privpost.samplers import chain, noise_aware_events
from privpost.samplers import hidden_markov_gibbs as gibbs
from privpost.samplers import noise_aware_draws as draw


def event_counts(noisy, prior: gibbs.Prior, regions, n: int, scale: float, draws: int, rng, fixed=False):
    """Emissions and totals of the cells given noisy counts of their records, by chains on the true counts.

    Args:
        noisy: the release, (cells, levels), the fields' levels one after the other.
        prior: sizes and concentrations.
        regions: region of each cell, (cells,).
        n: public number of records in all cells.
        scale: scale of the Laplace noise.
        fixed: whether cell k is in state k for good.

    Returns:
        Probabilities (sweeps, chains, K, levels), and records of the cells (sweeps, chains, cells).
    """
    release, every = np.tile(noisy, (draw.CHAINS, 1, 1)), np.ones((draw.CHAINS, len(noisy)), bool)
    latent = noise_aware_events.LatentCounts(release, every, prior, scale, n, fixed=fixed)
    annealed = 0 if fixed else draw.COUNT_BURN_IN
    sampler = noise_aware_events.Chains([latent], gibbs.Layout.of(np.asarray(regions)), prior, annealed)
    run = chain.run(sampler, [rng], draws=draw.sweeps(draws), burn_in=draw.COUNT_BURN_IN, thin=draw.COUNT_THIN)
    kept = [(state.probabilities, state.counts[0][..., prior.fields[0]].sum(axis=-1)) for state, _ in run]
    probabilities, totals = map(np.stack, zip(*kept, strict=True))
    return probabilities, totals
