"""Compiled passes of the sampler `hidden_markov_sets`; imported only where chains are run.

A cell's weight in a state depends only on the set of the state's other cells: not on the state's label, nor on the
temperature, the replica or the pass. Weights are remembered by that set.
"""

from __future__ import annotations

import math

import numpy as np

from privpost.samplers.compiled import bare, inlined, outer
from privpost.samplers.hidden_markov_kernels import choose, count_moves, move_site, site_logs
from privpost.samplers.hidden_markov_passes import add_cell, fill_gammas, weigh

# A cell is skipped if its weight in its own state exceeds those in all others by this many nats (at τ = 1) and by the
# most that p(z) can contribute.
LEAD = 32.0
# Sets are forgotten beyond so many weights (16 MiB): where sets seldom recur, new memory costs more than they save.
KEPT = 2**21


@bare
def make_room(number, store):
    """Forget all sets, and so invalidate all slots, if there are many or there may be no room for `number` more."""
    if store.used[0] * store.weights.shape[1] > KEPT or store.used[0] + number > len(store.keys):
        store.used[0] = 0
        store.places[:] = -1


@inlined
def _find(key, store):
    """The slot of a key, or −1, and its place among `places`."""
    mask = np.uint64(len(store.places) - 1)
    place = key & mask
    slot = store.places[place]
    while slot >= 0 and store.keys[slot] != key:
        place = (place + np.uint64(1)) & mask
        slot = store.places[place]
    return slot, place


@bare
def _note(key, place, store):
    slot = store.used[0]
    store.used[0] += 1
    store.keys[slot], store.places[place] = key, slot
    store.weights[slot] = math.nan
    store.gains[slot] = math.nan
    return slot


@bare
def _weigh_set(slot, data, store):
    sums, offset, sign, total = store.sums[slot], data.entries.offset, data.entries.sign, 0.0
    for i in range(len(offset)):
        total += sign[i] * (sums[i, 1] - data.empty[i])
    store.likelihoods[slot] = total


@bare
def _new(key, place, k, states, data, store):
    (indptr, index, value), slot = data.cells, _note(key, place, store)
    for i in range(len(data.entries.offset)):
        store.sums[slot, i, 0] = data.entries.offset[i]
    for t in range(len(states)):
        if states[t] == k:
            for j in range(indptr[t], indptr[t + 1]):
                store.sums[slot, index[j], 0] += value[j]
    fill_gammas(store.sums[slot], data.entries)
    _weigh_set(slot, data, store)
    return slot


@bare
def find_slots(states, data, store, slots):
    """Write to `slots` the slot of each state's set of cells; sums are exact, whatever the order of summation."""
    for k in range(len(slots)):
        slots[k] = 0
    for t in range(len(states)):
        # Keys first, in the same place.
        slots[states[t]] ^= np.int64(data.marks[t])
    for k in range(len(slots)):
        key = np.uint64(slots[k])
        slot, place = _find(key, store)
        slots[k] = slot if slot >= 0 else _new(key, place, k, states, data, store)


@bare
def _changed(base, key, place, t, change, data, store):
    slot = _note(key, place, store)
    # Assigning a part of an array would count references.
    for i in range(store.sums.shape[1]):
        store.sums[slot, i, 0], store.sums[slot, i, 1] = store.sums[base, i, 0], store.sums[base, i, 1]
    add_cell((data.cells.indptr[t], data.cells.indptr[t + 1]), data.cells, data.entries, change, store.sums[slot])
    _weigh_set(slot, data, store)
    # A cell's weight is the same ratio whether the cell enters the set or leaves it.
    store.weights[slot, t] = store.weights[base, t]
    return slot


@inlined
def changed(base, t, change, data, store):
    """The slot of a set with cell t added (`change` 1) or removed (−1). A cell without entries leaves it unchanged."""
    key = store.keys[base] ^ data.marks[t]
    slot, place = _find(key, store)
    return slot if slot >= 0 else _changed(base, key, place, t, change, data, store)


@bare
def _recall(t, old, slots, data, store, work):
    number = 0
    for slot in slots:
        if math.isnan(store.weights[slot, t]):
            work.stale[number] = slot
            number += 1
    span = data.cells.indptr[t], data.cells.indptr[t + 1]
    weigh(work.stale, number, old, span, data.cells, data.entries, store.sums, work.gains)
    for m in range(number):
        store.weights[work.stale[m], t] = work.gains[m]


@inlined
def recall(t, old, slots, data, store, work):
    """Compute cell t's weights in those sets of `slots` that have none yet; `old`: the slot of t's own set, or −1."""
    known = True
    for slot in slots:
        known &= store.weights[slot, t] == store.weights[slot, t]
    if not known:
        _recall(t, old, slots, data, store, work)


@bare
def sweep(states, power, greedy, data, store, work, rng):
    """A pass over all cells that updates states (cells,) in place; its target is the collapsed joint to a power.

    Cells whose states lead by `LEAD` are skipped: the law is the same to e⁻³². A greedy pass takes the best state.

    Returns:
        The collapsed log joint after the pass, and the number of cells that changed states.
    """
    (first, last), (moves, leaving), slots, seen = data.layout, (work.moves, work.leaving), work.slots, store.weights
    n_cells, n_states, moved = len(states), len(slots), 0
    make_room(2 * n_cells + n_states, store)
    count_moves(states, last, moves)
    for k in range(n_states):
        leaving[k] = moves[k].sum()
    find_slots(states, data, store, slots)
    # Two factors of `site_weights`, each between a over its largest denominator and its largest numerator.
    most = math.log((n_cells + data.a) / data.a) + math.log((n_cells + 1 + n_states * data.a) / data.a)
    bound = LEAD / power + most
    for t in range(n_cells):
        old, best = states[t], -math.inf
        recall(t, slots[old], slots, data, store, work)
        for k in range(n_states):
            if k != old:
                best = max(best, seen[slots[k], t])
        if seen[slots[old], t] - best > bound:
            continue
        move_site(t, old, states, first, last, moves, leaving, -1.0)
        site_logs(t, states, first, last, moves, leaving, data.logs, work.odds)
        for k in range(n_states):
            work.odds[k] = power * (seen[slots[k], t] + work.odds[k])
        new = work.odds.argmax() if greedy else choose(work.odds, rng.random())
        states[t] = new
        move_site(t, new, states, first, last, moves, leaving, 1.0)
        if new != old:
            moved += 1
            slots[old] = changed(slots[old], t, -1.0, data, store)
            slots[new] = changed(slots[new], t, 1.0, data, store)
    # ln p(z), transitions integrated out, and the states' log-likelihoods.
    joint = -first.sum() * math.log(n_states)
    for k in range(n_states):
        joint += store.likelihoods[slots[k]] - data.gammas[1, int(leaving[k])]
        for other in range(n_states):
            joint += data.gammas[0, int(moves[k, other])]
    return joint, moved


@outer(seconds=5)
def exchange(replicas, powers, rounds, draws, data, store, work, rng):
    """Passes of replicas; after each pass neighbours trade places by the Metropolis rule.

    Args:
        replicas: states (replicas, cells), overwritten.
        powers: 1/τ of each.
        rounds: passes from one draw to the next.
        draws: overwritten by the draws of the first replica's states, (draws, cells).
    """
    place, joints = np.arange(len(replicas)), np.empty(len(replicas))
    for n in range(len(draws) * rounds):
        for r in range(len(replicas)):
            joints[r] = sweep(replicas[place[r]], powers[r], False, data, store, work, rng)[0]
        for r in range(n % 2, len(replicas) - 1, 2):
            gain = (powers[r] - powers[r + 1]) * (joints[r + 1] - joints[r])
            if -rng.standard_exponential() < gain:
                place[r], place[r + 1] = place[r + 1], place[r]
        draws[n // rounds] = replicas[place[0]]
