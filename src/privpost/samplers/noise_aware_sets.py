"""Compiled moves of several cells' states at once: runs of cells, and re-splits of two states' cells.

Only code that runs chains imports this module. The cells' counts move with their states: each cell's are drawn given
those of the cells before it, and saddlepoint estimates give the density of a state's cells together.
"""

import math

import numpy as np

from privpost.samplers.compiled import bare, inner
from privpost.samplers.hidden_markov_kernels import log_prior, move_site, site_weights
from privpost.samplers.noise_aware_kernels import _add, _copy, _tilts
from privpost.samplers.noise_aware_proposals import _draw, _weigh

# How often a run is proposed a state without other cells, relative to a state with some.
EMPTY = 0.1
# Passes that refine a re-split.
PASSES = 2


@bare
def _place(cells, state, tables, totals, sums, sign):
    """Add cells' counts to a state's, or subtract them (`sign`); `tables` has one row per cell."""
    for place in range(len(cells)):
        _add(sums.counts[state], tables[place], sign)
        sums.events[state] += sign * totals[cells[place]]


@bare
def _relabel(t, end, state, states, layout, sums):
    """Put all cells from t to before `end` into a state."""
    for j in range(t, end):
        move_site(j, states[j], states, layout.first, layout.last, sums.moves, sums.leaving, -1.0)
        states[j] = state
        move_site(j, state, states, layout.first, layout.last, sums.moves, sums.leaving, 1.0)


@inner
def move_run(t, end, data, observed, latent, sums, layout, prior, tables, work, rng):
    """Propose one new state, and counts, for all cells from t to before `end`, if they are consecutive in one state.

    Cells that hold each other in a state hardly ever leave it one by one. States without other cells are alike, and are
    proposed less often. Each cell's counts are proposed given those of the cells before it, in the reverse move too.
    Returns whether the move was accepted.
    """
    states, counts, totals = latent
    old = states[t]
    for j in range(t + 1, end):
        if states[j] != old or layout.first[j]:
            return False
    weights = np.full(len(sums.counts), EMPTY)
    for j in range(len(states)):
        if j < t or j >= end:
            weights[states[j]] = 1.0
    total, of_old = weights.sum(), weights[old]
    weights[old] = 0.0
    new, left = np.int64(0), rng.random() * (total - of_old)
    while new < len(weights) - 1 and (left >= weights[new] or new == old):
        left -= weights[new]
        new += 1
    if new == old:
        return False
    cells = t + np.flatnonzero(observed[t:end])
    before, drawn = counts[cells], np.zeros((len(cells), counts.shape[1]), np.int64)
    _place(cells, old, before, totals, sums, -1)
    gain = math.log(of_old / (total - weights[new])) - math.log(weights[new] / (total - of_old))
    gain -= log_prior(sums.moves, 0, prior)
    for fresh in (False, True):
        state, sign, proposals = (new, 1, drawn) if fresh else (old, -1, before)
        for place in range(len(cells)):
            j = cells[place]
            gain += sign * _weigh(j, totals[j], state, data, sums, tables, work, proposals[place], fresh, rng)[0]
            _place(cells[place : place + 1], state, proposals[place : place + 1], totals, sums, 1)
        if not fresh:
            _place(cells, old, before, totals, sums, -1)
    _relabel(t, end, new, states, layout, sums)
    gain += log_prior(sums.moves, 0, prior)
    accepted = -rng.standard_exponential() < gain
    if accepted:
        for place in range(len(cells)):
            _copy(drawn[place], counts[cells[place]])
    else:
        _relabel(t, end, old, states, layout, sums)
        _place(cells, new, drawn, totals, sums, -1)
        _place(cells, old, before, totals, sums, 1)
    return accepted


@inner
def _worth(cells, latent, data, sums, layout, prior, tables, work, rng):
    """Estimate ln p(states, release) of the cells of two states, one cell after the other, up to a constant."""
    states, counts, totals = latent
    for t in cells:
        _add(sums.counts[states[t]], counts[t], -1)
        sums.events[states[t]] -= totals[t]
    total = log_prior(sums.moves, 0, prior)
    for t in cells:
        k = states[t]
        total += _weigh(t, totals[t], k, data, sums, tables, work, counts[t], False, rng)[0]
        _add(sums.counts[k], counts[t], 1)
        sums.events[k] += totals[t]
    return total


@inner
def _allot(t, pair, data, latent, sums, layout, prior, tables, work, rng, first):
    """Draw one state of a pair for a cell, by saddlepoint estimates, and then the cell's counts."""
    states, counts, totals = latent
    old, proposal, site, odds = states[t], work.proposal, work.site, np.zeros(2)
    if not first:
        _add(sums.counts[old], counts[t], -1)
        sums.events[old] -= totals[t]
    move_site(t, old, states, layout.first, layout.last, sums.moves, sums.leaving, -1.0)
    site_weights(t, states, layout.first, layout.last, sums.moves, sums.leaving, prior, site)
    for j in range(2):
        # The first pass ignores the neighbours, which still have their old states.
        odds[j] = _tilts(t, totals[t], pair[j], pair[j], data, sums, tables, work)
        odds[j] += 0.0 if first else math.log(site[pair[j]])
    new = pair[int(rng.random() * (1 + math.exp(min(odds[0] - odds[1], 700.0))) < 1)]
    drawn = _draw(t, totals[t], new, new, data, sums, tables, work, proposal, True, rng)
    if not math.isnan(drawn[0]):
        _copy(proposal, counts[t])
    states[t] = new
    _add(sums.counts[new], counts[t], 1)
    sums.events[new] += totals[t]
    move_site(t, new, states, layout.first, layout.last, sums.moves, sums.leaving, 1.0)


@inner
def resplit(seen, data, latent, sums, layout, prior, tables, work, rng):
    """Split the cells of two states anew, one of which may have none; accept by the ratio of the splits' densities.

    Cells in random order draw a state of the pair given the cells before them; some passes refine the split. The ratio
    leaves out the probability of proposing it: use this only in the burn-in's search. Returns whether it was accepted.
    """
    states, counts, totals = latent
    members = np.zeros(len(sums.counts), np.int64)
    for t in seen:
        members[states[t]] += 1
    # States without cells are alike: one of them stands for all. Small states are drawn as often as large ones.
    occupied = np.flatnonzero(members > 0)
    size = len(occupied)
    one, other = int(rng.random() * size), int(rng.random() * (size - (size == len(members))))
    pair = occupied[one], occupied[(one + 1 + other) % size] if other < size - 1 else np.argmin(members)
    cells = np.array([t for t in seen if states[t] == pair[0] or states[t] == pair[1]])
    for i in range(len(cells) - 1, 0, -1):
        j = np.int64(rng.random() * (i + 1))
        cells[i], cells[j] = cells[j], cells[i]
    before, old_counts = _worth(cells, latent, data, sums, layout, prior, tables, work, rng), counts[cells]
    old = states[cells]
    for t in cells:
        _add(sums.counts[states[t]], counts[t], -1)
        sums.events[states[t]] -= totals[t]
    for turn in range(1 + PASSES):
        for t in cells:
            _allot(t, pair, data, latent, sums, layout, prior, tables, work, rng, turn == 0)
    after = _worth(cells, latent, data, sums, layout, prior, tables, work, rng)
    accepted = -rng.standard_exponential() < after - before
    if not accepted:
        for place in range(len(cells)):
            t = cells[place]
            _add(sums.counts[states[t]], counts[t], -1)
            sums.events[states[t]] -= totals[t]
            move_site(t, states[t], states, layout.first, layout.last, sums.moves, sums.leaving, -1.0)
            states[t] = old[place]
            move_site(t, states[t], states, layout.first, layout.last, sums.moves, sums.leaving, 1.0)
            _copy(old_counts[place], counts[t])
            _add(sums.counts[states[t]], counts[t], 1)
            sums.events[states[t]] += totals[t]
    return accepted
