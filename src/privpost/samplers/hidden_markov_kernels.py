"""Compiled loops of the hidden Markov model's samplers; imported only where chains are run.

All arithmetic is written out, without reordering, so that a chain is the same to the last bit on any processor.
"""

from __future__ import annotations

import math

import numpy as np
from numba import float64, int64, types

from privpost.samplers.compiled import bare, outer

_HALF_LOG_2PI = 0.5 * math.log(2 * math.pi)


@bare
def _log(x):
    """ln x of a normal number x > 0, by 2 artanh((m − 1)/(m + 1)) of its mantissa m; a compiler can vectorise it."""
    bits = np.float64(x).view(np.int64)
    # The mantissa lies between √½ and √2.
    exponent = (bits - 0x3FE6A09E667F3BCD) >> 52
    mantissa = np.int64(bits - (exponent << 52)).view(np.float64)
    s = (mantissa - 1.0) / (mantissa + 1.0)
    q = s * s
    series = 1 / 21 + q / 23
    series = 1 / 15 + q * (1 / 17 + q * (1 / 19 + q * series))
    series = 1 / 9 + q * (1 / 11 + q * (1 / 13 + q * series))
    series = 1 + q * (1 / 3 + q * (1 / 5 + q * (1 / 7 + q * series)))
    return exponent * 0.6931471805599453 + 2 * s * series


@bare
def log_gamma(x, table):
    """ln Γ of x > 0, to 1e-13 of max(1, |ln Γ(x)|), by the rows of `log_gamma_table.gamma_table`."""
    # Exponent and first ten bits of the mantissa, minus those of the table's beginning.
    place = np.float64(x).view(np.int64) >> 42
    row = place - 0xFEC00
    if row < 0 or row >= len(table):
        return math.lgamma(x)
    # Setting the next bit gives the middle of the interval.
    d = x - np.int64(2 * place + 1 << 41).view(np.float64)
    return table[row, 0] + d * (table[row, 1] + d * (table[row, 2] + d * table[row, 3]))


@bare
def count_moves(states, last, moves):
    """Moves from state to state within regions, written to `moves` (K, K)."""
    moves[:] = 0.0
    for t in range(len(states) - 1):
        if not last[t]:
            moves[states[t], states[t + 1]] += 1.0


@bare
def add_up(states, indptr, index, value, offset, sums):
    """Write `offset` (entries,) plus the cells' entries, summed by state, to `sums` (K, entries, 2) at 0."""
    for k in range(len(sums)):
        for i in range(len(offset)):
            sums[k, i, 0] = offset[i]
    for t in range(len(states)):
        for j in range(indptr[t], indptr[t + 1]):
            sums[states[t], index[j], 0] += value[j]


@bare
def log_prior(moves, n_regions, a):
    """ln p(z) for moves (K, K) within `n_regions` regions, transitions integrated out."""
    n_states = len(moves)
    total = -n_regions * math.log(n_states)
    constant = math.lgamma(n_states * a) - n_states * math.lgamma(a)
    for k in range(n_states):
        left = 0.0
        for other in range(n_states):
            total += math.lgamma(moves[k, other] + a)
            left += moves[k, other]
        total += constant - math.lgamma(left + n_states * a)
    return total


@bare
def site_weights(t, states, first, last, moves, leaving, a, weights):
    """p(z_t = k | all other states) up to a factor, written to `weights` (K,); see `hidden_markov_gibbs.site_prior`.

    `moves` (K, K) and their row sums `leaving` are without the moves into and out of t.
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
def site_logs(t, states, first, last, moves, leaving, tables, logs):
    """Write to `logs` (K,) what `site_weights` gives, as logarithms: sums of the numbers in `tables`.

    `tables` are ln(n + a) and ln(n + K a) for n moves, (2, cells + 2).
    """
    for k in range(len(logs)):
        value = 0.0
        if not first[t]:
            value = tables[0, int(moves[states[t - 1], k])]
        if not last[t]:
            both = 0 if first[t] or states[t - 1] != k else 1
            after = states[t + 1]
            value += tables[0, int(moves[k, after]) + (both if after == k else 0)]
            value -= tables[1, int(leaving[k]) + both]
        logs[k] = value


@bare
def move_site(t, state, states, first, last, moves, leaving, change):
    """Add `change` to the counts of the moves into and out of cell t, as if it were in `state`."""
    if not first[t]:
        moves[states[t - 1], state] += change
        leaving[states[t - 1]] += change
    if not last[t]:
        moves[state, states[t + 1]] += change
        leaving[state] += change


@bare
def choose(log_weights, uniform):
    """Draw a state with probability ∝ exp(log_weights) by inversion; overwrites them by cumulative weights."""
    largest = log_weights[0]
    for k in range(1, len(log_weights)):
        largest = max(largest, log_weights[k])
    total = 0.0
    for k in range(len(log_weights)):
        # Below exp(−40) nothing is added to a total of at least 1.
        if log_weights[k] > largest - 40:
            total += math.exp(log_weights[k] - largest)
        log_weights[k] = total
    state = 0
    while state < len(log_weights) - 1 and log_weights[state] < uniform * total:
        state += 1
    return state


# One signature for slices of chains and whole arrays, so that it is compiled once.
@outer(
    types.void(
        int64[:, :], float64[:, :, :], float64[:, :], types.UniTuple(types.boolean[::1], 2), float64, float64,
        int64[:, :, :],
    ),
    seconds=5,
)  # fmt: skip
def explicit_sweep(states, likelihoods, uniforms, layout, prior_power, a, moves):
    """One pass over all cells of a number of chains given their emissions, transitions integrated out.

    Args:
        states: (cells, chains), updated in place.
        likelihoods: of each cell in each state, to the power 1/T, up to a factor for the cell, (chains, K, cells).
        uniforms: (cells, chains).
        layout: `first`, `last` (cells,).
        prior_power: 1/T of p(z).
        moves: overwritten by the counts of moves after the pass, (K, K, chains).
    """
    first, last = layout
    n_cells, n_chains = states.shape
    n_states = likelihoods.shape[1]
    path, leaving, counts = np.empty(n_cells, np.intp), np.empty(n_states), np.empty((n_states, n_states))
    weights, sums = np.empty(n_states), np.empty(n_states)
    for c in range(n_chains):
        path[:] = states[:, c]
        count_moves(path, last, counts)
        for k in range(n_states):
            leaving[k] = counts[k].sum()
        for t in range(n_cells):
            move_site(t, path[t], path, first, last, counts, leaving, -1.0)
            site_weights(t, path, first, last, counts, leaving, a, weights)
            total = 0.0
            for k in range(n_states):
                weight = weights[k] if prior_power == 1.0 else math.exp(prior_power * _log(weights[k]))
                total += weight * likelihoods[c, k, t]
                sums[k] = total
            new = 0
            while new < n_states - 1 and sums[new] < uniforms[t, c] * total:
                new += 1
            path[t] = new
            move_site(t, path[t], path, first, last, counts, leaving, 1.0)
        states[:, c] = path
        for k in range(n_states):
            for after in range(n_states):
                moves[k, after, c] = int(counts[k, after])
