"""Compiled steps of algorithm 1 of Bernstein and Sheldon (2018)."""

import math

import numpy as np

from privpost.samplers.compiled import inner, outer


@inner
def variance_of(residual, scale, rng):
    """Draw the noise variance σ² given one residual r, from the law in `noise_aware.gibbs.noise_variance`.

    Michael, Schucany and Haas (1976) choose between two roots. With the scale b of the noise and a standard normal ν,
    let e = |r|/b, h = ν²/2 and R = e + h + √(h(h + 2e)). Then σ² is b²R with probability R/(R + e), and b²e²/R
    otherwise.
    """
    distance = abs(residual) / scale
    half = rng.standard_normal()
    half *= 0.5 * half
    root = distance + half + math.sqrt(half * (half + 2 * distance))
    if rng.random() * (root + distance) > root:
        return scale * scale * distance * (distance / root)
    return scale * scale * root


@outer()
def noise_variances(residual, scale, variance, rng):
    """Draw a noise variance for each residual (k,) and scale (k,), and write the variances to `variance` (k,)."""
    for k in range(len(residual)):
        variance[k] = variance_of(residual[k], scale[k], rng)


@outer()
def draw_counts(theta, release, variance, n, scale, rounds, statistic, rng):
    """Draw the counts of all categories, then the noise variances, and return the number of rejections.

    The counts are independent normals with precisions 1/(nθ_j) + 1/σ_j², conditioned on the sum n. Normals are drawn
    without this condition, then shifted in proportion to the variances. A trial that never draws counts in [0, n] keeps
    its old counts, which leaves the conditional law invariant.

    Args:
        theta, release: probabilities θ and noisy counts y, shape (categories, trials).
        variance: noise variances σ², shape (categories, trials), overwritten.
        n, scale: public number of records, and scale Δ/ε of the noise.
        rounds: largest number of rounds of rejection after the first round.
        statistic: counts, shape (categories, trials), overwritten.
    """
    size, rejected = len(theta), 0
    spread, centre, drawn = np.empty(size), np.empty(size), np.empty(size)
    for t in range(theta.shape[1]):
        total = 0.0
        for j in range(size):
            mean = n * theta[j, t]
            spread[j] = mean / (1 + mean / variance[j, t])
            centre[j] = spread[j] * (1 + release[j, t] / variance[j, t])
            total += spread[j]
        for _ in range(rounds + 1):
            left, valid = float(n), True
            for j in range(size):
                drawn[j] = centre[j] + math.sqrt(spread[j]) * rng.standard_normal()
                left -= drawn[j]
            for j in range(size):
                drawn[j] += spread[j] / total * left
                valid &= 0 <= drawn[j] <= n
            if valid:
                for j in range(size):
                    statistic[j, t] = drawn[j]
                break
            rejected += 1
        for j in range(size):
            variance[j, t] = variance_of(release[j, t] - statistic[j, t], scale, rng)
    return rejected


@outer()
def multiply_normals(mean, covariance, observed, variance, factor):
    """Compute `noise_aware.gibbs.normal_product` in place, and write the results to `mean` and `factor`.

    When called, `mean` (q, trials) holds the first law's mean. `factor` (q, q, trials) must be 0 above the diagonal.
    """
    size, trials = mean.shape
    matrix, gain, row = np.empty((size, size)), np.empty(size), np.empty(size)
    for t in range(trials):
        for i in range(size):
            for k in range(size):
                matrix[i, k] = covariance[i, k, t]
        for j in range(size):
            spread, gap = matrix[j, j] + variance[j, t], observed[j, t] - mean[j, t]
            for i in range(size):
                gain[i], row[i] = matrix[i, j] / spread, matrix[j, i]
                mean[i, t] += gain[i] * gap
            for i in range(size):
                for k in range(size):
                    matrix[i, k] -= gain[i] * row[k]
        for j in range(size):
            # If the other coordinates fix this coordinate, rounding can take the variance below 0.
            sd = math.sqrt(matrix[j, j]) if matrix[j, j] > 0 else math.inf
            for i in range(j, size):
                factor[i, j, t] = gain[i] = matrix[i, j] / sd
            for i in range(j, size):
                for k in range(j, i + 1):
                    matrix[i, k] -= gain[i] * gain[k]
