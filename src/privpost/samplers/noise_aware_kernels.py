"""Compiled tilts of the noise-aware hidden Markov model: estimates of a state's odds given a cell's noisy counts.

Only code that runs chains imports this module. Emissions and transitions are integrated out. Given a cell's state k and
number of events n, a field's counts C are Dirichlet-multinomial; given the noisy release y too, for any θ,

    p(C | n, k, y) ∝ Π_i w_i(C_i) 1[Σ C_i = n],   w_i(c) = Γ(α_i + c)/(Γ(α_i) c!) e^(θc) e^(−|y_i − c|/s),

with α_i the count of level i in the state's other cells, plus b. The w of a level whose release is not above 0 has no
kink. All such levels are merged into one, whose α is the sum of theirs; given its count, their counts are
Dirichlet-multinomial. A field's *slots* are its levels with a release above 0, then the merged level if there is one.
θ is such that the means of w sum to about n. Σ C_i is treated as normal (`noise_aware_proposals` corrects for that).
"""

import math

import numpy as np

from privpost.samplers.compiled import bare
from privpost.samplers.noise_aware_parts import Moments

# A level's moments leave out weights below this share of the largest one.
_ROUGH = 1e-6
# Largest number of Newton steps.
_STEPS = 3


# Loops instead of array expressions, and below np.int64(0) instead of 0: each compiles in a fraction of the time.


@bare
def _add(target, source, sign):
    for i in range(len(target)):
        target[i] += sign * source[i]


@bare
def _copy(source, target):
    for i in range(len(target)):
        target[i] = source[i]


@bare
def _growth(c, a, y, crossing, factors, inverse):
    """w(c + 1)/w(c); `factors` are e^(θ + 1/s), e^θ and e^(θ − 1/s)."""
    ratio = (a + c) * inverse[c + 1]
    if c >= y:
        return ratio * factors[2]
    if c + 1 <= y:
        return ratio * factors[0]
    return ratio * factors[1] * crossing


@bare
def _mode(a, y, n, factors):
    """The count c at which w is largest, for α ≥ 1; for a smaller α a count near it."""
    if factors[0] < 1:
        place = (a * factors[0] - 1) / (1 - factors[0])
        below = math.floor(place) + 1 if place >= 0 else 0
        if below <= y:
            return min(int(below), n)
    above = 0
    if factors[2] < 1:
        place = (a * factors[2] - 1) / (1 - factors[2])
        if place >= 0:
            above = min(math.floor(place), n) + 1
    return min(int(max(above, math.floor(y), 0)), n)


@bare
def _factors(theta, scale):
    return math.exp(theta + 1 / scale), math.exp(theta), math.exp(theta - 1 / scale)


@bare
def _moments(first, near, far, y, crossing, n, theta, scale, tables, moments):
    """Return ln Σ_c w(c), summed over a field's slots; write each slot's mean, variance, start and Σ w/w(start)."""
    log_gammas, log_factorials, inverse, b = tables
    factors = _factors(theta, scale)
    alphas, means, variances, masses, starts = moments
    total, product, precision = 0.0, 1.0, 1 / scale
    for i in range(first, first + near):
        a, release = alphas[i], y[i]
        start = _mode(a, release, n, factors)
        mass, one, two = 1.0, 0.0, 0.0
        w, c, d = 1.0, start, 0.0
        while c < n:
            w *= _growth(c, a, release, crossing[i], factors, inverse)
            if w < _ROUGH:
                break
            c += 1
            d += 1.0
            mass += w
            one += w * d
            two += w * d * d
        w, c, d = 1.0, start, 0.0
        while c > 0:
            w *= 1 / _growth(c - 1, a, release, crossing[i], factors, inverse)
            if w < _ROUGH:
                break
            c -= 1
            d += 1.0
            mass += w
            one -= w * d
            two += w * d * d
        starts[i], masses[i] = start, mass
        share = 1 / mass
        one *= share
        means[i] = start + one
        variances[i] = two * share - one * one
        if start > 0:
            whole = int(a - b + 0.5)
            total += log_gammas[whole + start] - log_gammas[whole] - log_factorials[start] + theta * start
        total -= abs(release - start) * precision
        product *= mass
        if product > 1e200:
            total += math.log(product)
            product = 1.0
    if far > 0:
        i, odds = first + near, factors[2] / (1 - factors[2])
        starts[i], masses[i] = _mode(alphas[i], 0.0, n, factors), math.nan
        means[i], variances[i] = alphas[i] * odds, alphas[i] * odds * (1 + odds)
        total += alphas[i] * math.log1p(odds)
    return total + math.log(product)


@bare
def _untilted(n, total):
    """The θ at which the means sum to about n without noise; `total` is the sum of the levels' α."""
    return math.log((n + 0.5) / (n + total))


@bare
def _tilt(first, near, far, y, crossing, n, state_total, offset, scale, tables, moments):
    """Return a field's θ, and an estimate of the log of p(n, k, y) = Σ_C p(C | n, k) e^(−Σ|y − C|/s).

    Newton's method starts at the θ without noise plus `offset`. `near` is the number of levels with a release above 0,
    `far` the number of other levels.
    """
    means, variances = moments.means, moments.variances
    total = state_total + tables.concentration * (near + far)
    theta = min(_untilted(n, total) + offset, 0.9 / scale)
    for step in range(_STEPS):
        logs = _moments(first, near, far, y, crossing, n, theta, scale, tables, moments)
        mean, variance = 0.0, 1e-12
        for i in range(first, first + near + (far > 0)):
            mean += means[i]
            variance += variances[i]
        short = n - mean
        if step == _STEPS - 1 or short * short < variance:
            break
        # w has a finite sum only below 1/s: a step goes at most half of the way there.
        theta += min(max(short / variance, -1.0), 0.5 * (1 / scale - theta))
    logs -= theta * n + 0.5 * math.log(2 * math.pi * variance) + 0.5 * short * short / variance
    logs += math.lgamma(total) + tables.log_factorials[n] - math.lgamma(total + n)
    return theta, logs


@bare
def _row(work, row):
    """Views of the moments in one row of `work`, for all slots."""
    moments = work.moments
    return Moments(
        moments.alphas[row], moments.means[row], moments.variances[row], moments.masses[row], moments.starts[row]
    )


@bare
def _tilts(t, n, state, row, data, sums, tables, work):
    """Estimate ln p(n, y) of a cell with n events in a state; write the fields' tilts and moments to `work`'s `row`."""
    (levels, nears, y, crossing), scale, sizes, offsets = data.slots, data.scale, data.sizes, data.offsets
    alphas, counts, start, total = work.moments.alphas[row], sums.counts[state], np.int64(0), 0.0
    for d in range(len(sizes)):
        near, end = nears[t, d], start + sizes[d]
        for i in range(start, start + near):
            alphas[i] = counts[levels[t, i]] + tables.concentration
        if start + near < end:
            others = tables.concentration * (end - start - near)
            for i in range(start + near, end):
                others += counts[levels[t, i]]
            alphas[start + near] = others
        work.thetas[row, d], estimate = _tilt(
            start, near, sizes[d] - near, y[t], crossing[t], n, sums.events[state], offsets[t, d], scale, tables,
            _row(work, row),
        )  # fmt: skip
        total += estimate
        start = end
    return total


@bare
def _remember(t, n, state, data, sums, tables, work):
    """Store a cell's tilts; later searches for them start there."""
    for d in range(len(data.sizes)):
        data.offsets[t, d] = work.thetas[state, d] - _untilted(
            n, sums.events[state] + tables.concentration * data.sizes[d]
        )


@bare
def _estimate(t, n, old, free, power, data, sums, tables, work, estimates):
    """Estimate ln p(n, release of cell t | state) for all states, or for the old one only if states are not `free`.

    Writes θ, moments, and the states' log-weights times `power` to `work`.
    """
    state_totals = sums.events
    logs, site = work.logs, work.site
    empty = -1
    for k in range(len(estimates)):
        logs[k] = -math.inf
        if not (free or k == old):
            continue
        if state_totals[k] == 0 and empty >= 0:
            # All states without events are alike.
            moments = work.moments
            for part in (moments.alphas, moments.means, moments.variances, moments.masses, work.thetas):
                _copy(part[empty], part[k])
            _copy(moments.starts[empty], moments.starts[k])
            estimates[k] = estimates[empty]
        else:
            estimates[k] = _tilts(t, n, k, k, data, sums, tables, work)
            if state_totals[k] == 0:
                empty = k
        logs[k] = power * (estimates[k] + math.log(site[k]))
