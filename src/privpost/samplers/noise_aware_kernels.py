"""Compiled moves of the noise-aware hidden Markov model; imported where chains are run and nowhere else.

Emissions and transitions are integrated out. With a cell's state k and its number of events n given, the counts C of a
field behind the release y are Dirichlet-multinomial with noise, and for any θ

    p(C | n, k, y) ∝ Π_i w_i(C_i) 1[Σ C_i = n],   w_i(c) = Γ(α_i + c)/(Γ(α_i) c!) e^(θc) e^(−|y_i − c|/s),

with α the counts of the state's other cells plus b. θ is chosen such that the means of w sum to about n. A proposal
draws level after level, the sum of the levels that are left being taken for normal; the last two are drawn exactly. As
its probability is known, the Metropolis ratio makes up for all that is approximate.
"""

from __future__ import annotations

import math

import numpy as np

from privpost.samplers.hidden_markov_kernels import (
    _inner,
    _outer,
    choose,
    count_moves,
    log_prior,
    move_site,
    site_weights,
)

# Weights below these shares of the largest one are left out of a level's law, and of its moments.
_CUT, _ROUGH = 1e-10, 1e-5
_STEPS = 3
# A sweep's rounds of exchanges, which cost little, and the share of cells to or from which it moves events.
EXCHANGES, TRANSFERS = 8, 0.25


# Loops, and below numbers that are no literals: each compiles in a fraction of the time.


@_inner
def _add(target, source, sign):
    for i in range(len(target)):
        target[i] += sign * source[i]


@_inner
def _copy(source, target):
    for i in range(len(target)):
        target[i] = source[i]


@_inner
def _growth(c, alpha, y, crossing, factors, inverse):
    """w(c + 1)/w(c); `factors` are e^(θ + 1/s), e^θ and e^(θ − 1/s)."""
    ratio = (alpha + c) * inverse[c + 1]
    if c >= y:
        return ratio * factors[2]
    if c + 1 <= y:
        return ratio * factors[0]
    return ratio * factors[1] * crossing


@_inner
def _mode(alpha, y, n, factors):
    """Where w is largest, for α ≥ 1; else near there."""
    if factors[0] < 1:
        place = (alpha * factors[0] - 1) / (1 - factors[0])
        below = math.floor(place) + 1 if place >= 0 else 0
        if below <= y:
            return min(int(below), n)
    above = 0
    if factors[2] < 1:
        place = (alpha * factors[2] - 1) / (1 - factors[2])
        if place >= 0:
            above = min(math.floor(place), n) + 1
    return min(int(max(above, math.floor(y), 0)), n)


@_inner
def _moments(first, size, alpha, y, crossing, n, theta, scale, tables, means, variances):
    """ln Σ_c w(c), summed over a field's levels; each level's mean and variance are written."""
    log_gammas, log_factorials, inverse, b = tables
    factors = (math.exp(theta + 1 / scale), math.exp(theta), math.exp(theta - 1 / scale))
    total = 0.0
    for i in range(first, first + size):
        a, own = alpha[i] + b, y[i]
        start = _mode(a, own, n, factors)
        mass, one, two = 1.0, 0.0, 0.0
        w, c, d = 1.0, start, 0.0
        while c < n:
            w *= _growth(c, a, own, crossing[i], factors, inverse)
            if w < _ROUGH:
                break
            c += 1
            d += 1.0
            mass += w
            one += w * d
            two += w * d * d
        w, c, d = 1.0, start, 0.0
        while c > 0:
            w /= _growth(c - 1, a, own, crossing[i], factors, inverse)
            if w < _ROUGH:
                break
            c -= 1
            d += 1.0
            mass += w
            one -= w * d
            two += w * d * d
        one /= mass
        means[i] = start + one
        variances[i] = two / mass - one * one
        total += log_gammas[alpha[i] + start] - log_gammas[alpha[i]] - log_factorials[start]
        total += theta * start - abs(own - start) / scale + math.log(mass)
    return total


@_inner
def _tilt(first, size, alpha, y, crossing, n, state_total, scale, tables, means, variances):
    """θ of a field, and an estimate of the log of p(n, k, y) = Σ_C p(C | n, k) e^(−Σ|y − C|/s)."""
    total = state_total + tables[3] * size
    theta = min(math.log((n + 0.5) / (n + total)), 0.9 / scale)
    for step in range(_STEPS):
        logs = _moments(first, size, alpha, y, crossing, n, theta, scale, tables, means, variances)
        mean, variance = 0.0, 1e-12
        for i in range(first, first + size):
            mean += means[i]
            variance += variances[i]
        short = n - mean
        if step == _STEPS - 1 or short * short < variance:
            break
        # Below 1/s, where w could not be summed; a step may go half of the way there.
        theta += min(max(short / variance, -1.0), 0.5 * (1 / scale - theta))
    logs -= theta * n + 0.5 * math.log(2 * math.pi * variance) + 0.5 * short * short / variance
    logs += math.lgamma(total) + tables[1][n] - math.lgamma(total + n)
    return theta, logs


@_inner
def _propose(first, size, alpha, y, crossing, n, theta, scale, tables, means, variances, counts, draw, weights, rng):
    """Draw a field's counts that sum to n, or leave those given; return the log-probability of a draw of them.

    −inf if numbers overflow, in which case nothing is drawn.
    """
    inverse, b = tables[2], tables[3]
    factors = (math.exp(theta + 1 / scale), math.exp(theta), math.exp(theta - 1 / scale))
    last, next_to_last = first, first + 1
    if variances[next_to_last] > variances[last]:
        last, next_to_last = next_to_last, last
    for i in range(first + 2, first + size):
        if variances[i] > variances[last]:
            last, next_to_last = i, last
        elif variances[i] > variances[next_to_last]:
            next_to_last = i
    mean, variance = 0.0, 0.0
    for i in range(first, first + size):
        mean += means[i]
        variance += variances[i]
    rest, log_probability = n, 0.0
    for place in range(size):
        i = first + place
        if i in (last, next_to_last):
            continue
        mean -= means[i]
        variance = max(variance - variances[i], 1e-9)
        a, own = alpha[i] + b, y[i]
        start = min(_mode(a, own, n, factors), rest)
        curve = math.exp(-1 / variance)
        slope = math.exp((2 * (rest - start - mean) - 1) / (2 * variance))
        low, high, mass, w = start, start, 1.0, 1.0
        weights[start] = 1.0
        while high < rest:
            ratio = _growth(high, a, own, crossing[i], factors, inverse) * slope
            w *= ratio
            if w < _CUT * mass and ratio < 1:
                break
            slope *= curve
            high += 1
            weights[high] = w
            mass += w
        slope, w = math.exp(-(2 * (rest - start - mean) + 1) / (2 * variance)), 1.0
        while low > 0:
            ratio = slope / _growth(low - 1, a, own, crossing[i], factors, inverse)
            w *= ratio
            if w < _CUT * mass and ratio < 1:
                break
            slope *= curve
            low -= 1
            weights[low] = w
            mass += w
        log_probability += _pick(i, low, high, mass, weights, counts, draw, rng)
        if not log_probability > -math.inf:
            return -math.inf
        rest -= counts[i]
    i, j = next_to_last, last
    a, own = alpha[i] + b, y[i]
    start = min(_mode(a, own, n, factors), rest)
    low, high, mass, w = start, start, 1.0, 1.0
    weights[start] = 1.0
    while high < rest:
        ratio = _growth(high, a, own, crossing[i], factors, inverse)
        ratio /= _growth(rest - high - 1, alpha[j] + b, y[j], crossing[j], factors, inverse)
        w *= ratio
        if w < _CUT * mass and ratio < 1:
            break
        high += 1
        weights[high] = w
        mass += w
    w = 1.0
    while low > 0:
        ratio = _growth(rest - low, alpha[j] + b, y[j], crossing[j], factors, inverse)
        ratio /= _growth(low - 1, a, own, crossing[i], factors, inverse)
        w *= ratio
        if w < _CUT * mass and ratio < 1:
            break
        low -= 1
        weights[low] = w
        mass += w
    log_probability += _pick(i, low, high, mass, weights, counts, draw, rng)
    if not log_probability > -math.inf:
        return -math.inf
    if draw:
        counts[j] = rest - counts[i]
    return log_probability


@_inner
def _pick(i, low, high, mass, weights, counts, draw, rng):
    """Draw or read a level's count; log of its probability, −inf outside the weights and where they overflow."""
    if not mass < math.inf:
        return -math.inf
    if draw:
        left, c = rng.random() * mass, low
        while c < high and left >= weights[c]:
            left -= weights[c]
            c += 1
        counts[i] = c
    elif not low <= counts[i] <= high:
        return -math.inf
    if weights[counts[i]] <= 0:
        return -math.inf
    return math.log(weights[counts[i]] / mass)


@_inner
def _log_density(first, size, alpha, y, n, state_total, scale, tables, counts):
    """ln of p(C | n, k) e^(−Σ|y − C|/s) of one field."""
    log_gammas, log_factorials, _, b = tables
    total = state_total + b * size
    logs = math.lgamma(total) + log_factorials[n] - math.lgamma(total + n)
    for i in range(first, first + size):
        c = counts[i]
        if c > 0:
            logs += log_gammas[alpha[i] + c] - log_gammas[alpha[i]] - log_factorials[c]
        logs -= abs(y[i] - c) / scale
    return logs


@_inner
def _field(first, size, alpha, y, crossing, n, state_total, scale, tables, work, counts, draw, rng):
    """Draw a field's counts, or read them; the log of their density less that of the proposal, −inf if impossible."""
    means, variances, weights = work
    theta, _ = _tilt(first, size, alpha, y, crossing, n, state_total, scale, tables, means, variances)
    logs = _propose(
        first, size, alpha, y, crossing, n, theta, scale, tables, means, variances, counts, draw, weights, rng
    )
    if logs == -math.inf:
        return math.nan
    return _log_density(first, size, alpha, y, n, state_total, scale, tables, counts) - logs


@_inner
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
    estimates, empty = np.zeros(n_states), -1
    for k in range(n_states):
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


@_inner
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


@_inner
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


@_inner
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


@_inner
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


@_inner
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


@_inner
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


@_inner
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
        if len(seen) > 1 and (rest[0] == 0 or rng.random() < 0.5):
            other = seen[int(rng.random() * len(seen))]
        if other == t or (other < 0 and rest[0] == 0):
            continue
        transferred += _transfer(t, other, step, data, latent, sums, tables, rest, work, rng)
    for _ in range(EXCHANGES):
        _exchange(data, latent, by_state, seen, tables[3], rng)
    joint = _log_joint(data, latent, sums, layout, observed, prior, tables, rest)
    return accepted, changed, transferred, joint


@_outer
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
