"""Compiled steps of Algorithm 1 of Bernstein and Sheldon (2018): variances of noise, counts, products of normal laws.

Imported only where chains are run.
"""

import math

import numpy as np

from privpost.samplers.compiled import inner, outer


@inner
def variance_of(residual, scale, rng):
    """Draw the noise's variance given one residual, as `noise_aware.gibbs.noise_variance` does.

    The sampler of Michael, Schucany and Haas (1976) chooses between two roots, written here for σ² and without
    cancellation. Let e = |r|/b, h = ν²/2 for a standard normal ν, and R = e + h + √(h(h + 2e)). The roots are b²R,
    chosen with probability R/(R + e), and b²e²/R.
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
    """Draw the noise's variance for each residual (k,) and scale (k,), and write the variances to `variance` (k,)."""
    for k in range(len(residual)):
        variance[k] = variance_of(residual[k], scale[k], rng)


@outer()
def draw_counts(theta, release, variance, n, scale, rounds, statistic, rng):
    """Draw all categories' counts, then the noise's variances given the counts; return the number of rejections.

    N(nθ, n(diag θ − θθᵀ)) is the law of independent N(nθ_j, nθ_j) given that the sum is n. The product of this law with
    N(y, diag σ²) is the law of independent normals with precisions 1/(nθ_j) + 1/σ_j², given the same sum. The normals
    are drawn without this constraint, then shifted in proportion to their variances to sum to n. A trial without valid
    counts after the first round and `rounds` more keeps its old counts, which leaves the conditional law invariant.

    Args:
        theta, release: θ and y, shape (categories, trials).
        variance: σ², shape (categories, trials), overwritten.
        n: public number of records.
        scale: Δ/ε.
        rounds: largest number of rounds of rejection after the first one.
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
    """Multiply normal laws in place, trial by trial; arguments and results as for `noise_aware.gibbs.normal_product`.

    `mean` (q, trials) is overwritten, and so is `factor` (q, q, trials), which must be 0 above the diagonal.
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
