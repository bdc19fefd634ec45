"""Compiled sweep of the Gibbs sampler of a hidden Markov model."""

from __future__ import annotations

import numpy as np
from numba import float64, int64, types

from privpost.samplers.compiled import bare, outer


@bare
def site_weights(t, states, first, last, moves, leaving, a, weights):
    """Write to `weights` (K,), up to a factor, the law p(z_t | all other states) of cell t's hidden state z_t.

        p(z_t = k) ∝ (n_{z_{t−1},k} + a) (n_{k,z_{t+1}} + 1[z_{t−1} = k = z_{t+1}] + a)
                     / (n_{k,·} + 1[z_{t−1} = k] + K a)

    `moves` (K, K) holds the numbers n of moves, without the moves into and out of cell t, and `leaving` holds the row
    sums of n. The last cell of a region has no second factor and no denominator. The first cell of a region has no
    first factor and no indicators.
    """
    for k in range(len(weights)):
        weight = 1.0
        if not first[t]:
            weight = moves[states[t - 1], k] + a
        if not last[t]:
            both = 0.0 if first[t] or states[t - 1] != k else 1.0
            after = states[t + 1]
            out = moves[k, after] + a + (both if after == k else 0.0)
            weight *= out / (leaving[k] + both + len(weights) * a)
        weights[k] = weight


@bare
def move_site(t, state, states, first, last, moves, leaving, change):
    """Add `change` to the numbers of moves into and out of cell t in the given state."""
    if not first[t]:
        moves[states[t - 1], state] += change
        leaving[states[t - 1]] += change
    if not last[t]:
        moves[state, states[t + 1]] += change
        leaving[state] += change


@outer()
def site_probabilities(states, transitions, sites, layout, a):
    """Compute the result of `gibbs.site_prior`."""
    found = np.empty((len(sites), len(transitions), states.shape[1]))
    for place, c in np.ndindex(sites.shape):
        t, path, moves, weights = sites[place, c], states[:, c], transitions[:, :, c].copy(), np.empty(len(transitions))
        leaving = moves.sum(axis=1)
        move_site(t, path[t], path, *layout, moves, leaving, -1)
        site_weights(t, path, *layout, moves, leaving, a, weights)
        found[place, :, c] = weights / weights.sum()
    return found


# One signature serves slices of chains and whole arrays, so the loop is compiled once.
@outer(
    types.void(
        int64[:, :], float64[:, :, :], float64[:, :], types.UniTuple(types.boolean[::1], 2), float64, float64,
        int64[:, :, :],
    ),
    seconds=5,
)  # fmt: skip
def explicit_sweep(states, likelihoods, uniforms, layout, prior_power, a, moves):
    """Draw the hidden state of every cell once in each chain, given the emissions.

    `states` (cells, chains) and the numbers of moves `moves` (K, K, chains) are updated in place. `likelihoods`
    (chains, K, cells) are tempered, up to any factor for each cell. Each draw uses one of `uniforms` (cells,
    chains). `prior_power` is the power 1/T of the prior of the states.
    """
    n_states = likelihoods.shape[1]
    weights, sums = np.empty(n_states), np.empty(n_states)
    for c in range(states.shape[1]):
        path, counts = states[:, c], moves[:, :, c]
        leaving = counts.sum(axis=1)
        for t in range(len(path)):
            move_site(t, path[t], path, *layout, counts, leaving, -1)
            site_weights(t, path, *layout, counts, leaving, a, weights)
            total = 0.0
            for k in range(n_states):
                weight = weights[k] if prior_power == 1.0 else weights[k] ** prior_power
                total += weight * likelihoods[c, k, t]
                sums[k] = total
            new = 0
            while new < n_states - 1 and sums[new] < uniforms[t, c] * total:
                new += 1
            path[t] = new
            move_site(t, path[t], path, *layout, counts, leaving, 1)
