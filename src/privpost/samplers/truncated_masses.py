"""Probability that all levels of a Dirichlet law are at least a bound, for compiled chains; only they import it.

For x ~ Dirichlet(α) and A = Σα_i, it is the inverse Laplace transform of a product, exactly and for any c > 0:

    P(all x_i ≥ low) = Γ(A) / (2πi) ∫ e^z z^(−A) Π_i Q(α_i, low z) dz along z = c (1 + iθ)², θ from −∞ to ∞,

with Q the upper regularised incomplete gamma function. Gamma variables of shapes α_i, each beyond c low, have a sum of
mean A + Σh_i, h as in `beyond`. With c near this mean the integrand falls like a normal density, and the error of the
trapezoid rule is exponentially small. ln Q at the nodes comes from a table of polynomials in √α_i on short intervals.

Compared with exact sums for whole α (2 to 40 levels) and with incomplete beta functions, ln P is off by less than 1e-6
for bounds of at most a third of 1/levels, 2e-6 at half of it, 1e-5 at two thirds, and 1e-2 at 20/21.
"""

from __future__ import annotations

import math

import numpy as np

from privpost.samplers.compiled import bare, outer
from privpost.samplers.truncated_mass_table import (
    GRID,
    LAST,
    LEAST,
    NODES,
    PARTS,
    POINT,
    STRETCH,
    SUMS,
    TERMS,
    VARIANCE,
    WIDTH,
)

_PART = NODES + 1
# Chebyshev's points in [−1, 1], and the matrix that turns values there into coefficients of powers.
_POINTS = np.cos(np.pi * (np.arange(TERMS) + 0.5) / TERMS)
_POWERS = np.linalg.inv(np.vander(_POINTS, increasing=True))
# How far c may lie below the mean, in standard deviations: towards 0, where the integrand has a pole,
BELOW = 0.25
# and above the mean.
ABOVE = 1.25


@bare
def squared(w):
    """|w|²."""
    return w.real * w.real + w.imag * w.imag


@bare
def continued_fraction(alpha, w, c, close, most):
    """Lentz's continued fraction of Γ(α, w) / (w^α e^(−w)), real or complex as w and the large number c are.

    It ends when a step changes it by a share of less than `close`, or after `most` steps.
    """
    b = w + 1 - alpha
    d = 1 / b
    fraction = d
    for n in range(1, most):
        b += 2
        d = 1 / (n * (alpha - n) * d + b)
        c = b + n * (alpha - n) / c
        fraction *= c * d
        if squared(c * d - 1) < close**2:
            break
    return fraction


@bare
def beyond(alpha, t, log_density):
    """ln Q(α, t), and h = t^α e^(−t) / Γ(α, t), for t > 0 and α > 1: beyond t the gamma law has the mean α + h.

    `log_density` is ln of t^α e^(−t) / Γ(α), which is Q(α, t) h.
    """
    if t < alpha + 1:
        # Below the mean P(α, t) is at most twice this density: nothing is cut off.
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
    fraction = continued_fraction(alpha, t, 1e300, 1e-10, 1000)
    return log_density + math.log(fraction), 1 / fraction


@bare
def tail_of(alpha, t, log_t, log_gamma):
    """`beyond` for α ≥ 1."""
    return (-t, t) if alpha <= 1 else beyond(alpha, t, alpha * log_t - t - log_gamma)


@bare
def log_tail(alpha, w, log_w, log_gamma):
    """ln Q(α, w) for α ≥ 1 and complex w off the negative axis, given ln w and ln Γ(α); on any branch."""
    if alpha <= 1:
        return -w
    log_density = alpha * log_w - w - log_gamma
    density = np.exp(log_density)
    size = abs(w)
    # Left of the imaginary axis the continued fraction is slow for a small w, and the terms of the series cancel for a
    # large one.
    if size < alpha + 1 or (w.real < 0 and size < 6):
        term = 1 / alpha + 0j
        total, n = term, alpha
        while n < size or squared(term) > 1e-32 * squared(total):
            n += 1
            term *= complex(w.real / n, w.imag / n)
            total += term
        return np.log(1 - density * total)
    fraction = continued_fraction(alpha, w, 1e300 + 0j, 1e-13, 10_000)
    # A density below e^(−700) may be 0 as a float.
    return log_density + np.log(fraction) if log_density.real < -700 else np.log(density * fraction)


@bare
def place_of(grid, stretch):
    """c at a place of a grid with steps of less than √V, and the step of θ there; `stretch` is 2 log₂(c/V), rounded."""
    root = 0.36 * grid * 2.0 ** (-0.25 * stretch)
    c = root * root
    # With this step, what is cut off of a normal density of variance V equals the error of the trapezoid rule.
    return c, math.sqrt(math.pi / (2 * NODES * c * 2.0 ** (-0.5 * stretch)))


@bare
def row_of(kind, low, grid, stretch, part, tails):
    """Where the rows have the polynomials of ln Q and h on an interval of √α; for part −1, ln |z/c| and arg z.

    Args:
        kind, low: those of the field, see `Tails`.
        grid, stretch: as in `place_of`.
    """
    _, keys, places, rows = tails
    key = (((np.int64(kind) << 6 | stretch) << 20 | grid) << 20) + part + 1
    mask = len(places) - 1
    slot = np.int64((np.uint64(key) * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(20)) & mask
    while keys[slot] != key:
        if keys[slot] < 0:
            if keys[-1] == len(rows):
                keys[:] = -1
                keys[-1] = 0
            keys[slot], places[slot] = key, keys[-1]
            keys[-1] += 1
            fill_row(low, grid, stretch, part, rows[places[slot]])
            break
        slot = (slot + 1) & mask
    return places[slot]


@bare
def _middle(part, m):
    """α at one of Chebyshev's points of an interval of √α."""
    root = 1 + (part + 0.5 * (1 + _POINTS[m])) / PARTS
    return root * root


@bare
def fill_row(low, grid, stretch, part, row):
    """Write to `row` the coefficients of the polynomials of `row_of`, from values at Chebyshev's points."""
    c, step = place_of(grid, stretch)
    t, row[:] = c * low, 0.0
    if part < 0:
        for j in range(_PART):
            theta = j * step
            row[j], row[_PART + j] = math.log1p(theta * theta), 2 * math.atan(theta)
        return
    log_t = math.log(t)
    for m in range(TERMS):
        alpha = _middle(part, m)
        h = tail_of(alpha, t, log_t, math.lgamma(alpha))[1]
        for k in range(TERMS):
            row[k * WIDTH + WIDTH - 1] += _POWERS[k, m] * h
    for j in range(_PART):
        theta, angle = j * step, 0.0
        node = t * complex(1 - theta * theta, 2 * theta)
        log_node = complex(log_t + math.log1p(theta * theta), 2 * math.atan(theta))
        for m in range(TERMS):
            alpha = _middle(part, m)
            value = log_tail(alpha, node, log_node, math.lgamma(alpha))
            # The angles at all of Chebyshev's points must be on one branch of the logarithm; any branch will do.
            if m == 0:
                angle = value.imag
            angle = value.imag - 2 * math.pi * math.floor((value.imag - angle) / (2 * math.pi) + 0.5)
            for k in range(TERMS):
                row[k * WIDTH + j] += _POWERS[k, m] * value.real
                row[k * WIDTH + _PART + j] += _POWERS[k, m] * angle


@bare
def add_level(alpha, change, kind, low, point, tails):
    """Add a level's ln Q and h to a point, or subtract them if `change` is −1; return h.

    For an α of at least the bound in the point, next to nothing of the gamma law is cut off, so that nothing is added.
    """
    if alpha >= point[LEAST]:
        return 0.0
    grid, stretch = int(point[GRID]), int(point[STRETCH])
    if alpha < 1 + 1e-9:
        # An exponential law beyond t.
        c, step = place_of(grid, stretch)
        for j in range(_PART):
            theta = j * step
            point[SUMS + j] -= change * c * low * (1 - theta * theta)
            point[SUMS + _PART + j] -= change * c * low * 2 * theta
        point[LAST] += change * c * low
        return c * low
    rows = tails.rows
    part = (math.sqrt(alpha) - 1) * PARTS
    place, x = row_of(kind, low, grid, stretch, int(part), tails), 2 * (part - int(part)) - 1
    value = 0.0
    for j in range(WIDTH):
        value = rows[place, (TERMS - 1) * WIDTH + j]
        for k in range(TERMS - 2, -1, -1):
            value = value * x + rows[place, k * WIDTH + j]
        point[SUMS + j] += change * value
    return value


@bare
def gap_of(shapes, point):
    """How far c lies above the mean of the sum of gammas, in standard deviations of the sum."""
    c = place_of(int(point[GRID]), int(point[STRETCH]))[0]
    return (c - shapes - point[LAST]) / math.sqrt(point[VARIANCE])


@bare
def spread(alpha, h, t):
    """Variance of the gamma law beyond t."""
    return (alpha + 1) * (alpha + h) + t * h - (alpha + h) ** 2


@bare
def fill_point(alphas, shapes, kind, low, point, tails):
    """Place c near the mean by Newton's method, and sum the levels' rows.

    Args:
        alphas, shapes: α_i and their sum.
        point: place on the grid (0 for none yet), its stretch, the least α at which nothing is cut off, the variance V
            of the sum of gammas at c, and the sums of rows.
    """
    mean, variance = shapes / (1 - 0.5 * len(alphas) * low), shapes
    if point[GRID] > 0:
        mean, variance = shapes + point[LAST], point[VARIANCE]
    for _ in range(100):
        stretch = max(0, int(2 * math.log2(mean / variance) + 0.5))
        middle = 0.5 * (ABOVE - BELOW)
        grid = max(1, int(math.sqrt(mean + middle * math.sqrt(variance)) / 0.36 * 2.0 ** (0.25 * stretch) + 0.5))
        t = place_of(grid, stretch)[0] * low
        # By Bernstein's bound P(α, t) < e^(−32) for this α and larger ones.
        point[GRID], point[STRETCH], point[LEAST] = grid, stretch, t + 10.7 + math.sqrt(114 + 64 * t)
        point[SUMS:] = 0.0
        slope, variance = 0.0, 0.0
        for alpha in alphas:
            h = add_level(alpha, 1.0, kind, low, point, tails)
            slope += h * (alpha + h - t) / t
            variance += spread(alpha, h, t)
        point[VARIANCE] = variance
        gap = gap_of(shapes, point)
        fits = abs(2 * math.log2(t / low / variance) - stretch) < 1
        if fits and -BELOW < gap < ABOVE:
            break
        mean = t / low - gap * math.sqrt(variance) / (1 - low * slope)


@bare
def mass_at(shapes, log_gamma, kind, low, point, tails):
    """ln P from the sums of `fill_point`; `log_gamma` is ln Γ(A)."""
    grid, stretch = int(point[GRID]), int(point[STRETCH])
    c, step = place_of(grid, stretch)
    node = tails.rows[row_of(kind, low, grid, stretch, -1, tails)]
    total = 0.5
    for j in range(1, _PART):
        theta = j * step
        size = -c * theta * theta - shapes * node[j] + point[SUMS + j] - point[SUMS]
        if size > -40:
            angle = 2 * c * theta - shapes * node[_PART + j] + point[SUMS + _PART + j]
            total += math.exp(size) * (math.cos(angle) - theta * math.sin(angle))
    return c - shapes * math.log(c) + log_gamma + point[SUMS] + math.log(2 * c * step / math.pi * total)


@bare
def log_masses(sums, entries, masses, points):
    """Write ln P of each field of one state to `masses` (fields,), with `points` as in `fill_point` (fields, …).

    `sums` (entries, 2) has totals and their ln Γ, of all levels and then of all fields, as in `collapsed_sweep`.
    """
    bounds, lows, tails = entries.bounds, entries.lows, entries.tails
    for d in range(len(lows)):
        if lows[d] > 0:
            i = bounds[-1] + d
            levels = sums[bounds[d] : bounds[d + 1], 0]
            fill_point(levels, sums[i, 0], tails.kinds[d], lows[d], points[d], tails)
            masses[d] = mass_at(sums[i, 0], sums[i, 1], tails.kinds[d], lows[d], points[d], tails)


@outer()
def truncation_masses(sums, entries):
    """Sum of `log_masses` over the states of each chain, shape (chains,); `sums` (chains, K, entries, 2)."""
    lows, totals = entries.lows, np.zeros(len(sums))
    for c in range(len(sums)):
        for k in range(sums.shape[1]):
            masses = np.zeros(len(lows))
            log_masses(sums[c, k], entries, masses, np.zeros((len(lows), POINT)))
            totals[c] += masses.sum()
    return totals


@bare
def change_masses(span, index, entries, before, sums, masses, points):
    """Update the `log_masses` of a state after a change in the levels of one cell only.

    Args:
        span, index: where the cell's entries begin and end, and the levels of entries.
        before, sums: the state's sums before the change and after it.
    """
    bounds, lows, tails, d = entries.bounds, entries.lows, entries.tails, 0
    for j in range(span[0], span[1]):
        i = index[j]
        if i >= bounds[-1]:
            break
        while i >= bounds[d + 1]:
            d += 1
        if lows[d] > 0:
            add_level(before[i, 0], -1.0, tails.kinds[d], lows[d], points[d], tails)
            add_level(sums[i, 0], 1.0, tails.kinds[d], lows[d], points[d], tails)
    for d in range(len(lows)):
        if lows[d] > 0:
            i = bounds[-1] + d
            if not -BELOW < gap_of(sums[i, 0], points[d]) < ABOVE:
                levels = sums[bounds[d] : bounds[d + 1], 0]
                fill_point(levels, sums[i, 0], tails.kinds[d], lows[d], points[d], tails)
            masses[d] = mass_at(sums[i, 0], sums[i, 1], tails.kinds[d], lows[d], points[d], tails)
