"""Forward algorithm of the hidden Markov model of events, with explicit transitions, for many parameters at once."""

from __future__ import annotations

import numpy as np

from privpost.samplers.compiled import outer


def log_likelihoods(emissions, transitions, first, observed) -> np.ndarray:
    """Log-likelihood of the observed cells, the states summed over; regions start uniformly.

    Args:
        emissions: log-probability of each cell's events in each state, (parameters, cells, K).
        transitions: probabilities of moves from row to column, (parameters, K, K).
        first: which cells start a region, (cells,) bool.
        observed: cells whose events count, (sets, cells) bool; the others' states are summed over freely.

    Returns:
        (parameters, sets).
    """
    return _forward(
        np.ascontiguousarray(emissions, float),
        np.ascontiguousarray(transitions, float),
        np.ascontiguousarray(first, bool),
        np.ascontiguousarray(observed, bool),
    )


@outer()
def _forward(emissions, transitions, first, observed):
    parameters, cells, states = emissions.shape
    found = np.zeros((parameters, len(observed)))
    alpha, moved, weights = np.empty(states), np.empty(states), np.empty((cells, states))
    top = np.empty(cells)
    for j in range(parameters):
        for cell in range(cells):
            top[cell] = emissions[j, cell].max()
            for k in range(states):
                weights[cell, k] = np.exp(emissions[j, cell, k] - top[cell])
        for which in range(len(observed)):
            total = 0.0
            for cell in range(cells):
                if first[cell]:
                    moved[:] = 1.0 / states
                else:
                    moved[:] = 0.0
                    for k in range(states):
                        for l in range(states):
                            moved[l] += alpha[k] * transitions[j, k, l]
                if observed[which, cell]:
                    for k in range(states):
                        moved[k] *= weights[cell, k]
                    total += top[cell]
                scale = moved.sum()
                if scale <= 0.0:
                    # All states that the past allows have underflown: impossible but for rounding.
                    total = -np.inf
                    break
                total += np.log(scale)
                for k in range(states):
                    alpha[k] = moved[k] / scale
            found[j, which] = total
    return found
