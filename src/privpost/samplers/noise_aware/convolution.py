"""Compiled convolution of laws of counts with Laplace weights."""

import math

import numpy as np

from privpost.samplers.compiled import outer


@outer(seconds=5)
def convolved(laws, releases, scale):
    """Return each law (n + 1,) convolved with Laplace weights around its own release y, up to a factor.

    With the scale s, entry m = 0..n of the convolution is Σ_c law[m − c] exp(−|y − c|/s). A law takes O(n) operations.
    """
    products, n, decay = np.zeros_like(laws), laws.shape[1] - 1, math.exp(-1 / scale)
    for row in range(len(laws)):
        y, out = releases[row], products[row]
        # Number of counts that are at most y.
        below = min(max(math.floor(y) + 1, 0), n + 1)
        # The weights of counts above y form a geometric series.
        weight, total = 1.0 if below == 0 else math.exp((y - below) / scale), 0.0
        for m in range(below, n + 1):
            total = decay * total + laws[row, m - below]
            out[m] = weight * total
        if below == 0:
            continue
        # The weights of counts below y form a series of fixed length. Each sum is put together from two blocks.
        weight = 1.0 if below == n + 1 else math.exp((below - 1 - y) / scale)
        padded, tails = np.zeros(n + below), np.empty(below)
        padded[below - 1 :] = laws[row]
        for start in range(0, n + 1, below):
            total, head, power = 0.0, 0.0, 1.0
            for j in range(below - 1, -1, -1):
                total = padded[start + j] + decay * total
                tails[j] = total
            for j in range(min(below, n + 1 - start)):
                if j > 0:
                    head += power * padded[start + j + below - 1]
                    power *= decay
                out[start + j] += weight * (tails[j] + math.exp((j - below) / scale) * head)
    return products
