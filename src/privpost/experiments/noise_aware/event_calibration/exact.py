"""Exact noise-aware posteriors, in two small cases, for the first level's probability in the first cell."""

import numpy as np
from scipy.special import betainc, betaln, gammaln

from privpost.samplers.noise_aware.exact_counts import count_probabilities


def first_level(config, noisy, scale: float, truth) -> np.ndarray | None:
    """Return three values (3, trials) of a posterior, if known: mass below the true value, mean, and mean square.

    Known posteriors have uniform priors and the multinomial law. They have either one state, cell and field, or two
    states, two months of one region, and fields of two levels. For others the result is None. `noisy` are releases
    (trials, cells, levels).
    """
    flat = config.emission_concentration == config.transition_concentration == 1 and config.law == "multinomial"
    shape = config.n_states, config.regions, config.months
    if flat and shape == (1, 1, 1) and len(config.sizes) == 1:
        law = count_probabilities(noisy[:, 0], config.n, scale)
        return (law * statistics(np.arange(config.n + 1), config.n, truth, config.sizes[0])).sum(axis=-1)
    if flat and shape == (2, 1, 2) and set(config.sizes) == {2}:
        return two_months(noisy.reshape(len(noisy), 2, -1, 2), scale, config.n, truth)
    return None


def statistics(counts, n, truth, levels=2) -> np.ndarray:
    """Return an array (3, trials, counts): each conjugate posterior's mass below `truth`, mean, and mean square."""
    alpha, size = 1.0 + counts, n + float(levels)
    below = betainc(alpha, size - alpha, truth[:, None])
    mean = np.broadcast_to(alpha / size, below.shape)
    return np.stack([below, mean, mean * (alpha + 1) / (size + 1)])


def two_months(noisy, scale: float, n: int, truth) -> np.ndarray:
    """Return the posterior's mass below `truth`, its mean and its mean square. Releases are (trials, 2, fields, 2)."""
    result, total = np.zeros((3, len(noisy))), np.zeros(len(noisy))
    of_all = statistics(np.arange(n + 1), n, truth)
    # All divisions of n events between the two cells are equally likely, and so are equal and different states.
    for events in range(n + 1):
        counts = np.arange(events + 1), np.arange(n - events + 1)
        fits = [
            np.exp(-(np.abs(noisy[:, cell, :, :1] - own) + np.abs(noisy[:, cell, :, 1:] - own[::-1])) / scale)
            for cell, own in enumerate(counts)
        ]
        both = counts[0][:, None] + counts[1]
        ways = [gammaln(own[-1] + 1) - gammaln(own + 1) - gammaln(own[::-1] + 1) for own in counts]
        shared = np.exp(ways[0][:, None] + ways[1] + betaln(1 + both, 1 + n - both))
        first = [own[:, 0] for own in fits]
        different = fits[0].mean(axis=2) * fits[1].mean(axis=2)
        of_first = (first[0] * statistics(counts[0], events, truth)).mean(axis=2) * first[1].mean(axis=1)
        equal = np.einsum("tdi,tdj,ij->td", *fits, shared)
        of_shared = np.einsum("ti,tj,ij,stij->st", *first, shared, of_all[..., both])
        for fields, values in ((different, of_first), (equal, of_shared)):
            rest = fields[:, 1:].prod(axis=1)
            total += rest * fields[:, 0]
            result += rest * values
    return result / total
