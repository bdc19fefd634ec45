"""Compiled passes of the collapsed sampler over all cells; imported where chains are run and nowhere else."""

from __future__ import annotations

import math

import numpy as np

from privpost.samplers.compiled import inlined, inner, outer
from privpost.samplers.hidden_markov_kernels import (
    _HALF_LOG_2PI,
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
        while term > 1e-10 * total:
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
        if abs(c * d - 1) < 1e-10:
            break
    return log_density + math.log(fraction), 1 / fraction


@inner
def tail_of(alpha, t, log_t, log_gamma):
    """`beyond` for α ≥ 1."""
    return (-t, t) if alpha <= 1 else beyond(alpha, t, alpha * log_t - t - log_gamma)


@inner
def spread(alpha, h, t):
    """Variance of the gamma law beyond t."""
    return (alpha + 1) * (alpha + h) + t * h - (alpha + h) ** 2


@inner
def mass_at(point, shapes, log_gamma):
    """ln P of `log_mass` with f_S normal, from what `log_mass` keeps of a point near the mean."""
    c, tail, h_sum, variance = point
    gap = shapes + h_sum - c
    density = -0.5 * (gap * gap / variance + math.log(variance)) - _HALF_LOG_2PI
    return tail + density - ((shapes - 1) * math.log(c) - c - log_gamma)


@inner
def log_mass(alphas, gammas, shapes, log_gamma, low, point, tails):
    """ln P(all x_i ≥ low), x ~ Dirichlet(α), α ≥ 1, by a saddlepoint.

    With independent gammas G_i of shapes α_i that exceed c·low, S their sum and A = Σα_i, for any c > 0
    P = Π P(G_i > c low) f_S(c) / f_Gamma(A)(c); f_S is taken as normal, at a c near its mean. `gammas` are
    ln Γ(α_i), `shapes` is A, `log_gamma` is ln Γ(A).

    Args:
        point: c, of which a guess is given, or 0; Σ ln P(G_i > c low), Σ h_i, variance of S, all overwritten.
        tails: overwritten by ln P(G_i > c low) and h_i (2, levels).
    """
    c = point[0] if point[0] > 0 else shapes / (1 - 0.5 * len(alphas) * low)
    for _ in range(20):
        t = c * low
        log_t, tail, h_sum, slope, variance = math.log(t), 0.0, 0.0, 0.0, 0.0
        for i in range(len(alphas)):
            alpha = alphas[i]
            tails[0, i], h = tail_of(alpha, t, log_t, gammas[i])
            tails[1, i] = h
            tail += tails[0, i]
            h_sum += h
            slope += h * (alpha + h - t) / t
            variance += spread(alpha, h, t)
        point[0], point[1], point[2], point[3] = c, tail, h_sum, variance
        gap = shapes + h_sum - c
        if gap * gap < 1e-3 * variance:
            break
        c += gap / (1 - low * slope)
    return mass_at(point, shapes, log_gamma)


@inner
def log_masses(sums, entries, masses, points, tails):
    """`log_mass` of each field of one state, written to `masses` (fields,), with `points` (fields, 4) and `tails`.

    `sums` are totals and ln Γ of them (entries, 2), of all levels and then of all fields, as in `collapsed_sweep`.
    """
    bounds, lows = entries[2], entries[3]
    for d in range(len(lows)):
        if lows[d] > 0:
            own, i = slice(bounds[d], bounds[d + 1]), bounds[-1] + d
            given = sums[own, 0], sums[own, 1], sums[i, 0], sums[i, 1], lows[d]
            masses[d] = log_mass(*given, points[d], tails[:, own])


@outer()
def truncation_masses(sums, entries):
    """Sum of `log_masses` over the states of each chain, shape (chains,); `sums` (chains, K, entries, 2)."""
    bounds, lows = entries[2], entries[3]
    found, masses, tails = np.zeros(len(sums)), np.zeros(len(lows)), np.empty((2, bounds[-1]))
    for c in range(len(sums)):
        for k in range(sums.shape[1]):
            log_masses(sums[c, k], entries, masses, np.zeros((len(lows), 4)), tails)
            found[c] += masses.sum()
    return found


@inlined
def weigh(chosen, number, old, own, cells, entries, sums, found):
    """Collapsed log-likelihood ratios of some states with a cell's entries and without them, written to `found`.

    Args:
        chosen, number: the states, in the first places; what follows, to a multiple of `LANES`, is overwritten.
        old: the state that holds the cell.
        own: where the cell's entries begin and end.
        sums: the states' totals and ln Γ of them, (K, entries, 2).
        found: as long as `chosen`.
    """
    (_, index, value), sign, table = cells, entries[1], entries[4]
    for first in range(0, number, LANES):
        for m in range(number, first + LANES):
            chosen[m] = chosen[0]
        weigh_lanes(own[0], own[1], index, value, sign, chosen, first, old, sums, table, found)


@inner
def add_cell(own, cells, entries, change, sums):
    """Add a cell's entries to a state's totals, or with a change of −1 take them away, and ln Γ; (entries, 2)."""
    (_, index, value), offset, table = cells, entries[0], entries[4]
    for j in range(own[0], own[1]):
        i = index[j]
        # Never below the offset, whatever rounding does.
        sums[i, 0] = max(sums[i, 0] + change * value[j], offset[i])
        sums[i, 1] = log_gamma(sums[i, 0], table)


@inner
def fill_gammas(sums, entries):
    """ln Γ of one state's totals, both in `sums` (entries, 2)."""
    for i in range(len(sums)):
        sums[i, 1] = log_gamma(sums[i, 0], entries[4])


@inner
def near(gap, shapes, variance):
    """Whether a normal law is good enough for S so far from its mean: its skewness is about 2/√A."""
    return gap * gap < variance * min(2.0, 1e-4 * shapes)


@inner
def change_masses(own, cells, entries, before, sums, masses, points, tails):
    """`log_masses` of a state of whose levels only a cell's have changed, by those; `before` are its sums till then.

    A point stays as long as it is near the mean of S.
    """
    index, bounds, lows = cells[1], entries[2], entries[3]
    d, t, log_t = -1, 0.0, 0.0
    for j in range(own[0], own[1]):
        i = index[j]
        if i >= bounds[-1]:
            break
        if d < 0 or i >= bounds[d + 1]:
            while i >= bounds[d + 1]:
                d += 1
            field = bounds[-1] + d
            shapes, t = sums[field, 0], points[d, 0] * lows[d]
            if t > 0 and near(shapes + points[d, 2] - points[d, 0], shapes, points[d, 3]):
                log_t = math.log(t)
            else:
                # All levels are computed again below.
                t, points[d, 3] = 0.0, 0.0
        if t > 0:
            alpha, h = sums[i, 0], tails[1, i]
            points[d, 1] -= tails[0, i]
            points[d, 2] -= h
            points[d, 3] -= spread(before[i, 0], h, t)
            tails[0, i], h = tail_of(alpha, t, log_t, sums[i, 1])
            tails[1, i] = h
            points[d, 1] += tails[0, i]
            points[d, 2] += h
            points[d, 3] += spread(alpha, h, t)
    for d in range(len(lows)):
        if lows[d] > 0:
            i = bounds[-1] + d
            shapes = sums[i, 0]
            mean = shapes + points[d, 2]
            if points[d, 3] > 0 and near(mean - points[d, 0], shapes, points[d, 3]):
                masses[d] = mass_at(points[d], shapes, sums[i, 1])
            else:
                levels, points[d, 0] = slice(bounds[d], bounds[d + 1]), mean
                given = sums[levels, 0], sums[levels, 1], shapes, sums[i, 1], lows[d], points[d]
                masses[d] = log_mass(*given, tails[:, levels])


@inner
def mass_allows(pair, own, cells, entries, sums, power, uniform, truncation):
    """Whether a move of a cell is accepted by the change of `log_mass`; if so, what is kept of it is that after it.

    `pair` are the state that the cell leaves and the one that it enters.
    """
    masses, points, tails = truncation
    own_masses, own_points = np.zeros((2, masses.shape[1])), np.empty((2, masses.shape[1], 4))
    own_tails = np.empty((2, 2, tails.shape[2]))
    after, change = np.empty(sums.shape[1:]), 0.0
    for row, state in enumerate(pair):
        after[:], own_points[row], own_tails[row] = sums[state], points[state], tails[state]
        add_cell(own, cells, entries, 1.0 if row else -1.0, after)
        given = sums[state], after, own_masses[row], own_points[row], own_tails[row]
        change_masses(own, cells, entries, *given)
        change += own_masses[row].sum() - masses[state].sum()
    if change < 0 and uniform >= math.exp(power * change):
        return False
    for row, state in enumerate(pair):
        masses[state], points[state], tails[state] = own_masses[row], own_points[row], own_tails[row]
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
def shift(pair, own, cells, entries, sums):
    """Move a cell's entries from a state to another."""
    add_cell(own, cells, entries, -1.0, sums[pair[0]])
    add_cell(own, cells, entries, 1.0, sums[pair[1]])


@inner
def enter(t, pair, own, cells, entries, sums, memory):
    """`shift` a cell, and note it."""
    known, _, versions, stamps = memory[:4]
    known[t] = pair[1]
    for k in pair:
        # Of the state's other cells the weight of this one still tells.
        versions[k] += 1
        stamps[t, k] = versions[k]
    shift(pair, own, cells, entries, sums)


@inlined
def weigh_anew(t, old, own, cells, entries, sums, memory, stale, found):
    """`weigh` a cell in the states whose other cells have changed since."""
    (_, seen, versions, stamps), number = memory[:4], 0
    for k in range(len(versions)):
        if stamps[t, k] != versions[k]:
            stale[number] = k
            number += 1
    weigh(stale, number, old, own, cells, entries, sums, found)
    for m in range(number):
        seen[t, stale[m]], stamps[t, stale[m]] = found[m], versions[stale[m]]


@inner
def log_likelihood(masses, sums, entries):
    """Collapsed log-likelihood from totals and ln Γ of them (K, entries, 2), and `log_mass`."""
    found = masses.sum()
    for i in range(sums.shape[1]):
        empty = log_gamma(entries[0][i], entries[4])
        for k in range(len(sums)):
            found += entries[1][i] * (sums[k, i, 1] - empty)
    return found


@inner
def collapsed_sweep(states, cells, entries, layout, prior_power, a, power, uniforms, memory, sums):
    """One pass over all cells of one chain, emissions and transitions integrated out; states (cells,) in place.

    With truncated emissions a state is proposed as if they were not, and accepted by the change of `log_mass`. A
    cell's weight in a state is taken from memory as long as the state's other cells are the same.

    Args:
        cells: `indptr` (cells + 1,), `index`, `value`: the non-zero entries of each cell, its levels' counts over T
            and then each field's count over T.
        entries: `offset`, `sign` (entries,): b and 1 of a level, b times the number of levels and −1 of a field;
            `bounds` (fields + 1,), where each field's levels begin; `lows` (fields,), their smallest probability; the
            table of `log_gamma`.
        layout: `first`, `last` (cells,).
        power: 1/τ of the pass; `prior_power` that of p(z) beside the emissions, before 1/τ.
        uniforms: (cells,), or twice as many where emissions are truncated.
        memory: the states after the last pass (cells,), −1 before the first; the weights of cells in states (cells, K),
            the versions of states (K,) and those that the weights are of (cells, K); `log_mass` (K, fields), its points
            (K, fields, 4) and tails (K, 2, levels).
        sums: space for the totals, offsets and entries summed by state, and for ln Γ of them, (K, entries, 2).

    Returns:
        The collapsed log-likelihood of the states, and prior_power ln p(z).
    """
    (indptr, index, value), lows, (first, last), truncation = cells, entries[3], layout, memory[4:]
    (known, seen, versions), n_states = memory[:3], len(sums)
    moves, leaving, weights = np.empty((n_states, n_states)), np.empty(n_states), np.empty(n_states)
    stale, truncated = np.empty(-(-n_states // LANES) * LANES, np.int64), lows.max() > 0
    logs, found = np.empty(n_states), np.empty(len(stale))
    count_moves(states, last, moves)
    add_up(states, indptr, index, value, entries[0], sums)
    changed = note_changes(states, known, versions)
    for k in range(n_states):
        leaving[k] = moves[k].sum()
        fill_gammas(sums[k], entries)
        if truncated and changed[k]:
            log_masses(sums[k], entries, truncation[0][k], truncation[1][k], truncation[2][k])
    for t in range(len(states)):
        old, own = states[t], (indptr[t], indptr[t + 1])
        move_site(t, old, states, first, last, moves, leaving, -1.0)
        site_weights(t, states, first, last, moves, leaving, a, weights)
        weigh_anew(t, old, own, cells, entries, sums, memory, stale, found)
        for k in range(n_states):
            logs[k] = power * (seen[t, k] + prior_power * _log(weights[k]))
        new = choose(logs, uniforms[t])
        if new != old:
            given = own, cells, entries, sums
            uniform = uniforms[len(states) + t] if truncated else 0.0
            if truncated and not mass_allows((old, new), *given, power, uniform, truncation):
                new = old
        states[t] = new
        move_site(t, new, states, first, last, moves, leaving, 1.0)
        if new != old:
            enter(t, (old, new), own, cells, entries, sums, memory)
    return log_likelihood(truncation[0], sums, entries), prior_power * log_prior(moves, first.sum(), a)
