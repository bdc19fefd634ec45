"""Compiled passes of the collapsed sampler over all cells; imported where chains are run and nowhere else."""

from __future__ import annotations

import math

import numpy as np

from privpost.samplers.compiled import inner
from privpost.samplers.hidden_markov_kernels import (
    _HALF_LOG_2PI,
    _log,
    add_up,
    choose,
    count_moves,
    log_gammas,
    log_prior,
    move_site,
    site_weights,
)


@inner
def beyond(alpha, t, log_density):
    """ln Q(α, t) and h of the gamma law beyond t > 0, α > 1; its mean there is α + h.

    `log_density` is that of h = t^α e^(−t) / Γ(α, t) without the tail's mass: ln of t^α e^(−t) / Γ(α).
    """
    if t < alpha + 1:
        # P(α, t) is at most twice this density below the mean: nothing is cut off.
        if t < alpha and log_density < -38.0:
            return 0.0, 0.0
        term = 1 / alpha
        total = term
        n = alpha
        while term > 1e-14 * total:
            n += 1
            term *= t / n
            total += term
        density = math.exp(log_density)
        tail = 1 - density * total
        return math.log(tail), density / tail
    # Lentz's continued fraction of Γ(α, t).
    b = t + 1 - alpha
    c, d = 1e300, 1 / b
    fraction = d
    for n in range(1, 1000):
        b += 2
        d = 1 / (n * (alpha - n) * d + b)
        c = b + n * (alpha - n) / c
        fraction *= c * d
        if abs(c * d - 1) < 1e-14:
            break
    return log_density + math.log(fraction), 1 / fraction


@inner
def log_mass(totals, gammas, log_gamma, low, c):
    """ln P(all x_i ≥ low), x ~ Dirichlet(α), α = 1 + totals, by a saddlepoint, and that point; `c` is a guess, or 0.

    With independent gammas G_i of shapes α_i that exceed c·low, S their sum and A = Σα_i, for any c > 0
    P = Π P(G_i > c low) f_S(c) / f_Gamma(A)(c); f_S is taken as normal, at the c that is its mean. `gammas` are
    ln Γ(α_i), `log_gamma` is ln Γ(A).
    """
    ones, shapes = 0, 0.0
    for total in totals:
        shapes += 1 + total
        ones += 1 + total <= 1
    size = len(totals)
    if c <= 0:
        c = shapes / (1 - 0.5 * size * low)
    for _ in range(20):
        t = c * low
        log_t = math.log(t)
        tail, h_sum, slope, variance = -ones * t, ones * t, float(ones), float(ones)
        for i in range(size):
            alpha = 1 + totals[i]
            if alpha > 1:
                log_tail, h = beyond(alpha, t, alpha * log_t - t - gammas[i])
                mean = alpha + h
                tail += log_tail
                h_sum += h
                slope += h * (mean - t) / t
                variance += (alpha + 1) * mean + t * h - mean * mean
        gap = shapes + h_sum - c
        step = gap / (1 - low * slope)
        if gap * gap < 1e-3 * variance:
            break
        c += step
    # The last step to second order, without another pass over the levels.
    r = step / c
    tail -= h_sum * r + 0.5 * (slope * t - h_sum) * r * r
    c += step
    return tail - 0.5 * math.log(variance) - _HALF_LOG_2PI - ((shapes - 1) * math.log(c) - c - log_gamma), c


@inner
def log_masses(totals, gammas, bounds, lows, masses, points):
    """`log_mass` of each field of one state, written to `masses` (fields,), and the saddlepoints to `points`.

    `totals` and `gammas` are of all levels and then of all fields, as in `collapsed_sweep`.
    """
    for d in range(len(lows)):
        if lows[d] > 0:
            own, log_gamma = slice(bounds[d], bounds[d + 1]), gammas[bounds[-1] + d]
            masses[d], points[d] = log_mass(totals[own], gammas[own], log_gamma, lows[d], points[d])


@inner
def weigh(chosen, number, old, own, cells, entries, totals, gammas, work, found):
    """Collapsed log-likelihood ratios of some states with a cell's entries and without them, written to `found`.

    Args:
        chosen, number: the states, in the first places.
        old: the state that holds the cell.
        own: where the cell's entries begin and end.
        work: x, g; the latter gets ln Γ(totals + offset) of the cell's entries after the change, state after state.
    """
    (_, index, value), (offset, sign), (x, g) = cells, entries[:2], work
    begin, size = own[0], own[1] - own[0]
    for m in range(number):
        k = chosen[m]
        change = -1.0 if k == old else 1.0
        for j in range(size):
            i = index[begin + j]
            # Never below the offset, whatever rounding does.
            x[m * size + j] = max(totals[k, i] + change * value[begin + j], 0.0) + offset[i]
        log_gammas(x[m * size : (m + 1) * size], g[m * size : (m + 1) * size])
    for m in range(number):
        k = chosen[m]
        even, odd = 0.0, 0.0
        for j in range(0, size - 1, 2):
            i, other = index[begin + j], index[begin + j + 1]
            even += sign[i] * (g[m * size + j] - gammas[k, i])
            odd += sign[other] * (g[m * size + j + 1] - gammas[k, other])
        if size % 2:
            i = index[begin + size - 1]
            even += sign[i] * (g[m * size + size - 1] - gammas[k, i])
        found[m] = -(even + odd) if k == old else even + odd


@inner
def mass_allows(pair, own, cells, entries, totals, gammas, g, places, power, uniform, masses, points):
    """Whether a move of a cell is accepted by the change of `log_mass`; if so, masses and points are those after it.

    `pair` are the state that the cell leaves and the one that it enters, and `g` holds ln Γ of their entries after the
    move, from `places` on.
    """
    bounds, lows, (_, index, value) = entries[2], entries[3], cells
    proposed, guesses, table = np.zeros((2, len(lows))), np.empty((2, len(lows))), np.empty((4, totals.shape[1]))
    for row, state in enumerate(pair):
        guesses[row], table[row], table[2 + row] = points[state], totals[state], gammas[state]
        for j in range(own[0], own[1]):
            i, change = index[j], value[j] if row else -value[j]
            table[row, i] = max(table[row, i] + change, 0.0)
            table[2 + row, i] = g[places[row] + j - own[0]]
            if i >= bounds[-1] and guesses[row, i - bounds[-1]] + change > 0:
                # The saddlepoint moves about as far as the sum of all shapes.
                guesses[row, i - bounds[-1]] += change
        log_masses(table[row], table[2 + row], bounds, lows, proposed[row], guesses[row])
    old, new = pair
    change = proposed.sum() - masses[old].sum() - masses[new].sum()
    if change < 0 and uniform >= math.exp(power * change):
        return False
    masses[old], masses[new] = proposed[0], proposed[1]
    points[old], points[new] = guesses[0], guesses[1]
    return True


@inner
def note_changes(states, known, versions):
    """Count up the versions of all states whose cells are others than those in `known`, and write these down."""
    changed = np.zeros(len(versions), np.bool_)
    for t in range(len(states)):
        if states[t] != known[t]:
            changed[states[t]] = True
            if known[t] >= 0:
                changed[known[t]] = True
            known[t] = states[t]
    for k in range(len(versions)):
        # A state that never held a cell is new as well.
        changed[k] |= versions[k] == 0
        versions[k] += changed[k]
    return changed


@inner
def shift(pair, own, cells, totals, gammas, g, places):
    """Move a cell's entries from a state to another; `g` and `places` as in `mass_allows`."""
    (_, index, value), (old, new) = cells, pair
    for j in range(own[1] - own[0]):
        i, change = index[own[0] + j], value[own[0] + j]
        totals[old, i] -= change
        totals[new, i] += change
        gammas[old, i], gammas[new, i] = g[places[0] + j], g[places[1] + j]


@inner
def enter(t, pair, own, cells, totals, gammas, g, places, memory):
    """`shift` a cell, and note it."""
    known, _, versions, stamps, _, _ = memory
    known[t] = pair[1]
    for k in pair:
        # Of the state's other cells the weight of this one still tells.
        versions[k] += 1
        stamps[t, k] = versions[k]
    shift(pair, own, cells, totals, gammas, g, places)


@inner
def weigh_anew(t, old, own, cells, entries, totals, gammas, room, memory, stale, rank, found):
    """`weigh` a cell in the states whose other cells have changed since; `rank` is each state's place there, or −1."""
    (_, seen, versions, stamps, _, _), number = memory, 0
    for k in range(len(versions)):
        rank[k] = -1
        if stamps[t, k] != versions[k]:
            stale[number], rank[k] = k, number
            number += 1
    weigh(stale, number, old, own, cells, entries, totals, gammas, room, found)
    for m in range(number):
        seen[t, stale[m]], stamps[t, stale[m]] = found[m], versions[stale[m]]


@inner
def log_likelihood(masses, gammas, offset, sign, x):
    """Collapsed log-likelihood from ln Γ(totals + offset) (K, entries) and `log_mass`; `x` is space (entries,)."""
    found = masses.sum()
    log_gammas(offset, x)
    for k in range(len(gammas)):
        for i in range(len(x)):
            found += sign[i] * (gammas[k, i] - x[i])
    return found


@inner
def collapsed_sweep(states, cells, entries, layout, prior_power, a, power, uniforms, memory, work):
    """One pass over all cells of one chain, emissions and transitions integrated out; states (cells,) in place.

    With truncated emissions a state is proposed as if they were not, and accepted by the change of `log_mass`. A
    cell's weight in a state is taken from memory as long as the state's other cells are the same.

    Args:
        cells: `indptr` (cells + 1,), `index`, `value`: the non-zero entries of each cell, its levels' counts over T
            and then each field's count over T.
        entries: `offset`, `sign` (entries,): b and 1 of a level, b times the number of levels and −1 of a field;
            `bounds` (fields + 1,), where each field's levels begin; `lows` (fields,), their smallest probability.
        layout: `first`, `last` (cells,).
        power: 1/τ of the pass; `prior_power` that of p(z) beside the emissions, before 1/τ.
        uniforms: (cells,), or twice as many where emissions are truncated.
        memory: the states after the last pass (cells,), −1 before the first; the weights of cells in states (cells, K),
            the versions of states (K,) and those that the weights are of (cells, K); `log_mass` and its saddlepoints
            (K, fields).
        work: space for the entries by state and for ln Γ(totals + offset), (K, entries), and x, g of `weigh`.

    Returns:
        The collapsed log-likelihood of the states, and prior_power ln p(z).
    """
    (indptr, index, value), (offset, sign, bounds, lows), (first, last) = cells, entries, layout
    (known, seen, versions, _, masses, points), (totals, gammas, x, g) = memory, work
    n_states, n_entries = totals.shape
    moves, leaving, weights = np.empty((n_states, n_states)), np.empty(n_states), np.empty(n_states)
    logs, found = np.empty(n_states), np.empty(n_states)
    stale, rank = np.empty(n_states, np.intp), np.empty(n_states, np.intp)
    truncated = lows.max() > 0
    count_moves(states, last, moves)
    add_up(states, indptr, index, value, totals)
    changed = note_changes(states, known, versions)
    for k in range(n_states):
        leaving[k] = moves[k].sum()
        x[:n_entries] = totals[k] + offset
        log_gammas(x[:n_entries], gammas[k])
        if truncated and changed[k]:
            log_masses(totals[k], gammas[k], bounds, lows, masses[k], points[k])
    for t in range(len(states)):
        old, own = states[t], (indptr[t], indptr[t + 1])
        move_site(t, old, states, first, last, moves, leaving, -1.0)
        site_weights(t, states, first, last, moves, leaving, a, weights)
        weigh_anew(t, old, own, cells, entries, totals, gammas, (x, g), memory, stale, rank, found)
        for k in range(n_states):
            logs[k] = power * (seen[t, k] + prior_power * _log(weights[k]))
        new = choose(logs, uniforms[t])
        if new != old:
            if rank[old] < 0 or rank[new] < 0:
                stale[0], stale[1], rank[old], rank[new] = old, new, 0, 1
                weigh(stale, 2, old, own, cells, entries, totals, gammas, (x, g), found)
            places = (own[1] - own[0]) * rank[old], (own[1] - own[0]) * rank[new]
            if truncated and not mass_allows(
                (old, new), own, cells, entries, totals, gammas, g, places, power, uniforms[len(states) + t], masses,
                points,
            ):  # fmt: skip
                new = old
        states[t] = new
        move_site(t, new, states, first, last, moves, leaving, 1.0)
        if new != old:
            enter(t, (old, new), own, cells, totals, gammas, g, places, memory)
    return log_likelihood(masses, gammas, offset, sign, x[:n_entries]), prior_power * log_prior(moves, first.sum(), a)
