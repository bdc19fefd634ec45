"""Compiled rounds of the collapsed sampler; imported only where chains are run."""

from __future__ import annotations

import math

import numpy as np

from privpost.samplers.compiled import inner, outer
from privpost.samplers.hidden_markov_kernels import (
    _log,
    choose,
    count_moves,
    log_gamma,
    log_prior,
    move_site,
    site_weights,
)
from privpost.samplers.hidden_markov_lanes import LANES
from privpost.samplers.hidden_markov_passes import add_cell, collapsed_sweep, fill_gammas, shift, weigh
from privpost.samplers.truncated_masses import log_masses


@inner
def partner(free, entries, power, uniform, sums):
    """Draw a state to take over the cells of `free`, by the collapsed likelihood of their union to the power 1/τ."""
    offset, sign, table, gains = entries.offset, entries.sign, entries.table, np.zeros(len(sums))
    for k in range(len(sums)):
        for i in range(len(offset)):
            x = sums[free, i, 0] + sums[k, i, 0] - offset[i]
            gains[k] += power * sign[i] * (log_gamma(x, table) - sums[k, i, 1])
    gains[free] = -math.inf
    return choose(gains, uniform)


@inner
def allot(members, pair, states, cells, entries, power, uniforms, sums):
    """Put cells one after another into two empty states, each by its likelihood given the cells before it."""
    gains = np.empty(LANES)
    for place, t in enumerate(members):
        span = cells.indptr[t], cells.indptr[t + 1]
        weigh(pair, 2, -1, span, cells, entries, sums, gains)
        m = int(uniforms[place] * (1 + math.exp(min(700.0, power * (gains[0] - gains[1])))) < 1)
        states[t] = pair[m]
        add_cell(span, cells, entries, 1.0, sums[pair[m]])


@inner
def scan(members, pair, states, cells, entries, layout, settings, uniforms, moves, sums, weights):
    """A pass over the cells of two states, in which each cell chooses between the two; else as `collapsed_sweep`."""
    (prior_power, a, power), (first, last), (counts, leaving), gains = settings, layout, moves, np.empty(LANES)
    for place, t in enumerate(members):
        span, old = (cells.indptr[t], cells.indptr[t + 1]), states[t]
        move_site(t, old, states, first, last, counts, leaving, -1.0)
        site_weights(t, states, first, last, counts, leaving, a, weights)
        weigh(pair, 2, old, span, cells, entries, sums, gains)
        gain = gains[0] - gains[1] + prior_power * (_log(weights[pair[0]]) - _log(weights[pair[1]]))
        m = int(uniforms[place] * (1 + math.exp(min(700.0, power * gain))) < 1)
        if pair[m] != old:
            shift((old, pair[m]), span, cells, entries, sums)
            states[t] = pair[m]
        move_site(t, states[t], states, first, last, counts, leaving, 1.0)


@inner
def resplit(rows, states, cells, entries, layout, settings, uniforms, sums, memory):
    """Merge two states, and split one in two: a chain can so leave modes that moves of single cells cannot leave.

    The cells of the split state are allotted in random order and scanned twice. Acceptance depends only on the change
    of the collapsed joint to the power 1/τ. It ignores the probability of the reverse move, so this is a search for the
    mode, for the burn-in.

    Args:
        rows: three states. The first takes over the cells of the second; the third, which may be the first, is then
            split between itself and the second.
        settings: prior_power, a, power of `collapsed_sweep`.
        uniforms: (4 cells + 1,).
        sums: as in `collapsed_sweep`; updated with the states.
        memory: as in `collapsed_sweep`; its masses and points are updated with the states.
    """
    (into, free, split), n_cells, (prior_power, a, power) = rows, len(states), settings
    offset, sign = entries.offset, entries.sign
    n_states, n_entries, _ = sums.shape
    new, proposed, members, number = states.copy(), sums.copy(), np.empty(n_cells, np.intp), 0
    for t in range(n_cells):
        if new[t] == free:
            new[t] = into
        if new[t] == split:
            other = int(uniforms[t] * (number + 1))
            members[number] = members[other]
            members[other] = t
            number += 1
    if number < 2:
        return
    proposed[into, :, 0] += proposed[free, :, 0] - offset
    proposed[free, :, 0], proposed[split, :, 0] = offset, offset
    for k in rows:
        fill_gammas(proposed[k], entries)
    pair, weights = np.array([split, free, free, free]), np.empty(n_states)
    moves, leaving = np.empty((n_states, n_states)), np.empty(n_states)
    count_moves(states, layout.last, moves)
    gain = -prior_power * log_prior(moves, layout.first.sum(), a)
    allot(members[:number], pair, new, cells, entries, power, uniforms[n_cells:], proposed)
    count_moves(new, layout.last, moves)
    for k in range(n_states):
        leaving[k] = moves[k].sum()
    for turn in (2, 3):
        part = uniforms[turn * n_cells :]
        scan(members[:number], pair, new, cells, entries, layout, settings, part, (moves, leaving), proposed, weights)
    gain += prior_power * log_prior(moves, layout.first.sum(), a)
    for k in range(n_states):
        for i in range(n_entries):
            gain += sign[i] * (proposed[k, i, 1] - sums[k, i, 1])
    masses, points = memory.masses.copy(), memory.points.copy()
    if entries.lows.max() > 0:
        for k in rows:
            points[k] = 0.0
            log_masses(proposed[k], entries, masses[k], points[k])
        gain += masses.sum() - memory.masses.sum()
    if gain >= 0 or uniforms[4 * n_cells] < math.exp(power * gain):
        states[:], sums[:] = new, proposed
        memory.masses[:], memory.points[:] = masses, points


@outer()
def collapsed_round(states, n_states, cells, entries, layout, settings, uniforms, resplits, memory):
    """A pass over all cells, then `resplit` of states chosen at random; `states` (cells,) in place.

    Args:
        cells, entries, layout, memory: as in `collapsed_sweep`.
        settings: prior_power, a, power of it.
        uniforms: (cells,), or twice as many where emissions are truncated.
        resplits: uniforms of each, (resplits, 4 + 4 cells).

    Returns:
        The collapsed log-likelihood of the states after the pass, and prior_power ln p(z).
    """
    sums, (prior_power, a, power) = np.empty((n_states, len(entries.offset), 2)), settings
    energies = collapsed_sweep(states, cells, entries, layout, prior_power, a, power, uniforms, memory, sums)
    for drawn in resplits:
        free, split = int(drawn[0] * n_states), int(drawn[2] * (n_states - 1))
        into = partner(free, entries, power, drawn[1], sums)
        rows = into, free, split + (split >= free)
        resplit(rows, states, cells, entries, layout, settings, drawn[3:], sums, memory)
    return energies
