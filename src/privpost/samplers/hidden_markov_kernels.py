"""Compiled loops of the hidden Markov model's samplers; imported where chains are run and nowhere else.

All arithmetic is written out, without reordering, so that a chain is the same to the last bit on any processor.
"""

from __future__ import annotations

import math

import numpy as np
from numba import float64, int64, types

from privpost.samplers.compiled import inner, outer

_HALF_LOG_2PI = 0.5 * math.log(2 * math.pi)


@inner
def _log(x):
    """ln x of a normal number x > 0, by 2 artanh((m − 1)/(m + 1)) of its mantissa m; a compiler can vectorise it."""
    bits = np.float64(x).view(np.int64)
    # The mantissa lies between √½ and √2.
    exponent = (bits - 0x3FE6A09E667F3BCD) >> 52
    mantissa = np.int64(bits - (exponent << 52)).view(np.float64)
    s = (mantissa - 1.0) / (mantissa + 1.0)
    q = s * s
    series = 1 / 21 + q / 23
    series = 1 / 15 + q * (1 / 17 + q * (1 / 19 + q * series))
    series = 1 / 9 + q * (1 / 11 + q * (1 / 13 + q * series))
    series = 1 + q * (1 / 3 + q * (1 / 5 + q * (1 / 7 + q * series)))
    return exponent * 0.6931471805599453 + 2 * s * series


# Contiguous arrays only: of others the compiler makes no vectors.
@outer(types.void(float64[::1], float64[::1]))
def log_gammas(x, out):
    """ln Γ of x > 0 (n,), written to `out`, to 1e-13 of max(1, |ln Γ(x)|): Stirling's series at x + 7.

    In two loops with one logarithm each: that is what the compiler makes vectors of.
    """
    for i in range(len(x)):
        y = x[i]
        out[i] = _log(y * (y + 1) * (y + 2) * (y + 3) * (y + 4) * (y + 5) * (y + 6))
    for i in range(len(x)):
        z = x[i] + 7.0
        r = 1.0 / z
        q = r * r
        series = r * (1 / 12 - q * (1 / 360 - q * (1 / 1260 - q * (1 / 1680 - q * (1 / 1188 - q * (691 / 360360))))))
        out[i] = (z - 0.5) * _log(z) - z + _HALF_LOG_2PI + series - out[i]


@inner
def count_moves(states, last, moves):
    """Moves from state to state within regions, written to `moves` (K, K)."""
    moves[:] = 0.0
    for t in range(len(states) - 1):
        if not last[t]:
            moves[states[t], states[t + 1]] += 1.0


@inner
def add_up(states, indptr, index, value, totals):
    """Entries of each cell summed by state, written to `totals` (K, entries)."""
    totals[:] = 0.0
    for t in range(len(states)):
        for j in range(indptr[t], indptr[t + 1]):
            totals[states[t], index[j]] += value[j]


@inner
def log_prior(moves, n_regions, a):
    """ln p(z), transitions integrated out, of the moves (K, K) within a number of regions."""
    n_states = len(moves)
    total = -n_regions * math.log(n_states)
    constant = math.lgamma(n_states * a) - n_states * math.lgamma(a)
    for k in range(n_states):
        left = 0.0
        for other in range(n_states):
            total += math.lgamma(moves[k, other] + a)
            left += moves[k, other]
        total += constant - math.lgamma(left + n_states * a)
    return total


@inner
def site_weights(t, states, first, last, moves, leaving, a, weights):
    """p(z_t = k | all other states) up to a factor, written to `weights` (K,); see `hidden_markov_gibbs.site_prior`.

    `moves` (K, K) and their row sums `leaving` are without the moves into and out of t.
    """
    for k in range(len(weights)):
        weight = 1.0
        if not first[t]:
            weight = moves[states[t - 1], k] + a
        if not last[t]:
            both = 0.0 if first[t] or states[t - 1] != k else 1.0
            after = states[t + 1]
            out = moves[k, after] + a + (both if after == k else 0.0)
            weight *= out / (leaving[k] + both + len(weights) * a)
        weights[k] = weight


@inner
def move_site(t, state, states, first, last, moves, leaving, change):
    """Add `change` to the counts of the moves into and out of cell t when it is in a state."""
    if not first[t]:
        moves[states[t - 1], state] += change
        leaving[states[t - 1]] += change
    if not last[t]:
        moves[state, states[t + 1]] += change
        leaving[state] += change


@inner
def choose(log_weights, uniform):
    """A state drawn from the law ∝ exp(log_weights) by inversion; overwrites them by cumulative weights."""
    largest = log_weights[0]
    for k in range(1, len(log_weights)):
        largest = max(largest, log_weights[k])
    total = 0.0
    for k in range(len(log_weights)):
        total += math.exp(log_weights[k] - largest)
        log_weights[k] = total
    chosen = 0
    while chosen < len(log_weights) - 1 and log_weights[chosen] < uniform * total:
        chosen += 1
    return chosen


# One signature for slices of chains and whole arrays, so that it is compiled once.
@outer(
    types.void(
        int64[:, :], float64[:, :, :], float64[:, :], types.UniTuple(types.boolean[::1], 2), float64, float64,
        int64[:, :, :],
    )
)  # fmt: skip
def explicit_sweep(states, likelihoods, uniforms, layout, prior_power, a, moves):
    """One pass over all cells of a number of chains given their emissions, transitions integrated out.

    Args:
        states: (cells, chains), updated in place.
        likelihoods: those of each cell in each state to the power 1/T, up to a factor of the cell, (chains, K, cells).
        uniforms: (cells, chains).
        layout: `first`, `last` (cells,).
        prior_power: 1/T of p(z).
        moves: overwritten by the counts of moves after the pass, (K, K, chains).
    """
    first, last = layout
    n_cells, n_chains = states.shape
    n_states = likelihoods.shape[1]
    own, leaving, weights, sums = np.empty(n_cells, np.intp), np.empty(n_states), np.empty(n_states), np.empty(n_states)
    counts = np.empty((n_states, n_states))
    for c in range(n_chains):
        own[:] = states[:, c]
        count_moves(own, last, counts)
        for k in range(n_states):
            leaving[k] = counts[k].sum()
        for t in range(n_cells):
            move_site(t, own[t], own, first, last, counts, leaving, -1.0)
            site_weights(t, own, first, last, counts, leaving, a, weights)
            total = 0.0
            for k in range(n_states):
                weight = weights[k] if prior_power == 1.0 else math.exp(prior_power * _log(weights[k]))
                total += weight * likelihoods[c, k, t]
                sums[k] = total
            chosen = 0
            while chosen < n_states - 1 and sums[chosen] < uniforms[t, c] * total:
                chosen += 1
            own[t] = chosen
            move_site(t, own[t], own, first, last, counts, leaving, 1.0)
        states[:, c] = own
        for k in range(n_states):
            for after in range(n_states):
                moves[k, after, c] = int(counts[k, after])


@inner
def beyond(alpha, t):
    """ln Q(α, t), h = t^α e^(−t) / Γ(α, t) and dh/dt of the gamma law beyond t > 0, α ≥ 1; its mean there is α + h."""
    if alpha == 1.0:
        return -t, t, 1.0
    # Below the mean: Chernoff's bound says whether anything is cut off.
    if t < alpha and alpha - t + alpha * math.log(t / alpha) < -36.0:
        return 0.0, 0.0, 0.0
    log_density = alpha * math.log(t) - t - math.lgamma(alpha)
    if t < alpha + 1:
        term = 1 / alpha
        total = term
        n = alpha
        while term > 1e-16 * total:
            n += 1
            term *= t / n
            total += term
        log_tail = math.log1p(-min(math.exp(log_density) * total, 1 - 1e-16))
    else:
        # Lentz's continued fraction of Γ(α, t).
        b = t + 1 - alpha
        c, d = 1e300, 1 / b
        fraction = d
        for n in range(1, 1000):
            b += 2
            d = 1 / (n * (alpha - n) * d + b)
            c = b + n * (alpha - n) / c
            fraction *= c * d
            if abs(c * d - 1) < 1e-15:
                break
        log_tail = log_density + math.log(fraction)
    h = math.exp(log_density - log_tail)
    return log_tail, h, h * (alpha + h - t) / t


@inner
def log_mass(totals, low, c):
    """ln P(all x_i ≥ low), x ~ Dirichlet(1 + totals), by a saddlepoint, and that point; `c` is a guess, or 0.

    With independent gammas G_i of shapes α_i that exceed c·low, S their sum and A = Σα_i, for any c > 0
    P = Π P(G_i > c low) f_S(c) / f_Gamma(A)(c); f_S is taken as normal, at the c that is its mean.
    """
    ones, shapes = 0, 0.0
    for total in totals:
        shapes += 1 + total
        ones += total <= 0
    size = len(totals)
    if c <= 0:
        c = shapes / (1 - 0.5 * size * low)
    for _ in range(20):
        t = c * low
        tail, h_sum, slope, variance = -ones * t, ones * t, float(ones), float(ones)
        for total in totals:
            if total > 0:
                alpha = 1 + total
                log_tail, h, rise = beyond(alpha, t)
                tail += log_tail
                h_sum += h
                slope += rise
                mean = alpha + h
                variance += (alpha + 1) * mean + t * h - mean * mean
        gap = shapes + h_sum - c
        if gap * gap < 1e-6 * variance:
            break
        c -= gap / (low * slope - 1)
    normal = -gap * gap / (2 * variance) - 0.5 * math.log(variance) - _HALF_LOG_2PI
    return tail + normal - ((shapes - 1) * math.log(c) - c - math.lgamma(shapes)), c


@inner
def log_masses(totals, bounds, lows, masses, points):
    """`log_mass` of each field of one state, written to `masses` (fields,), and the saddlepoints to `points`."""
    for d in range(len(lows)):
        if lows[d] > 0:
            masses[d], points[d] = log_mass(totals[bounds[d] : bounds[d + 1]], lows[d], points[d])


@inner
def weigh(old, index, value, offset, sign, totals, gammas, x, g, logs):
    """Collapsed log-likelihood ratio of a cell's entries in each state, written to `logs` (K,); the cell is in `old`.

    `g` holds ln Γ(totals + offset) of each state with the cell, of `old` without it, one state after the other.
    """
    n_states, size = len(totals), len(index)
    for k in range(n_states):
        change = -1.0 if k == old else 1.0
        for j in range(size):
            i = index[j]
            # Never below the offset, whatever rounding does.
            x[k * size + j] = max(totals[k, i] + change * value[j], 0.0) + offset[i]
    log_gammas(x[: n_states * size], g[: n_states * size])
    for k in range(n_states):
        difference = 0.0
        for j in range(size):
            i = index[j]
            difference += sign[i] * (g[k * size + j] - gammas[k, i])
        logs[k] = -difference if k == old else difference


@inner
def mass_allows(old, new, index, value, totals, entries, power, uniform, masses, points):
    """Whether a move of a cell is accepted by the change of `log_mass`; if so, masses and points are those after it."""
    bounds, lows = entries[2], entries[3]
    proposed, guesses, table = np.zeros((2, len(lows))), np.empty((2, len(lows))), np.empty((2, totals.shape[1]))
    table[0], table[1] = totals[old], totals[new]
    for j in range(len(index)):
        table[0, index[j]] = max(table[0, index[j]] - value[j], 0.0)
        table[1, index[j]] += value[j]
    guesses[0], guesses[1] = points[old], points[new]
    log_masses(table[0], bounds, lows, proposed[0], guesses[0])
    log_masses(table[1], bounds, lows, proposed[1], guesses[1])
    change = proposed.sum() - masses[old].sum() - masses[new].sum()
    if change < 0 and uniform >= math.exp(power * change):
        return False
    masses[old], masses[new] = proposed[0], proposed[1]
    points[old], points[new] = guesses[0], guesses[1]
    return True


@inner
def collapsed_sweep(states, cells, entries, layout, prior_power, a, power, uniforms, totals, gammas):
    """One pass over all cells of one replica, emissions and transitions integrated out; states (cells,) in place.

    With truncated emissions a state is proposed as if they were not, and accepted by the change of `log_mass`.

    Args:
        cells: `indptr` (cells + 1,), `index`, `value`: the non-zero entries of each cell, its levels' counts over T
            and then each field's count over T.
        entries: `offset`, `sign` (entries,): b and 1 of a level, b times the number of levels and −1 of a field;
            `bounds` (fields + 1,), where each field's levels begin; `lows` (fields,), their smallest probability.
        layout: `first`, `last` (cells,).
        power: 1/τ of the replica; `prior_power` that of p(z) beside the emissions, before 1/τ.
        uniforms: (cells,), or twice as many where emissions are truncated.
        totals, gammas: work space (K, entries); after the pass the entries by state, and ln Γ(totals + offset).

    Returns:
        The collapsed log-likelihood of the states, and prior_power ln p(z).
    """
    (indptr, index, value), (offset, sign, bounds, lows), (first, last) = cells, entries, layout
    n_states, n_entries = totals.shape
    moves, leaving = np.empty((n_states, n_states)), np.empty(n_states)
    weights, logs = np.empty(n_states), np.empty(n_states)
    truncated, masses, points = lows.max() > 0, np.zeros((n_states, len(lows))), np.zeros((n_states, len(lows)))
    x, g = np.empty(n_states * n_entries), np.empty(n_states * n_entries)
    count_moves(states, last, moves)
    add_up(states, indptr, index, value, totals)
    for k in range(n_states):
        leaving[k] = moves[k].sum()
        x[:n_entries] = totals[k] + offset
        log_gammas(x[:n_entries], gammas[k])
        if truncated:
            log_masses(totals[k], bounds, lows, masses[k], points[k])
    for t in range(len(states)):
        old, own = states[t], slice(indptr[t], indptr[t + 1])
        move_site(t, old, states, first, last, moves, leaving, -1.0)
        site_weights(t, states, first, last, moves, leaving, a, weights)
        weigh(old, index[own], value[own], offset, sign, totals, gammas, x, g, logs)
        for k in range(n_states):
            logs[k] = power * (logs[k] + prior_power * _log(weights[k]))
        new = choose(logs, uniforms[t])
        if truncated and new != old:
            uniform = uniforms[len(states) + t]
            if not mass_allows(old, new, index[own], value[own], totals, entries, power, uniform, masses, points):
                new = old
        states[t] = new
        move_site(t, new, states, first, last, moves, leaving, 1.0)
        if new != old:
            size = indptr[t + 1] - indptr[t]
            for j in range(size):
                i = index[indptr[t] + j]
                totals[old, i] -= value[indptr[t] + j]
                totals[new, i] += value[indptr[t] + j]
                gammas[old, i], gammas[new, i] = g[old * size + j], g[new * size + j]
    likelihood = masses.sum()
    log_gammas(offset, x[:n_entries])
    for k in range(n_states):
        for i in range(n_entries):
            likelihood += sign[i] * (gammas[k, i] - x[i])
    return likelihood, prior_power * log_prior(moves, first.sum(), a)


@outer()
def exchange_round(states, n_states, cells, entries, layout, prior_power, a, powers, uniforms, odd, energies):
    """A pass in every replica, then exchanges of neighbours; `states` (replicas, cells) in place.

    Args:
        powers: 1/τ of each replica, the first 1, falling; (replicas,).
        uniforms: (replicas, 1 + cells), or 1 + twice the cells; the first one of each row for an exchange.
        odd: 0 or 1, the first replica that may be exchanged with its hotter neighbour.
        energies: (replicas, 2), overwritten by the collapsed log-likelihood and the log-prior of each replica.

    Returns:
        The number of exchanges.
    """
    n_replicas, n_cells = states.shape
    shape = n_states, len(entries[0])
    totals, gammas = np.empty(shape), np.empty(shape)
    for r in range(n_replicas):
        energies[r] = collapsed_sweep(
            states[r], cells, entries, layout, prior_power, a, powers[r], uniforms[r, 1:], totals, gammas
        )
    swapped = 0
    for r in range(odd, n_replicas - 1, 2):
        gain = (powers[r] - powers[r + 1]) * (energies[r + 1].sum() - energies[r].sum())
        if gain >= 0 or uniforms[r, 0] < math.exp(gain):
            swapped += 1
            for t in range(n_cells):
                states[r, t], states[r + 1, t] = states[r + 1, t], states[r, t]
            for part in range(2):
                energies[r, part], energies[r + 1, part] = energies[r + 1, part], energies[r, part]
    return swapped
