"""Forward algorithm of the hidden Markov model of events, with explicit transitions, for many parameters at once."""

from __future__ import annotations

import numpy as np

from privpost.samplers.compiled import outer

# How far below a cell's best state another's log-probability may be [nats]: e^−700 is a float still.
FLOOR = 700.0


def log_likelihoods(emissions, transitions, first, observed) -> np.ndarray:
    """Log-likelihood of the observed cells, the states summed over; regions start uniformly.

    Args:
        emissions: log-probability of each cell's events in each state, (cells, K, parameters).
        transitions: probabilities of moves from row to column, (parameters, K, K).
        first: which cells start a region, (cells,) bool.
        observed: cells whose events count, (sets, cells) bool; the others' states are summed over freely.

    Returns:
        (parameters, sets).
    """
    top = emissions.max(axis=1)
    moves = np.ascontiguousarray(np.transpose(transitions, (1, 2, 0)), float)
    masks = np.ascontiguousarray(first, bool), np.ascontiguousarray(observed, bool)
    # Never 0: a path that transitions force would be impossible. What one event can change stays what it is under the
    # maximum with the best state's probability times a constant.
    weights = np.exp(np.maximum(emissions - top[:, None], -FLOOR))
    return _forward(weights, top, moves, *masks).T


@outer()
def _forward(weights, top, transitions, first, observed):
    """Loops over parameters innermost: that is what the compiler makes vectors of."""
    cells, states, parameters = weights.shape
    totals = np.zeros((len(observed), parameters))
    alpha, moved, scale = np.empty((states, parameters)), np.empty((states, parameters)), np.empty(parameters)
    for which in range(len(observed)):
        total = totals[which]
        for cell in range(cells):
            moved[:] = 1.0 / states if first[cell] else 0.0
            if not first[cell]:
                for l in range(states):
                    for k in range(states):
                        for j in range(parameters):
                            moved[l, j] += alpha[k, j] * transitions[k, l, j]
            if observed[which, cell]:
                moved *= weights[cell]
                total += top[cell]
            scale[:] = 0.0
            for k in range(states):
                scale += moved[k]
            total += np.log(scale)
            for k in range(states):
                for j in range(parameters):
                    # All states that the past allows may have underflown: impossible but for rounding.
                    alpha[k, j] = moved[k, j] / scale[j] if scale[j] > 0.0 else 1.0 / states
    return totals
