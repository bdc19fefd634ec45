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
    release, observed = np.tile(noisy, (draw.CHAINS, 1, 1)), np.ones((draw.CHAINS, len(noisy)), bool)
    latent = noise_aware_events.LatentCounts(release, observed, prior, scale, n)
    sampler = noise_aware_events.Chains([latent], gibbs.Layout.of(np.asarray(regions)), prior, draw.COUNT_BURN_IN)
    counts, held = noise_aware_events.LatentCounts(scattered(release, prior, n, rng), observed, prior, scale, n).start()
    start = sampler.init([rng])._replace(counts=(counts,), held=held)
    length = {"draws": draw.sweeps(draws), "burn_in": draw.COUNT_BURN_IN, "thin": draw.COUNT_THIN}
    return np.stack([state.probabilities for state, _ in chain.run(sampler, [rng], **length, state=start)])


def scattered(release, prior: gibbs.Prior, n: int, rng) -> np.ndarray:
    """Counts where chains start, shape of the release (chains, cells, levels): the first at it, others from the prior.

    If all chains began at the release, they would agree with each other before they reach the posterior.
    """
    starts = np.array(release, float)
    for counts in starts[1:]:
        cells = rng.dirichlet(np.ones(len(counts))) * n
        states = rng.integers(prior.n_states, size=len(counts))
        for field, size in zip(prior.fields, prior.sizes, strict=True):
            counts[:, field] = cells[:, None] * rng.dirichlet(np.full(size, prior.emission), prior.n_states)[states]
    return starts
