"""Compiled passes of the collapsed sampler over all cells; imported only where chains are run."""

from __future__ import annotations

import math

import numpy as np

from privpost.samplers.compiled import bare, inlined, inner
from privpost.samplers.hidden_markov_kernels import (
    _log,
    add_up,
    choose,
    count_moves,
    log_gamma,
    log_prior,
    move_site,
    site_weights,
)
from privpost.samplers.hidden_markov_lanes import LANES, weigh_lanes
from privpost.samplers.truncated_masses import change_masses, log_masses


@inlined
def weigh(candidates, number, old, span, cells, entries, sums, gains):
    """Write to `gains` the collapsed log-likelihood of some states with a cell's entries, minus that without them.

    Args:
        candidates, number: the first `number` candidates are the states; the rest, to a multiple of `LANES`, is
        padding. old: the state that holds the cell.
        span: where the cell's entries begin and end.
        sums: the states' totals and ln Γ of them, (K, entries, 2).
        gains: as long as `candidates`.
    """
    (_, index, value), sign, table = cells, entries.sign, entries.table
    for first in range(0, number, LANES):
        for m in range(number, first + LANES):
            candidates[m] = candidates[0]
        weigh_lanes(span[0], span[1], index, value, sign, candidates, first, old, sums, table, gains)


@bare
def add_cell(span, cells, entries, change, sums):
    """Add a cell's entries, times `change` = ±1, to a state's totals and update ln Γ, both in `sums` (entries, 2)."""
    (_, index, value), offset, table = cells, entries.offset, entries.table
    for j in range(span[0], span[1]):
        i = index[j]
        # Never below the offset, whatever rounding does.
        sums[i, 0] = max(sums[i, 0] + change * value[j], offset[i])
        sums[i, 1] = log_gamma(sums[i, 0], table)


@bare
def fill_gammas(sums, entries):
    """Compute ln Γ of one state's totals; both are in `sums` (entries, 2)."""
    for i in range(len(sums)):
        sums[i, 1] = log_gamma(sums[i, 0], entries.table)


@inner
def mass_allows(pair, span, cells, entries, sums, power, uniform, memory):
    """Whether a cell's move is accepted by the change of ln P of `log_masses`; if so, `memory` is updated.

    `pair` has the state that the cell leaves and the state that it enters.
    """
    masses, points = memory.masses, memory.points
    new_masses, new_points = np.zeros((2, masses.shape[1])), np.empty((2, *points.shape[1:]))
    after, change = np.empty(sums.shape[1:]), 0.0
    for row, state in enumerate(pair):
        after[:], new_points[row] = sums[state], points[state]
        add_cell(span, cells, entries, 1.0 if row else -1.0, after)
        change_masses(span, cells.index, entries, sums[state], after, new_masses[row], new_points[row])
        change += new_masses[row].sum() - masses[state].sum()
    if change < 0 and uniform >= math.exp(power * change):
        return False
    for row, state in enumerate(pair):
        masses[state], points[state] = new_masses[row], new_points[row]
    return True


@inner
def note_changes(states, known, versions):
    """Raise the version of each state whose cells differ from those in `known`, and update `known`."""
    changed = np.zeros(len(versions), np.bool_)
    for t in range(len(states)):
        if states[t] != known[t]:
            changed[states[t]] = True
            if known[t] >= 0:
                changed[known[t]] = True
            known[t] = states[t]
    for k in range(len(versions)):
        # A state that never had a cell counts as changed.
        changed[k] |= versions[k] == 0
        versions[k] += changed[k]
    return changed


@bare
def shift(pair, span, cells, entries, sums):
    """Move a cell's entries from one state to another."""
    add_cell(span, cells, entries, -1.0, sums[pair[0]])
    add_cell(span, cells, entries, 1.0, sums[pair[1]])


@bare
def enter(t, pair, span, cells, entries, sums, memory):
    """`shift` a cell, and update the memory."""
    versions, stamps = memory.versions, memory.stamps
    memory.known[t] = pair[1]
    for k in pair:
        # This cell's weight depends on the state's other cells only, so it stays valid.
        versions[k] += 1
        stamps[t, k] = versions[k]
    shift(pair, span, cells, entries, sums)


@inlined
def weigh_anew(t, old, span, cells, entries, sums, memory, stale, gains):
    """`weigh` a cell in the states whose other cells have changed since the cell was last weighed there."""
    versions, stamps, number = memory.versions, memory.stamps, 0
    for k in range(len(versions)):
        if stamps[t, k] != versions[k]:
            stale[number] = k
            number += 1
    weigh(stale, number, old, span, cells, entries, sums, gains)
    for m in range(number):
        memory.weights[t, stale[m]], stamps[t, stale[m]] = gains[m], versions[stale[m]]


@bare
def log_likelihood(masses, sums, entries):
    """Collapsed log-likelihood from totals and ln Γ of them (K, entries, 2), and ln P of the fields (K, fields)."""
    total = masses.sum()
    for i in range(sums.shape[1]):
        empty = log_gamma(entries.offset[i], entries.table)
        for k in range(len(sums)):
            total += entries.sign[i] * (sums[k, i, 1] - empty)
    return total


@inner
def collapsed_sweep(states, cells, entries, layout, prior_power, a, power, uniforms, memory, sums):
    """One pass over all cells of one chain, emissions and transitions integrated out; states (cells,) in place.

    With truncated emissions a state is proposed without truncation and accepted by the change of `log_masses`, which
    gives the truncated law. A cell's weight in a state is remembered as long as the state's other cells are the same.

    Args:
        cells: `indptr` (cells + 1,), `index`, `value`: the non-zero entries of each cell, its levels' counts over T
            and then each field's count over T.
        entries: `offset`, `sign` (entries,): b and 1 of a level, b times the number of levels and −1 of a field;
            `bounds` (fields + 1,), where each field's levels begin; `lows` (fields,), their smallest probability; the
            table of `log_gamma`; what `row_of` looks up.
        layout: `first`, `last` (cells,).
        power: 1/τ of the pass; `prior_power`: an additional power of p(z).
        uniforms: (cells,), or twice as many where emissions are truncated.
        memory: `hidden_markov_collapsed.Memory`.
        sums: space for the totals, offsets and entries summed by state, and for ln Γ of them, (K, entries, 2).

    Returns:
        The collapsed log-likelihood of the states, and prior_power ln p(z).
    """
    (indptr, index, value), lows, (first, last), n_states = cells, entries.lows, layout, len(sums)
    moves, leaving, weights = np.empty((n_states, n_states)), np.empty(n_states), np.empty(n_states)
    stale, truncated = np.empty(-(-n_states // LANES) * LANES, np.int64), lows.max() > 0
    logs, gains = np.empty(n_states), np.empty(len(stale))
    count_moves(states, last, moves)
    add_up(states, indptr, index, value, entries.offset, sums)
    changed = note_changes(states, memory.known, memory.versions)
    for k in range(n_states):
        leaving[k] = moves[k].sum()
        fill_gammas(sums[k], entries)
        if truncated and changed[k]:
            log_masses(sums[k], entries, memory.masses[k], memory.points[k])
    for t in range(len(states)):
        old, span = states[t], (indptr[t], indptr[t + 1])
        move_site(t, old, states, first, last, moves, leaving, -1.0)
        site_weights(t, states, first, last, moves, leaving, a, weights)
        weigh_anew(t, old, span, cells, entries, sums, memory, stale, gains)
        for k in range(n_states):
            logs[k] = power * (memory.weights[t, k] + prior_power * _log(weights[k]))
        new = choose(logs, uniforms[t])
        if new != old:
            cell = span, cells, entries, sums
            uniform = uniforms[len(states) + t] if truncated else 0.0
            if truncated and not mass_allows((old, new), *cell, power, uniform, memory):
                new = old
        states[t] = new
        move_site(t, new, states, first, last, moves, leaving, 1.0)
        if new != old:
            enter(t, (old, new), span, cells, entries, sums, memory)
    return log_likelihood(memory.masses, sums, entries), prior_power * log_prior(moves, first.sum(), a)
