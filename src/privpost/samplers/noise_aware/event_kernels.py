"""Compiled loops of `event_counts`: the law of a noisy count, and the sweeps of chains."""

from __future__ import annotations

import math

import numpy as np

from privpost.samplers.compiled import bare, inner, outer
from privpost.samplers.incomplete_gamma import continued_fraction, series

CLOSE = 1e-13
# Random walks of the rates, and rounds of exchanges, in a sweep.
WALKS, ROUNDS = 3, 6


@bare
def sides(a, mu, s):
    """Return A, dA/dμ, B and dB/dμ for C ~ Poisson(μ) and a ≥ 1.

    A is ln E[e^(C/s); C < a], and B is ln E[e^(−C/s); C ≥ a] − a ln μ.
    """
    log_mu, gamma, up, down = math.log(mu), math.lgamma(a), math.expm1(1 / s), math.expm1(-1 / s)
    log_density, x, y = a * log_mu - mu - gamma, mu * (1 + up), mu * (1 + down)
    # A continued fraction and a series give tails of the Poisson law that would underflow.
    if x < a + 1:
        below = mu * up + math.log1p(-math.exp(log_density + a / s - mu * up) * series(a, x, CLOSE))
    else:
        below = log_density + a / s + math.log(continued_fraction(a, x, CLOSE))
    slope_below = up - math.exp(log_density + a / s - below) / mu
    if y < a + 1:
        total = series(a, y, CLOSE)
        above = math.log(total) - mu - gamma - a / s
        slope_above = (1 + down) * (1 - series(a + 1, y, CLOSE) / total) - 1
    else:
        rest = math.log1p(-math.exp(log_density - a / s - mu * down) * continued_fraction(a, y, CLOSE))
        above = mu * down - a * log_mu + rest
        slope_above = down - a / mu + math.exp(log_density - a / s - above - a * log_mu) / mu
    return below, slope_below, above, slope_above


@bare
def fit(noisy, mu, law):
    """Return the density 2s p(noisy | μ) as two factors, the first as a logarithm and the second in [1, 2].

    The noisy count is Poisson(μ), μ > 0, plus Laplace noise of scale s. `law` holds s, c = e^(−1/s), the number of
    nodes per unit of √(μ + c), and a table (counts, nodes, 4) of `sides`. Nodes are filled when needed, and cubics
    interpolate.
    """
    s, c, per_unit, table = law
    if noisy < 0:
        return noisy / s + mu * (c - 1), 1.0
    k, place = int(noisy), (math.sqrt(mu + c) - math.sqrt(c)) * per_unit
    j = int(place)
    if j + 1 < table.shape[1]:
        row, t, rest = table[k], place - j, 1 - place + j
        for i in (j, j + 1):
            # An empty node holds 0.
            if row[i, 2] == 0.0:
                root = math.sqrt(c) + i / per_unit
                step, values = 2 * root / per_unit, sides(k + 1.0, max(root * root - c, 1e-12), s)
                row[i, 0], row[i, 1], row[i, 2], row[i, 3] = values[0], step * values[1], values[2], step * values[3]
        begin, end, slope, other = rest * rest * (1 + 2 * t), t * t * (3 - 2 * t), rest * rest * t, -t * t * rest
        below = begin * row[j, 0] + end * row[j + 1, 0] + slope * row[j, 1] + other * row[j + 1, 1]
        above = begin * row[j, 2] + end * row[j + 1, 2] + slope * row[j, 3] + other * row[j + 1, 3]
    else:
        below, _, above, _ = sides(k + 1.0, mu, s)
    low, high = below - noisy / s, above + (k + 1) * math.log(mu) + noisy / s
    return max(low, high), 1.0 if abs(low - high) > 40 else 1 + math.exp(-abs(low - high))


@bare
def _total(noisy, cells, begin, end, rates, phi, law):
    """Return the log-likelihood of cells that share one state, over the levels `begin` to `end` − 1."""
    total, product = 0.0, 1.0
    for c in cells:
        for v in range(begin, end):
            log_factor, factor = fit(noisy[c, v], rates[c] * phi[v], law)
            total += log_factor
            product *= factor
            # One logarithm of many factors takes less time than a logarithm of each factor.
            if product > 1e300:
                total, product = total + math.log(product), 1.0
    return total + math.log(product)


@bare
def walk(noisy, cell, rates, phi, width, mean, law, rng):
    """Update the rate of one cell by random walks, under an exponential prior with mean `mean`."""
    c = cell[0]
    now = _total(noisy, cell, 0, len(phi), rates, phi, law)
    for _ in range(WALKS):
        old, step = rates[c], width * (0.3 if rng.random() < 0.5 else 1.0) * rng.standard_normal()
        rates[c] = old * math.exp(step)
        new = _total(noisy, cell, 0, len(phi), rates, phi, law)
        if -rng.standard_exponential() < new - now - (rates[c] - old) / mean + step:
            now = new
        else:
            rates[c] = old


@inner
def exchange(noisy, cells, rates, phi, begin, end, emission, law, rng):
    """Update the probabilities of one field in one state by exchanges between random pairs of levels.

    If the state has no cells, the probabilities are drawn from the prior.
    """
    if not len(cells):
        for v in range(begin, end):
            phi[v] = max(rng.standard_gamma(emission), 1e-300)
        phi[begin:end] /= phi[begin:end].sum()
        return
    noise, rate, order = 2 * law[0] ** 2, rates[cells].mean(), np.arange(begin, end)
    scores = np.array([_total(noisy, cells, v, v + 1, rates, phi, law) for v in range(begin, end)])
    for _ in range(ROUNDS):
        rng.shuffle(order)
        for i in range(0, len(order) - 1, 2):
            u, v, old, other = order[i], order[i + 1], phi[order[i]], phi[order[i + 1]]
            width = math.sqrt((noise + rate * (old + other)) / len(cells)) / rate
            part = width * 10 ** (1.7 * rng.random() - 1.5) * rng.standard_normal()
            if not -old < part < other:
                continue
            phi[u], phi[v] = old + part, other - part
            new = _total(noisy, cells, u, u + 1, rates, phi, law), _total(noisy, cells, v, v + 1, rates, phi, law)
            gain = new[0] + new[1] - scores[u - begin] - scores[v - begin]
            if -rng.standard_exponential() < gain + (emission - 1) * math.log(phi[u] / old * (phi[v] / other)):
                scores[u - begin], scores[v - begin] = new
            else:
                phi[u], phi[v] = old, other


@inner
def draw_states(noisy, observed, first, states, rates, phi, moves, transition, law, rng):
    """Draw transitions, then states by forward filtering and backward sampling, and update `states` and `moves`."""
    n_cells, n_states = len(states), len(phi)
    cells, steps, filtered = np.arange(n_cells), np.empty((n_states, n_states)), np.empty((n_cells, n_states))
    for k in range(n_states):
        for after in range(n_states):
            steps[k, after] = rng.standard_gamma(transition + moves[k, after]) + 1e-300
        steps[k] /= steps[k].sum()
    for t in range(n_cells):
        for k in range(n_states):
            before = 1 / n_states if first[t] else (filtered[t - 1] * steps[:, k]).sum()
            filtered[t, k] = math.log(before + 1e-300)
            if observed[t]:
                filtered[t, k] += _total(noisy, cells[t : t + 1], 0, noisy.shape[1], rates, phi[k], law)
        filtered[t] = np.exp(filtered[t] - filtered[t].max())
    moves[:] = 0
    for t in range(n_cells - 1, -1, -1):
        ends = t == n_cells - 1 or first[t + 1]
        weights = np.cumsum(filtered[t] if ends else filtered[t] * steps[:, states[t + 1]])
        states[t] = min(np.searchsorted(weights, rng.random() * weights[-1]), n_states - 1)
        if not ends:
            moves[states[t], states[t + 1]] += 1


@outer(seconds=20)
def sweeps(noisy, observed, first, states, rates, phi, moves, bounds, widths, settings, law, rng):
    """Run one sweep of each chain in place.

    Arrays are as in `NoisyCounts`, `Layout` and `gibbs.State`. `widths` (chains, cells) are the widths of the
    random walks of log rates. Field d has the levels from `bounds[d]` to `bounds[d + 1]` − 1. `settings` holds the
    prior mean of the rates and the concentrations of transitions and of emissions. `law` is as in `fit`.
    """
    mean, transition, emission = settings
    for chain in range(len(noisy)):
        own, path, rate, shares = noisy[chain], states[:, chain], rates[chain], phi[chain]
        cells = np.flatnonzero(observed[chain])
        for i in range(len(cells)):
            walk(own, cells[i : i + 1], rate, shares[path[cells[i]]], widths[chain, cells[i]], mean, law, rng)
        for k in range(len(shares)):
            of_state = cells[path[cells] == k]
            for d in range(len(bounds) - 1):
                exchange(own, of_state, rate, shares[k], bounds[d], bounds[d + 1], emission, law, rng)
        draw_states(own, observed[chain], first, path, rate, shares, moves[:, :, chain], transition, law, rng)
