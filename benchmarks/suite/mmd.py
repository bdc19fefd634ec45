"""Times of two estimates of MMD² between samples of 5000 draws (Bernstein and Sheldon 2018)."""

from __future__ import annotations

import numpy as np
from timing import row, side_by_side

from privpost.evaluation.mmd import mmd2

NAME = "mmd"
DRAWS = 5000


def double_sum(p, q) -> float:
    """Return the estimate of MMD² between draws p (m,) and q (m,), as a sum over all pairs of draws."""
    kernel = [np.exp(-((a[:, None] - b) ** 2) / 2) for a, b in ((p, p), (q, q), (p, q))]
    within = sum(k.sum() - np.trace(k) for k in kernel[:2])
    return (within - 2 * (kernel[2].sum() - np.trace(kernel[2]))) / (len(p) * (len(p) - 1))


def run() -> list[dict]:
    """Measure the times of both estimates, and the difference between the estimates."""
    rng = np.random.default_rng(4)
    p, q = rng.beta(30, 40, DRAWS), rng.beta(33, 40, DRAWS)
    fast, slow = mmd2(p, q), double_sum(p, q)
    ours, theirs = side_by_side([lambda: mmd2(p, q), lambda: double_sum(p, q)], calls=[20, 1], repeats=3)
    what, against = f"MMD², {DRAWS} draws", "double sum over all pairs"
    return [
        row(what, against, theirs / ours, ours=1e3 * ours, theirs=1e3 * theirs, unit="ms"),
        row(f"error of MMD², {DRAWS} draws", against, abs(float(fast) - slow), note=f"MMD² {slow:.4g}"),
    ]
