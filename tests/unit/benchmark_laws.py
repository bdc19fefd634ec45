"""What tests of the benchmark share: moments of a law on a grid, and draws that have them."""

from __future__ import annotations

import math

import numpy as np

CLAMPED = "normal_unknown_variance", [0, 4, 6, 6]


def moments(theta, weight) -> tuple[float, float]:
    """Return mean and standard deviation of θ by weights on a grid."""
    mean = np.average(theta, weights=weight)
    return mean, math.sqrt(np.average((theta - mean) ** 2, weights=weight))


def check_draws(drawn, mean: float, sd: float) -> None:
    """Draws have a mean and a standard deviation: within 5 standard errors, 1/√N and about 1/√(2N) of the sd."""
    assert abs(drawn.mean() - mean) < 5 * sd / math.sqrt(drawn.size)
    assert abs(drawn.std() - sd) < 5 * sd / math.sqrt(drawn.size)
