"""One draw from the posterior of linear regression truncated to a ball."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from privpost.models.linear_regression import Moments, posterior
from privpost.privacy.accounting import Cost
from privpost.samplers import gaussian_in_ball


class Release(NamedTuple):
    """The released weights (d,), and the acceptance of the proposals that gave them."""

    weights: np.ndarray
    acceptance: float


def cost(radius: float, feature_bound: float, label_bound: float, noise_variance: float) -> Cost:
    """2L-DP with L = (Y + RX)²/(2σ²), for ‖w‖ ≤ R, public bounds |y| ≤ Y and ‖x‖ ≤ X, and a substituted record.

    A record's log-likelihood −(y − xᵀw)²/(2σ²) lies in [−L, 0] for every w of the ball, so that it changes by at most
    L, and the posterior by 2L (Zhang et al. 2016, theorem 4 (1); the constant is ours, their full report has it).

    Raises:
        ValueError: an argument that is not positive and finite.
    """
    arguments = {"radius": radius, "feature_bound": feature_bound, "label_bound": label_bound}
    for name, value in {**arguments, "noise_variance": noise_variance}.items():
        if not 0 < value < np.inf:
            raise ValueError(f"{name} is {value!r}; it must be > 0 and finite")
    return Cost("pure", (label_bound + radius * feature_bound) ** 2 / noise_variance)


def release(
    moments: Moments, prior_precision: float, noise_variance: float, radius: float, rng: np.random.Generator
) -> Release:
    """One exact draw of w from its posterior under the prior N(0, I/b) truncated to ‖w‖ ≤ radius.

    Raises:
        ValueError: an argument that is not positive and finite.
    """
    mean, precision = posterior(moments, prior_precision, noise_variance)
    drawn = gaussian_in_ball.sample(mean, precision, radius, 1, rng)
    return Release(drawn.draws[0], drawn.acceptance)
