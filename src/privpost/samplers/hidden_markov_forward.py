"""Forward algorithm of the hidden Markov model of events, with explicit transitions, for many parameters at once."""

from __future__ import annotations

import numpy as np

from privpost.samplers.compiled import outer

# How far below a cell's best state the log-probability of another may be [nats]: e^−700 is still a float.
FLOOR = 700.0


def log_likelihoods(emissions, transitions, first, observed) -> np.ndarray:
    """Log-likelihood of the observed cells, the states summed over; regions start uniformly.

    Args:
        emissions: log-probability of each cell's events in each state, (cells, K, parameters).
        transitions: probabilities of moves from row to column, (parameters, K, K).
        first: which cells start a region, (cells,) bool.
        observed: cells whose events count, (sets, cells) bool; other cells contribute no likelihood.

    Returns:
        (parameters, sets).
    """
    top = emissions.max(axis=1)
    moves = np.ascontiguousarray(np.transpose(transitions, (1, 2, 0)), float)
    masks = np.ascontiguousarray(first, bool), np.ascontiguousarray(observed, bool)
    # Never 0, or a path forced by the transitions would be impossible. The floor is a constant times the best state's
    # probability, so one event can change the result no more than without the floor.
    weights = np.exp(np.maximum(emissions - top[:, None], -FLOOR))
    return _forward(weights, top, moves, *masks).T


@outer()
def _forward(weights, top, transitions, first, observed):
    """The innermost loops run over parameters, so that the compiler can vectorise them."""
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
                    # All possible states may have underflown, which exact arithmetic excludes.
                    alpha[k, j] = moved[k, j] / scale[j] if scale[j] > 0.0 else 1.0 / states
    return totals
