"""Compiled proposals of a cell's counts in the noise-aware hidden Markov model; only code that runs chains imports it.

A proposal first draws the levels that hardly vary, each by its weights w alone (`noise_aware_kernels`). Then it draws
the other slots one by one, with the sum of the remaining slots treated as normal; the last two are drawn exactly. The
proposal's probability is known, so the Metropolis ratio corrects every approximation.
"""

import math

import numpy as np

from privpost.samplers.compiled import bare
from privpost.samplers.noise_aware_kernels import _ROUGH, _factors, _growth, _row, _tilts

# A slot's law leaves out weights below this share of their sum.
_CUT = 1e-7
# Levels with a variance of at most this share of the mean variance are drawn by their own weights alone, if together
# they have less than `_MOST` of all variance; otherwise only levels up to the smaller share are.
_SMALL = 0.8
_SMALLER = 0.1
_MOST = 0.25


@bare
def _law(i, j, alphas, y, crossing, rest, mean, variance, start, factors, inverse, weights):
    """Write a slot's `weights` by count, given the events left; return the lowest and highest count and the sum.

    They are computed upwards and downwards from the count `start`. The sum of the other slots is taken to be normal;
    if j is not negative, slot j is the only other one.
    """
    a, release = alphas[i], y[i]
    curve, slope, back = 1.0, 1.0, 1.0
    if j < 0:
        curve = math.exp(-1 / variance)
        slope = math.exp((2 * (rest - start - mean) - 1) / (2 * variance))
        back = curve / slope
    low, high, mass, w = start, start, 1.0, 1.0
    weights[start] = 1.0
    while high < rest:
        ratio = _growth(high, a, release, crossing[i], factors, inverse) * slope
        if j >= 0:
            ratio /= _growth(rest - high - 1, alphas[j], y[j], crossing[j], factors, inverse)
        w *= ratio
        if w < _CUT * mass and ratio < 1:
            break
        slope *= curve
        high += 1
        weights[high] = w
        mass += w
    w = 1.0
    while low > 0:
        ratio = back / _growth(low - 1, a, release, crossing[i], factors, inverse)
        if j >= 0:
            ratio *= _growth(rest - low, alphas[j], y[j], crossing[j], factors, inverse)
        w *= ratio
        if w < _CUT * mass and ratio < 1:
            break
        back *= curve
        low -= 1
        weights[low] = w
        mass += w
    return low, high, mass


@bare
def _widest(first, size, variances):
    """The slots of the largest and the second largest variance."""
    last, next_to_last = first, first + 1
    if variances[next_to_last] > variances[last]:
        last, next_to_last = next_to_last, last
    for i in range(first + 2, first + size):
        if variances[i] > variances[last]:
            last, next_to_last = i, last
        elif variances[i] > variances[next_to_last]:
            next_to_last = i
    return last, next_to_last


@bare
def _alone(first, near, variances, variance):
    """The largest variance with which a level is still drawn by its own weights alone."""
    limit, total = _SMALL * variance / (near + 1), 0.0
    for i in range(first, first + near):
        if variances[i] <= limit:
            total += variances[i]
    return limit if total < _MOST * variance else _SMALLER * variance / (near + 1)


@bare
def _propose(first, near, far, y, crossing, n, theta, scale, tables, moments, counts, draw, weights, rng):
    """Draw the counts of a field's slots that sum to n, or keep those given; return their log-probability.

    It is −inf if numbers overflow or the counts do not fit in n; then the draw is not complete.
    """
    inverse, size = tables.inverse, near + (far > 0)
    if size == 1:
        counts[first] = n
        return 0.0
    alphas, means, variances, masses, starts = moments
    factors = _factors(theta, scale)
    last, next_to_last = _widest(first, size, variances)
    mean, variance = 0.0, 0.0
    for i in range(first, first + size):
        mean += means[i]
        variance += variances[i]
    limit = _alone(first, near, variances, variance)
    rest, logs, product, none = n, 0.0, 1.0, np.int64(-1)
    for i in range(first, first + near):
        if variances[i] <= limit and i not in (last, next_to_last):
            product *= _pick_alone(i, n, alphas, y, crossing, starts, masses, factors, inverse, counts, draw, rng)
            if product < 1e-200:
                logs += math.log(product)
                product = 1.0
            mean -= means[i]
            variance -= variances[i]
            rest -= counts[i]
    logs += math.log(product)
    if rest < 0 or not logs > -math.inf:
        return -math.inf
    for i in range(first, first + size):
        if (variances[i] <= limit and i < first + near) or i in (last, next_to_last):
            continue
        mean -= means[i]
        variance = max(variance - variances[i], 1e-9)
        start = min(starts[i], rest)
        low, high, mass = _law(i, none, alphas, y, crossing, rest, mean, variance, start, factors, inverse, weights)
        logs += _pick(i, low, high, mass, weights, counts, draw, rng)
        if not logs > -math.inf:
            return -math.inf
        rest -= counts[i]
    start = min(starts[next_to_last], rest)
    low, high, mass = _law(next_to_last, last, alphas, y, crossing, rest, 0.0, 1.0, start, factors, inverse, weights)
    logs += _pick(next_to_last, low, high, mass, weights, counts, draw, rng)
    if not logs > -math.inf:
        return -math.inf
    if draw:
        counts[last] = rest - counts[next_to_last]
    return logs


@bare
def _pick_alone(i, n, alphas, y, crossing, starts, masses, factors, inverse, counts, draw, rng):
    """Draw a level's count by its own weights, or read it; return its probability, 0 outside the weights."""
    a, release, start = alphas[i], y[i], starts[i]
    if draw:
        c, w, left = start, 1.0, rng.random() * masses[i] - 1.0
        while left >= 0 and c < n:
            w *= _growth(c, a, release, crossing[i], factors, inverse)
            if w < _ROUGH:
                break
            c += 1
            left -= w
        if left >= 0:
            c, w = start, 1.0
            while left >= 0 and c > 0:
                w *= 1 / _growth(c - 1, a, release, crossing[i], factors, inverse)
                if w < _ROUGH:
                    break
                c -= 1
                left -= w
        counts[i] = c
    c, w = start, 1.0
    while c < counts[i] and w >= _ROUGH:
        w *= _growth(c, a, release, crossing[i], factors, inverse)
        c += 1
    while c > counts[i] and w >= _ROUGH:
        w *= 1 / _growth(c - 1, a, release, crossing[i], factors, inverse)
        c -= 1
    return w / masses[i] if w >= _ROUGH else 0.0


@bare
def _pick(i, low, high, mass, weights, counts, draw, rng):
    """Draw a slot's count, or read it; return its log-probability, −inf outside the weights or if they overflow."""
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


@bare
def _log_density(first, near, far, y, n, state_total, scale, tables, alphas, counts):
    """ln of p(C | n, k) e^(−Σ|y − C|/s) for one field's slots, up to a constant that depends on the release alone."""
    log_gammas, log_factorials, _, b = tables
    total = state_total + b * (near + far)
    logs = math.lgamma(total) + log_factorials[n] - math.lgamma(total + n)
    for i in range(first, first + near):
        c = counts[i]
        if c > 0:
            whole = int(alphas[i] - b + 0.5)
            logs += log_gammas[whole + c] - log_gammas[whole] - log_factorials[c]
        logs -= abs(y[i] - c) / scale
    if far > 0:
        i = first + near
        logs += math.lgamma(alphas[i] + counts[i]) - math.lgamma(alphas[i]) - log_factorials[counts[i]]
        logs -= counts[i] / scale
    return logs


@bare
def _split(levels, first, end, n, base, b, counts, work, rng):
    """Draw Dirichlet-multinomial counts of the levels from `first` to before `end`, n in all, by a Pólya urn."""
    cumulated, guide, urn = work.cumulated, work.guide, work.urn
    total, size = 0.0, end - first
    for i in range(first, end):
        counts[levels[i]] = 0
        total += base[levels[i]] + b
        cumulated[i] = total
    low = first
    for j in range(size):
        while cumulated[low] * size <= j * total:
            low += 1
        guide[first + j] = low
    for event in range(n):
        place = rng.random() * (total + event)
        if place < total:
            low = guide[first + min(int(place / total * size), size - 1)]
            while low < end - 1 and cumulated[low] <= place:
                low += 1
            urn[event] = levels[low]
        else:
            urn[event] = urn[min(int(place - total), event - 1)]
        counts[urn[event]] += 1


@bare
def _draw(t, n, state, row, data, sums, tables, work, counts, draw, rng):
    """Draw a cell's counts for n events in a state, or read them; return log-density less log-probability of proposal.

    The field's tilts and moments are those in a `row` of `work`. Also returns the first derivative of ln p(n | all
    else) and −1 times the second one, both by the saddlepoint's estimate.
    """
    (levels, nears, y, crossing), scale, sizes = data.slots, data.scale, data.sizes
    of_state, thetas, moments, slot_counts = sums.events[state], work.thetas[row], _row(work, row), work.slot_counts
    total, start, slope, curve = 0.0, np.int64(0), 0.0, 0.0
    for d in range(len(sizes)):
        near, far, theta = nears[t, d], sizes[d] - nears[t, d], thetas[d]
        if not draw:
            left = n
            for i in range(start, start + near):
                slot_counts[i] = counts[levels[t, i]]
                left -= slot_counts[i]
            if far > 0:
                slot_counts[start + near] = left
        logs = _propose(
            start, near, far, y[t], crossing[t], n, theta, scale, tables, moments, slot_counts, draw, work.weights, rng
        )  # fmt: skip
        if logs == -math.inf:
            return math.nan, slope, curve
        total += _log_density(start, near, far, y[t], n, of_state, scale, tables, moments.alphas, slot_counts) - logs
        # At least the variance of a fair coin, so that the width stays above 0 when there are no events.
        mean, variance = 0.0, 0.25
        for i in range(start, start + near + (far > 0)):
            mean += moments.means[i]
            variance += moments.variances[i]
        few, many = n + 0.5, n + of_state + tables.concentration * sizes[d] - 0.5
        slope += math.log(few / many) - theta - (n - mean) / variance
        curve += max(1 / variance - 1 / few + 1 / many, 0.0)
        if draw:
            for i in range(start, start + near):
                counts[levels[t, i]] = slot_counts[i]
            if far > 0:
                _split(
                    levels[t], start + near, start + sizes[d], slot_counts[start + near], sums.counts[state],
                    tables.concentration, counts, work, rng,
                )  # fmt: skip
        start += sizes[d]
    return total, slope, curve


@bare
def _weigh(t, n, state, data, sums, tables, work, counts, draw, rng):
    """`_draw` with tilts and moments computed for n events, which are written to the first row of `work`."""
    _tilts(t, n, state, 0, data, sums, tables, work)
    return _draw(t, n, state, 0, data, sums, tables, work, counts, draw, rng)
