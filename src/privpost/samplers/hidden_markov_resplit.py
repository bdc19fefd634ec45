"""Compiled rounds of the collapsed sampler; imported where chains are run and nowhere else."""

from __future__ import annotations

import math

import numpy as np

from privpost.samplers.compiled import inner, outer
from privpost.samplers.hidden_markov_kernels import (
    _log,
    choose,
    count_moves,
    log_gammas,
    log_prior,
    move_site,
    site_weights,
)
from privpost.samplers.hidden_markov_passes import collapsed_sweep, log_masses, shift, weigh


@inner
def partner(free, entries, power, uniform, tables, room):
    """A state to take over the cells of `free`, by the collapsed log-likelihood of their union to the power 1/τ."""
    (offset, sign), (totals, gammas), (x, g, _) = entries[:2], tables, room
    n_states, n_entries = totals.shape
    gains = np.empty(n_states)
    for k in range(n_states):
        x[:n_entries] = totals[free] + totals[k] + offset
        log_gammas(x[:n_entries], g[:n_entries])
        gains[k] = -math.inf if k == free else power * (sign * (g[:n_entries] - gammas[k])).sum()
    return choose(gains, uniform)


@inner
def allot(members, pair, states, cells, entries, power, uniforms, tables, room):
    """Put cells into one of two empty states, one after another, given those before them and by likelihood alone."""
    (totals, gammas), (x, g, found), index = tables, room, cells[1]
    for place, t in enumerate(members):
        own = cells[0][t], cells[0][t + 1]
        weigh(pair, 2, -1, own, cells, entries, totals, gammas, (x, g), found)
        m = int(uniforms[place] * (1 + math.exp(min(700.0, power * (found[0] - found[1])))) < 1)
        states[t] = pair[m]
        for j in range(own[1] - own[0]):
            totals[pair[m], index[own[0] + j]] += cells[2][own[0] + j]
            gammas[pair[m], index[own[0] + j]] = g[m * (own[1] - own[0]) + j]


@inner
def scan(members, pair, states, cells, entries, layout, settings, uniforms, moves, tables, room, weights):
    """A pass over cells in two states, in which each chooses between the two; all else as in `collapsed_sweep`."""
    (totals, gammas), (x, g, found), (prior_power, a, power) = tables, room, settings
    (first, last), (counts, leaving) = layout, moves
    for place, t in enumerate(members):
        own, old = (cells[0][t], cells[0][t + 1]), states[t]
        move_site(t, old, states, first, last, counts, leaving, -1.0)
        site_weights(t, states, first, last, counts, leaving, a, weights)
        weigh(pair, 2, old, own, cells, entries, totals, gammas, (x, g), found)
        gain = found[0] - found[1] + prior_power * (_log(weights[pair[0]]) - _log(weights[pair[1]]))
        m = int(uniforms[place] * (1 + math.exp(min(700.0, power * gain))) < 1)
        if pair[m] != old:
            size = own[1] - own[0]
            shift((old, pair[m]), own, cells, totals, gammas, g, (size * (1 - m), size * m))
            states[t] = pair[m]
        move_site(t, states[t], states, first, last, counts, leaving, 1.0)


@inner
def resplit(rows, states, cells, entries, layout, settings, uniforms, tables, room, masses, points):
    """Merge a state with another, and split one in two: so a chain leaves modes that no cell by itself would leave.

    The cells of the split state are allotted in random order and scanned twice. It is accepted by the change of the
    collapsed joint to the power 1/τ alone: the probability of the way back is not counted, so that this is a search for
    the mode, for the burn-in.

    Args:
        rows: the state that takes over the cells of the second, and the state that shares its own with the second,
            which may be the first one.
        settings: prior_power, a, power of `collapsed_sweep`.
        uniforms: (4 cells + 1,).
        tables: totals and ln Γ(totals + offset) of the states, (K, entries); updated with the states.
        room: x, g and found of `weigh`.
        masses, points: `log_mass` of the states' fields and its saddlepoints, (K, fields); updated with the states.
    """
    (into, free, split), n_cells, (offset, sign) = rows, len(states), entries[:2]
    (totals, gammas), x, (prior_power, a, power) = tables, room[0], settings
    n_states, n_entries = totals.shape
    new, proposed, proposed_gammas = states.copy(), totals.copy(), gammas.copy()
    members, number = np.empty(n_cells, np.intp), 0
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
    proposed[into] += proposed[free]
    proposed[free], proposed[split] = 0.0, 0.0
    for k in rows:
        x[:n_entries] = proposed[k] + offset
        log_gammas(x[:n_entries], proposed_gammas[k])
    pair, own, weights = np.array([split, free]), (proposed, proposed_gammas), np.empty(n_states)
    moves = np.empty((n_states, n_states)), np.empty(n_states)
    count_moves(states, layout[1], moves[0])
    gain = -prior_power * log_prior(moves[0], layout[0].sum(), a)
    allot(members[:number], pair, new, cells, entries, power, uniforms[n_cells:], own, room)
    count_moves(new, layout[1], moves[0])
    for k in range(n_states):
        moves[1][k] = moves[0][k].sum()
    for turn in (2, 3):
        part = uniforms[turn * n_cells :]
        scan(members[:number], pair, new, cells, entries, layout, settings, part, moves, own, room, weights)
    gain += prior_power * log_prior(moves[0], layout[0].sum(), a)
    for k in range(n_states):
        for i in range(n_entries):
            gain += sign[i] * (proposed_gammas[k, i] - gammas[k, i])
    proposed_masses, proposed_points = masses.copy(), points.copy()
    if entries[3].max() > 0:
        for k in rows:
            proposed_points[k] = 0.0
            own_masses = proposed_masses[k], proposed_points[k]
            log_masses(proposed[k], proposed_gammas[k], entries[2], entries[3], own_masses[0], own_masses[1])
        gain += proposed_masses.sum() - masses.sum()
    if gain >= 0 or uniforms[4 * n_cells] < math.exp(power * gain):
        states[:], totals[:], gammas[:] = new, proposed, proposed_gammas
        masses[:], points[:] = proposed_masses, proposed_points


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
    size = n_states, len(entries[0])
    length = max(2, n_states) * size[1]
    totals, gammas, x, g = np.empty(size), np.empty(size), np.empty(length), np.empty(length)
    prior_power, a, power = settings
    work = totals, gammas, x, g
    energies = collapsed_sweep(states, cells, entries, layout, prior_power, a, power, uniforms, memory, work)
    found = np.empty(2)
    for drawn in resplits:
        free, split = int(drawn[0] * n_states), int(drawn[2] * (n_states - 1))
        into = partner(free, entries, power, drawn[1], (totals, gammas), (x, g, found))
        rows = into, free, split + (split >= free)
        own = (totals, gammas), (x, g, found), memory[4], memory[5]
        resplit(rows, states, cells, entries, layout, settings, drawn[3:], *own)
    return energies
