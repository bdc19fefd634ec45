"""Compiled sweeps of the noise-aware hidden Markov model: a cell's state and counts, transfers, exchanges.

Imported where chains are run and nowhere else. The cache on disk goes by this file alone: delete `__pycache__` when a
file changes that it takes loops from.
"""

from __future__ import annotations

import math

import numpy as np

from privpost.samplers.compiled import inner, outer
from privpost.samplers.hidden_markov_kernels import (
    choose,
    count_moves,
    log_prior,
    move_site,
    site_weights,
)
from privpost.samplers.noise_aware_kernels import _add, _copy, _field, _log_density, _propose, _tilt

# A sweep's rounds of exchanges, which cost little, and the share of cells to or from which it moves events.
EXCHANGES, TRANSFERS = 8, 0.4


@inner
def _estimate(t, n, old, data, sums, tables, power, work, estimates):
    """Estimate ln p(n, release of cell t | state) of all states; `work` gets θ, moments, and ln weights over τ."""
    y, crossing, scale, sizes, free = data
    by_state, state_totals = sums[0], sums[1]
    means, variances, _, thetas, logs, _, site = work
    empty = -1
    for k in range(len(estimates)):
        logs[k] = -math.inf
        if not (free or k == old):
            continue
        if state_totals[k] == 0 and empty >= 0:
            # All states without events are alike.
            _copy(means[empty], means[k])
            _copy(variances[empty], variances[k])
            _copy(thetas[empty], thetas[k])
            estimates[k] = estimates[empty]
            logs[k] = power * (estimates[k] + math.log(site[k]))
            continue
        if state_totals[k] == 0:
            empty = k
        start = np.int64(0)
        for d in range(len(sizes)):
            theta, estimate = _tilt(
                start,
                sizes[d],
                by_state[k],
                y[t],
                crossing[t],
                n,
                state_totals[k],
                scale,
                tables,
                means[k],
                variances[k],
            )
            thetas[k, d] = theta
            estimates[k] += estimate
            start += sizes[d]
        logs[k] = power * (estimates[k] + math.log(site[k]))


@inner
def _move_cell(t, data, latent, sums, layout, prior, tables, power, work, rng):
    """Propose a state and counts for an observed cell; returns whether they were accepted, and the state changed."""
    y, crossing, scale, sizes, free = data
    states, counts, totals = latent
    by_state, state_totals, moves, leaving = sums
    first, last = layout
    n_states = len(by_state)
    old, n = states[t], totals[t]
    means, variances, weights, thetas, logs, proposal, site = work
    _add(by_state[old], counts[t], -1)
    state_totals[old] -= n
    move_site(t, old, states, first, last, moves, leaving, -1.0)
    site_weights(t, states, first, last, moves, leaving, prior, site)
    estimates = np.zeros(n_states)
    _estimate(t, n, old, data, sums, tables, power, work, estimates)
    new = choose(logs, rng.random()) if free else old
    gain = estimates[old] - estimates[new]
    start, possible = np.int64(0), True
    for d in range(len(sizes)):
        forward = _propose(
            start, sizes[d], by_state[new], y[t], crossing[t], n, thetas[new, d], scale, tables, means[new],
            variances[new], proposal, np.bool_(True), weights, rng,
        )  # fmt: skip
        if forward == -math.inf:
            possible = False
            break
        gain += _log_density(start, sizes[d], by_state[new], y[t], n, state_totals[new], scale, tables, proposal)
        gain -= forward
        if power == 1.0:
            back = _propose(
                start, sizes[d], by_state[old], y[t], crossing[t], n, thetas[old, d], scale, tables, means[old],
                variances[old], counts[t], np.bool_(False), weights, rng,
            )  # fmt: skip
            gain += back
            gain -= _log_density(start, sizes[d], by_state[old], y[t], n, state_totals[old], scale, tables, counts[t])
        start += sizes[d]
    accepted = possible and (power < 1.0 or -rng.standard_exponential() < gain)
    if accepted:
        states[t] = new
        _copy(proposal, counts[t])
    new = states[t]
    _add(by_state[new], counts[t], 1)
    state_totals[new] += n
    move_site(t, new, states, first, last, moves, leaving, 1.0)
    return accepted, new != old


@inner
def _move_held_out(t, latent, sums, layout, prior, work, rng):
    """Draw the state of a cell without a release given all others."""
    states = latent[0]
    moves, leaving = sums[2], sums[3]
    site, logs = work[6], work[4]
    move_site(t, states[t], states, layout[0], layout[1], moves, leaving, -1.0)
    site_weights(t, states, layout[0], layout[1], moves, leaving, prior, site)
    for k in range(len(site)):
        logs[k] = math.log(site[k])
    states[t] = choose(logs, rng.random())
    move_site(t, states[t], states, layout[0], layout[1], moves, leaving, 1.0)


@inner
def _weigh(t, n, state, data, sums, tables, work, counts, draw, rng):
    """Draw a cell's counts for n events in a state, or read them; log-density less log-probability of the proposal."""
    y, crossing, scale, sizes, _ = data
    inner = (work[0][0], work[1][0], work[2])
    total, start = 0.0, np.int64(0)
    for d in range(len(sizes)):
        total += _field(
            start,
            sizes[d],
            sums[0][state],
            y[t],
            crossing[t],
            n,
            sums[1][state],
            scale,
            tables,
            inner,
            counts,
            draw,
            rng,
        )
        start += sizes[d]
    return total


@inner
def _transfer(t, other, step, data, latent, sums, tables, rest, work, rng):
    """Move events from a cell, or from the held-out ones (`other` < 0), to cell t; both cells' counts are drawn anew.

    `rest` are the held-out cells and their number of events: all ways to spread events over cells are equally likely.
    Returns whether it was accepted.
    """
    states, counts, totals = latent
    by_state, state_totals, _, _ = sums
    n_held, held = rest[0], rest[1]
    if totals[t] + step < 0 or (held if other < 0 else totals[other]) - step < 0:
        return False
    cells = (t, other)
    number = 1 if other < 0 else 2
    drawn = np.zeros((2, counts.shape[1]), np.int64)
    for j in range(number):
        _add(by_state[states[cells[j]]], counts[cells[j]], -1)
        state_totals[states[cells[j]]] -= totals[cells[j]]
    gain = 0.0
    if other < 0:
        gain += math.lgamma(held - step + n_held) - math.lgamma(held - step + 1.0)
        gain -= math.lgamma(held + n_held) - math.lgamma(held + 1.0)
    # The second cell's counts are proposed given the first one's, in both directions.
    for forward in (True, False):
        for j in range(number):
            cell = cells[j]
            change = (step if j == 0 else -step) if forward else 0
            n = totals[cell] + change
            table = drawn[j] if forward else counts[cell]
            weight = _weigh(cell, n, states[cell], data, sums, tables, work, table, forward, rng)
            gain += weight if forward else -weight
            if j == 0:
                _add(by_state[states[cell]], table, 1)
                state_totals[states[cell]] += n
        cell = cells[0]
        _add(by_state[states[cell]], drawn[0] if forward else counts[cell], -1)
        state_totals[states[cell]] -= totals[cell] + (step if forward else 0)
        if not gain > -math.inf:
            break
    accepted = -rng.standard_exponential() < gain
    if accepted:
        for j in range(number):
            _copy(drawn[j], counts[cells[j]])
        totals[t] += step
        if other < 0:
            rest[1] -= step
        else:
            totals[other] -= step
    for j in range(number):
        _add(by_state[states[cells[j]]], counts[cells[j]], 1)
        state_totals[states[cells[j]]] += totals[cells[j]]
    return accepted


@inner
def _exchange_levels(i, j, cells, n_cells, state, data, counts, by_state, b, moved, rng):
    """Move the odds of two levels in a state, and with them events of all of its cells, of one kind into the other.

    With p the first level's share of the pair, drawn given the counts, an event of the level that loses goes over with
    probability |p′ − p| over its share. As Binomial(m, p) counts become Binomial(m, p′) ones by that, and back in the
    same way, a move is accepted by the prior of p and the noise alone: it does not stall where noise hides the counts.
    """
    y, scale = data[0], data[2]
    both = by_state[state, i] + by_state[state, j]
    if both == 0:
        return
    one, other = rng.standard_gamma(by_state[state, i] + b), rng.standard_gamma(by_state[state, j] + b)
    share = min(max(one / (one + other), 1e-300), 1 - 1e-16)
    # As wide as the noise on the pair's share; it does not depend on what the move changes.
    width = scale * math.sqrt(2.0 * n_cells) / both * math.exp(rng.standard_normal())
    folded = (share + width * rng.standard_normal()) % 2.0
    wanted = min(max(2 - folded if folded > 1 else folded, 1e-300), 1 - 1e-16)
    source, sink, lost = (i, j, (share - wanted) / share) if wanted < share else (j, i, (wanted - share) / (1 - share))
    gain = 0.0
    if b != 1:
        gain = (b - 1) * (math.log(wanted) + math.log1p(-wanted) - math.log(share) - math.log1p(-share))
    limit = -rng.standard_exponential()
    for place in range(n_cells):
        t = cells[place]
        step = 0
        if counts[t, source] > 0:
            step = rng.binomial(counts[t, source], min(lost, 1.0))
        moved[place] = step
        if step > 0:
            gap, spare = y[t, source] - counts[t, source], y[t, sink] - counts[t, sink]
            gain -= (abs(gap + step) - abs(gap) + abs(spare - step) - abs(spare)) / scale
    if limit < gain:
        for place in range(n_cells):
            t, step = cells[place], moved[place]
            counts[t, source] -= step
            counts[t, sink] += step
            by_state[state, source] -= step
            by_state[state, sink] += step


@inner
def _exchange(data, latent, by_state, seen, b, rng):
    """One round of exchanges: random disjoint pairs of levels of each field, in each state."""
    states, counts, _ = latent
    order, cells, moved = np.arange(counts.shape[1]), np.empty(len(seen), np.int64), np.empty(len(seen), np.int64)
    for k in range(len(by_state)):
        n_cells = np.int64(0)
        for t in seen:
            if states[t] == k:
                cells[n_cells] = t
                n_cells += 1
        if n_cells == 0:
            continue
        start = 0
        for size in data[3]:
            for place in range(size - 1):
                other = place + int(rng.random() * (size - place))
                order[start + place], order[start + other] = order[start + other], order[start + place]
                if place % 2:
                    pair = order[start + place - 1], order[start + place]
                    _exchange_levels(pair[0], pair[1], cells, n_cells, k, data, counts, by_state, b, moved, rng)
            if size % 2 == 0:
                pair = order[start + size - 2], order[start + size - 1]
                _exchange_levels(pair[0], pair[1], cells, n_cells, k, data, counts, by_state, b, moved, rng)
            start += size


@inner
def _log_joint(data, latent, sums, layout, observed, prior, tables, rest):
    """Collapsed log-density of states, counts and release, up to a constant."""
    y, _, scale, sizes, _ = data
    _, counts, totals = latent
    by_state, state_totals, moves, _ = sums
    log_gammas, log_factorials, _, b = tables
    total = log_prior(moves, layout[0].sum(), prior)
    for k in range(len(by_state)):
        start = 0
        for size in sizes:
            for i in range(start, start + size):
                total += log_gammas[by_state[k, i]] - log_gammas[0]
            total += math.lgamma(b * size) - math.lgamma(state_totals[k] + b * size)
            start += size
    for t in range(len(counts)):
        if observed[t]:
            total += len(sizes) * log_factorials[totals[t]]
            for i in range(counts.shape[1]):
                total -= log_factorials[counts[t, i]] + abs(y[t, i] - counts[t, i]) / scale
    if rest[0] > 0:
        total += math.lgamma(rest[1] + float(rest[0])) - math.lgamma(rest[1] + 1.0)
    return total


@inner
def _sweep(data, observed, latent, n_states, rest, layout, prior, tables, power, rng):
    states, counts, totals = latent
    (n_cells, n_levels), n_fields, scale, free = counts.shape, len(data[3]), data[2], data[4]
    by_state, state_totals = np.zeros((n_states, n_levels), np.int64), np.zeros(n_states, np.int64)
    moves, leaving = np.zeros((n_states, n_states)), np.zeros(n_states)
    count_moves(states, layout[1], moves)
    seen = np.flatnonzero(observed)
    for t in seen:
        _add(by_state[states[t]], counts[t], 1)
        state_totals[states[t]] += totals[t]
    for k in range(n_states):
        leaving[k] = moves[k].sum()
    sums = by_state, state_totals, moves, leaving
    most = len(tables[1])
    work = (
        np.empty((n_states, n_levels)), np.empty((n_states, n_levels)), np.empty(most), np.empty((n_states, n_fields)),
        np.empty(n_states), np.empty(n_levels, np.int64), np.empty(n_states),
    )  # fmt: skip
    accepted, changed, transferred = 0, 0, 0
    for t in range(n_cells):
        if observed[t]:
            found, moved = _move_cell(t, data, latent, sums, layout, prior, tables, power, work, rng)
            accepted += found
            changed += moved
        elif free:
            _move_held_out(t, latent, sums, layout, prior, work, rng)
    for t in seen:
        if rng.random() >= TRANSFERS:
            continue
        step = int(1 + 0.4 * scale * rng.standard_exponential() * math.exp(rng.standard_normal()))
        if rng.random() < 0.5:
            step = -step
        other = -1
        if len(seen) > 1 and (rest[0] == 0 or rng.random() < 0.25):
            other = seen[int(rng.random() * len(seen))]
        if other == t or (other < 0 and rest[0] == 0):
            continue
        transferred += _transfer(t, other, step, data, latent, sums, tables, rest, work, rng)
    for _ in range(EXCHANGES):
        _exchange(data, latent, by_state, seen, tables[3], rng)
    joint = _log_joint(data, latent, sums, layout, observed, prior, tables, rest)
    return accepted, changed, transferred, joint


@outer()
def sweeps(data, observed, latent, n_states, rest, layout, prior, tables, power, rng, found):
    """One pass of the joint moves over all cells, of transfers and of exchanges in every chain.

    Args:
        data: release y (chains, cells, levels), e^(−(2⌊y⌋ + 1 − 2y)/s) of the same shape, s, the fields' numbers of
            levels, and whether states move.
        observed: (chains, cells) bool.
        latent: states (chains, cells), counts (chains, cells, levels), totals (chains, cells); integers, in place.
        rest: number of held-out cells that may hold events, and the events they hold, (chains, 2), in place.
        layout: `first`, `last` (cells,).
        prior: a.
        tables: ln Γ(j + b), ln j!, 1/j for j = 0, 1, …, and b.
        power: 1/τ of the choice of states. Below 1 all moves are accepted: for the start only.
        found: (4, chains): overwritten by the joint moves accepted, those that changed a state, the transfers accepted
            and the collapsed log joint.
    """
    for c in range(len(observed)):
        own = data[0][c], data[1][c], data[2], data[3], data[4]
        parts = latent[0][c], latent[1][c], latent[2][c]
        found[0, c], found[1, c], found[2, c], found[3, c] = _sweep(
            own, observed[c], parts, n_states, rest[c], layout, prior, tables, power, rng
        )
