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

from privpost.samplers.compiled import inner

# Weights below these shares of the largest one are left out of a level's law, and of its moments.
_CUT, _ROUGH = 1e-7, 1e-4
_STEPS = 3


# Loops, and below numbers that are no literals: each compiles in a fraction of the time.


@inner
def _add(target, source, sign):
    for i in range(len(target)):
        target[i] += sign * source[i]


@inner
def _copy(source, target):
    for i in range(len(target)):
        target[i] = source[i]


@inner
def _growth(c, alpha, y, crossing, factors, inverse):
    """w(c + 1)/w(c); `factors` are e^(θ + 1/s), e^θ and e^(θ − 1/s)."""
    ratio = (alpha + c) * inverse[c + 1]
    if c >= y:
        return ratio * factors[2]
    if c + 1 <= y:
        return ratio * factors[0]
    return ratio * factors[1] * crossing


@inner
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


@inner
def _moments(first, size, alpha, y, crossing, n, theta, scale, tables, means, variances):
    """ln Σ_c w(c), summed over a field's levels; each level's mean and variance are written."""
    log_gammas, log_factorials, inverse, b = tables
    factors = (math.exp(theta + 1 / scale), math.exp(theta), math.exp(theta - 1 / scale))
    total, product, precision = 0.0, 1.0, 1 / scale
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
        if start > 0:
            total += log_gammas[alpha[i] + start] - log_gammas[alpha[i]] - log_factorials[start] + theta * start
        total -= abs(own - start) * precision
        product *= mass
        if product > 1e200:
            total += math.log(product)
            product = 1.0
    return total + math.log(product)


@inner
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


@inner
def _law(i, j, alpha, y, crossing, rest, mean, variance, start, factors, inverse, b, weights):
    """Weights of a level's counts given the events that are left, from `start` both ways; lowest, highest and sum.

    The sum of the other levels is normal, or it is the count of level j if that is not negative.
    """
    a, own = alpha[i] + b, y[i]
    curve, slope, back = 1.0, 1.0, 1.0
    if j < 0:
        curve = math.exp(-1 / variance)
        slope = math.exp((2 * (rest - start - mean) - 1) / (2 * variance))
        back = curve / slope
    low, high, mass, w = start, start, 1.0, 1.0
    weights[start] = 1.0
    while high < rest:
        ratio = _growth(high, a, own, crossing[i], factors, inverse) * slope
        if j >= 0:
            ratio /= _growth(rest - high - 1, alpha[j] + b, y[j], crossing[j], factors, inverse)
        w *= ratio
        if w < _CUT * mass and ratio < 1:
            break
        slope *= curve
        high += 1
        weights[high] = w
        mass += w
    w = 1.0
    while low > 0:
        ratio = back / _growth(low - 1, a, own, crossing[i], factors, inverse)
        if j >= 0:
            ratio *= _growth(rest - low, alpha[j] + b, y[j], crossing[j], factors, inverse)
        w *= ratio
        if w < _CUT * mass and ratio < 1:
            break
        back *= curve
        low -= 1
        weights[low] = w
        mass += w
    return low, high, mass


@inner
def _widest(first, size, variances):
    """The levels of the largest and the second largest variance."""
    last, next_to_last = first, first + 1
    if variances[next_to_last] > variances[last]:
        last, next_to_last = next_to_last, last
    for i in range(first + 2, first + size):
        if variances[i] > variances[last]:
            last, next_to_last = i, last
        elif variances[i] > variances[next_to_last]:
            next_to_last = i
    return last, next_to_last


@inner
def _propose(first, size, alpha, y, crossing, n, theta, scale, tables, means, variances, counts, draw, weights, rng):
    """Draw a field's counts that sum to n, or leave those given; return the log-probability of a draw of them.

    −inf if numbers overflow, in which case nothing is drawn.
    """
    inverse, b = tables[2], tables[3]
    factors = (math.exp(theta + 1 / scale), math.exp(theta), math.exp(theta - 1 / scale))
    last, next_to_last = _widest(first, size, variances)
    mean, variance = 0.0, 0.0
    for i in range(first, first + size):
        mean += means[i]
        variance += variances[i]
    rest, log_probability, none = n, 0.0, np.int64(-1)
    for place in range(first, first + size):
        if place in (last, next_to_last):
            continue
        mean -= means[place]
        variance = max(variance - variances[place], 1e-9)
        start = min(_mode(alpha[place] + b, y[place], n, factors), rest)
        low, high, mass = _law(
            place, none, alpha, y, crossing, rest, mean, variance, start, factors, inverse, b, weights
        )
        log_probability += _pick(place, low, high, mass, weights, counts, draw, rng)
        if not log_probability > -math.inf:
            return -math.inf
        rest -= counts[place]
    start = min(_mode(alpha[next_to_last] + b, y[next_to_last], n, factors), rest)
    low, high, mass = _law(next_to_last, last, alpha, y, crossing, rest, 0.0, 1.0, start, factors, inverse, b, weights)
    log_probability += _pick(next_to_last, low, high, mass, weights, counts, draw, rng)
    if not log_probability > -math.inf:
        return -math.inf
    if draw:
        counts[last] = rest - counts[next_to_last]
    return log_probability


@inner
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


@inner
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


@inner
def _tilts(t, n, state, row, data, sums, tables, work):
    """Tilts and moments of all fields of a cell for n events in a state, to a `row` of `work`; estimate ln p(n, y)."""
    y, crossing, scale, sizes, _ = data
    start, total = np.int64(0), 0.0
    for d in range(len(sizes)):
        work[3][row, d], estimate = _tilt(
            start, sizes[d], sums[0][state], y[t], crossing[t], n, sums[1][state], scale, tables, work[0][row],
            work[1][row],
        )  # fmt: skip
        total += estimate
        start += sizes[d]
    return total


@inner
def _estimate(t, n, old, data, sums, tables, power, work, estimates):
    """Estimate ln p(n, release of cell t | state) of all states; `work` gets θ, moments, and ln weights over τ."""
    free, state_totals = data[4], sums[1]
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
        else:
            estimates[k] = _tilts(t, n, k, k, data, sums, tables, work)
            if state_totals[k] == 0:
                empty = k
        logs[k] = power * (estimates[k] + math.log(site[k]))


@inner
def _draw(t, n, state, row, data, sums, tables, work, counts, draw, rng):
    """Draw a cell's counts for n events in a state, or read them; log-density less log-probability of the proposal.

    The field's tilts and moments are those in a `row` of `work`. Also returns the derivative of ln p(n | all else), and
    −1 times the second one, of the saddlepoint's estimate.
    """
    y, crossing, scale, sizes, _ = data
    alpha, of_state, means, variances, thetas = sums[0][state], sums[1][state], work[0][row], work[1][row], work[3][row]
    total, start, slope, curve = 0.0, np.int64(0), 0.0, 0.0
    for d in range(len(sizes)):
        size, theta = sizes[d], thetas[d]
        logs = _propose(
            start, size, alpha, y[t], crossing[t], n, theta, scale, tables, means, variances, counts, draw, work[2], rng
        )  # fmt: skip
        if logs == -math.inf:
            return math.nan, slope, curve
        total += _log_density(start, size, alpha, y[t], n, of_state, scale, tables, counts) - logs
        # At least the variance of a coin, lest the width vanishes with the events.
        mean, variance = 0.0, 0.25
        for i in range(start, start + size):
            mean += means[i]
            variance += variances[i]
        few, many = n + 0.5, n + of_state + tables[3] * size - 0.5
        slope += math.log(few / many) - theta - (n - mean) / variance
        curve += max(1 / variance - 1 / few + 1 / many, 0.0)
        start += size
    return total, slope, curve


@inner
def _weigh(t, n, state, data, sums, tables, work, counts, draw, rng):
    """As `_draw`, with tilts and moments for n events, which are written to the first row of `work`."""
    _tilts(t, n, state, 0, data, sums, tables, work)
    return _draw(t, n, state, 0, data, sums, tables, work, counts, draw, rng)
