"""Compiled search for the best partitions, for `hidden_markov_sets`; imported only where chains are run."""

from __future__ import annotations

import math

import numpy as np

from privpost.samplers.compiled import bare, inner, outer
from privpost.samplers.hidden_markov_kernels import log_gamma
from privpost.samplers.hidden_markov_set_passes import changed, find_slots, make_room, recall, sweep

# Number of random splits of a set that are tried.
TRIES = 1
# Most passes that move cells between the two parts of a split.
SCANS = 4
# Most greedy passes over all cells at the start of a climb; after a merge with a split, half as many.
PASSES = 12
# Most steps of a climb.
STEPS = 30
# Most merges with a split that a step looks at.
LOOKED_AT = 6
# Most nats of log-likelihood that such a merge may lose.
WORST = 15.0
# Number of pairs of states, those whose merge loses least, whose cells a step also pools and splits anew.
CLOSEST = 5
# Smaller gains are ignored.
GAIN = 1e-6


@bare
def _shuffle(values, rng):
    for n in range(len(values) - 1, 0, -1):
        other = int(rng.random() * (n + 1))
        values[n], values[other] = values[other], values[n]


@inner
def split(slot, k, states, data, store, work, rng):
    """Find the split of state k's cells in two parts that has the best likelihood; store it with their set, `slot`."""
    if not math.isnan(store.gains[slot]):
        return
    store.gains[slot] = -math.inf
    members = np.flatnonzero((states == k) & (data.marks > 0))
    if len(members) < 2:
        return
    empty, side, pair = np.empty(2, np.int64), np.zeros(len(states), np.int64), np.empty(2, np.int64)
    find_slots(states[:0], data, store, empty)
    for _ in range(TRIES):
        pair[:] = empty
        _shuffle(members, rng)
        # One part begins with a random cell, the other with the most unlike of three other cells.
        pair[0] = changed(empty[0], members[0], 1.0, data, store)
        far, low = 1, math.inf
        for m in range(1, min(len(members), 4)):
            t = members[m]
            recall(t, -1, pair, data, store, work)
            weight = store.weights[pair[0], t] - store.weights[empty[0], t]
            if weight < low:
                far, low = m, weight
        members[1], members[far] = members[far], members[1]
        pair[1] = changed(empty[0], members[1], 1.0, data, store)
        side[members[0]], side[members[1]] = 0, 1
        for scan in range(1 + SCANS):
            moved = False
            for t in members[2 if scan == 0 else 0 :]:
                old = side[t] if scan else -1
                recall(t, pair[old] if scan else -1, pair, data, store, work)
                gain = store.weights[pair[1], t] - store.weights[pair[0], t]
                new = int(gain > 0 or (gain == 0 and old == 1))
                if new != old:
                    moved, side[t] = True, new
                    if scan:
                        pair[old] = changed(pair[old], t, -1.0, data, store)
                    pair[new] = changed(pair[new], t, 1.0, data, store)
            if not moved:
                break
        gain = store.likelihoods[pair[0]] + store.likelihoods[pair[1]] - store.likelihoods[slot]
        if gain > store.gains[slot]:
            store.gains[slot] = gain
            store.parts[slot] = False
            for t in members:
                store.parts[slot, t] = side[t] == 1


@bare
def loss(first, second, data, store):
    """Loss of log-likelihood when two sets are merged."""
    offset, sign, table, total = data.entries.offset, data.entries.sign, data.entries.table, 0.0
    for i in range(len(offset)):
        both = store.sums[first, i, 0] + store.sums[second, i, 0] - offset[i]
        total += sign[i] * (log_gamma(both, table) - data.empty[i])
    return store.likelihoods[first] + store.likelihoods[second] - total


@bare
def _descend(states, passes, data, store, work, rng):
    joint = -math.inf
    for _ in range(passes):
        joint, moved = sweep(states, 1.0, True, data, store, work, rng)
        if moved == 0:
            break
    return joint


@inner
def _neighbours(states, n_states, data, store, work, rng):
    """The most promising merges of two states, each with a split of a third state or of the union: (number, cells)."""
    # Room for the most new sets: those of one cell in a split, times the cells in all splits. Splits of single states
    # have each cell once; splits of the `CLOSEST` pairs have it at most once each.
    make_room((1 + TRIES * (1 + 2 * SCANS)) * (CLOSEST + 1) * len(states), store)
    slots, merged, pairs = (
        np.empty(n_states, np.int64),
        np.empty(n_states, np.int64),
        np.empty((n_states * (n_states - 1) // 2, 2), np.int64),
    )
    losses, n_pairs = np.empty(len(pairs)), 0
    find_slots(states, data, store, slots)
    for k in range(n_states):
        split(slots[k], k, states, data, store, work, rng)
        for other in range(k):
            pairs[n_pairs] = k, other
            losses[n_pairs] = loss(slots[k], slots[other], data, store)
            n_pairs += 1
    # The best gains, and their partitions.
    best, partitions = np.full(LOOKED_AT, -WORST), np.empty((LOOKED_AT, len(states)), states.dtype)
    number = 0
    order = np.argsort(losses)
    for place, pair in enumerate(order):
        i, j = pairs[pair]
        for k in range(n_states):
            source, slot = states, slots[k]
            if k == i or (k == j and place >= CLOSEST):
                continue
            if k == j:
                source = np.where(states == i, j, states)
                find_slots(source, data, store, merged)
                slot = merged[j]
                split(slot, j, source, data, store, work, rng)
            gain = store.gains[slot] - losses[pair]
            if gain <= best[-1] or (k == j and abs(gain) < GAIN):
                continue
            row = LOOKED_AT - 1
            while row > 0 and gain > best[row - 1]:
                best[row] = best[row - 1]
                partitions[row] = partitions[row - 1]
                row -= 1
            best[row], number = gain, min(number + 1, LOOKED_AT)
            for t in range(len(states)):
                partitions[row, t] = j if states[t] == i else states[t]
                if partitions[row, t] == k and store.parts[slot, t]:
                    partitions[row, t] = i
    return partitions[:number]


@inner
def climb(states, n_states, data, store, work, rng):
    """Move states (cells,) to a local optimum by greedy passes, and merges with splits as long as the joint rises."""
    joint = _descend(states, PASSES, data, store, work, rng)
    for _ in range(STEPS):
        better = False
        for other in _neighbours(states, n_states, data, store, work, rng):
            risen = _descend(other, PASSES // 2, data, store, work, rng)
            if risen > joint + GAIN:
                states[:], joint, better = other, risen, True
                break
        if not better:
            break
    return joint


@inner
def allot(states, group, data, store, work, rng):
    """Pool the cells of some states and distribute them anew: one cell to each state, the others to the best state."""
    make_room(len(states) + 1, store)
    slots = np.empty(len(group), np.int64)
    find_slots(states[:0], data, store, slots)
    pooled = np.zeros(len(states), np.bool_)
    for k in group:
        pooled |= states == k
    cells = np.flatnonzero(pooled)
    _shuffle(cells, rng)
    for n, t in enumerate(cells):
        m = n
        if n >= len(group):
            recall(t, -1, slots, data, store, work)
            m = int(rng.random() * len(group))
            for other in range(len(group)):
                if store.weights[slots[other], t] > store.weights[slots[m], t]:
                    m = other
        states[t] = group[m]
        slots[m] = changed(slots[m], t, 1.0, data, store)


@inner
def kick(states, n_states, data, store, work, rng):
    """Pool the cells of a random state and of one to three states near it, and distribute them anew by `allot`."""
    make_room(n_states, store)
    begin, distances, slots = int(rng.random() * n_states), np.empty(n_states), work.slots
    find_slots(states, data, store, slots)
    for k in range(n_states):
        distances[k] = loss(slots[begin], slots[k], data, store) * (0.25 + 1.5 * rng.random())
    distances[begin] = -math.inf
    allot(states, np.argsort(distances)[: 2 + int(rng.random() * 3)], data, store, work, rng)


@inner
def crossed(first, second, n_states, rng):
    """The compiled form of `hidden_markov_collapsed.crossed`."""
    child = np.full(len(first), -1)
    for k in range(n_states):
        parent, counts = second if k % 2 else first, np.zeros(n_states, np.int64)
        for t in range(len(child)):
            counts[parent[t]] += child[t] < 0
        child[(child < 0) & (parent == counts.argmax())] = k
    for t in range(len(child)):
        if child[t] < 0:
            child[t] = int(rng.random() * n_states)
    return child


@outer(seconds=20)
def breed(members, joints, fresh, children, n_states, data, store, work, rng):
    """Breed local optima by crossings, crossings with a random start, and kicks; a child replaces the worst member.

    Args:
        members: partitions (members, cells), and their log joints (members,); overwritten.
        fresh: whether to draw the members first, each from a random start.
        children: number of children.
    """
    everything, number = np.arange(n_states), len(members)
    for m in range(number if fresh else 0):
        members[m] = 0
        allot(members[m], everything, data, store, work, rng)
        joints[m] = climb(members[m], n_states, data, store, work, rng)
    for turn in range(children):
        i = int(rng.random() * number)
        j = (i + 1 + int(rng.random() * (number - 1))) % number
        child = members[i if joints[i] > joints[j] else j].copy()
        if turn % 4 == 0:
            child = crossed(members[i], members[j], n_states, rng)
        elif turn % 4 == 1:
            child[:] = 0
            allot(child, everything, data, store, work, rng)
            child = crossed(members[i], child, n_states, rng)
        else:
            kick(child, n_states, data, store, work, rng)
        joint, worst = climb(child, n_states, data, store, work, rng), joints.argmin()
        # The same optimum enters only once.
        if joint > joints[worst] and np.abs(joints - joint).min() > 1e-3:
            members[worst], joints[worst] = child, joint
