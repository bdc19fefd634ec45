"""The collapsed update of a hidden Markov model's states in one chain, as a plain numpy loop over sites."""

from __future__ import annotations

import numpy as np


def sweep(states, weights, uniforms, layout, a: float) -> None:
    """Update the states (cells,) in place, given likelihoods (cells, K) of the emissions up to a factor."""
    n_states = weights.shape[1]
    counts = np.zeros((n_states, n_states))
    for t in range(len(states) - 1):
        if not layout.last[t]:
            counts[states[t], states[t + 1]] += 1
    left = counts.sum(axis=1)
    for t in range(len(states)):
        old = states[t]
        weight = weights[t].copy()
        if not layout.first[t]:
            before = states[t - 1]
            counts[before, old] -= 1
            left[before] -= 1
        if not layout.last[t]:
            after = states[t + 1]
            counts[old, after] -= 1
            left[old] -= 1
        if not layout.first[t]:
            weight *= counts[before] + a
        if not layout.last[t]:
            out, leaving = counts[:, after] + a, left + n_states * a
            if not layout.first[t]:
                leaving[before] += 1
                if before == after:
                    out[before] += 1
            weight *= out / leaving
        cumulative = np.cumsum(weight)
        new = int(np.searchsorted(cumulative, uniforms[t] * cumulative[-1]))
        states[t] = new
        if not layout.first[t]:
            counts[before, new] += 1
            left[before] += 1
        if not layout.last[t]:
            counts[new, after] += 1
            left[new] += 1
