"""Exact draws from the posterior of a logistic regression on a ball that cuts into the posterior's mass.

Proposals come from the posterior under a stronger prior, with precision nβ + λ instead of nβ (`logistic.exact`). A
proposal in the ball ‖w‖ ≤ R is accepted with probability exp(λ(‖w‖² − R²)/2). Draws are exact for every λ ≥ 0.
Laplace's method chooses λ such that E‖w‖² is about R².
"""

from dataclasses import dataclass, fields, replace

import numpy as np

from privpost.distributions import gaussian_in_ball
from privpost.models.regression.logistic import LogisticPosterior
from privpost.samplers.logistic import exact

# Fewest and most proposals at once.
_FEWEST = 64
_MOST = 1 << 12
# Largest number of repetitions of the search for λ.
_ROUNDS = 4
# Factor by which the mean of ‖w‖² must exceed R² for another search.
_MISS = 1.05
EXACT = True


@dataclass(frozen=True)
class InBall(exact.Envelope):
    """The envelope of a posterior under a stronger prior, for draws from the posterior on a ball.

    Attributes:
        tilt: precision λ that the stronger prior adds.
        radius: radius R of the ball.
    """

    tilt: float
    radius: float


def envelope(posterior: LogisticPosterior, start: InBall | None = None) -> InBall:
    """Return the proposals for a posterior on a ball, where `start` gives the first guess of the mode.

    Raises:
        RuntimeError: the mode is not found.
    """
    mode = posterior.at_mode(None if start is None else start.mode)
    tilt = _tilt(mode.mean, mode.factor @ mode.factor.T, posterior.radius)
    around = exact.envelope(_tilted(posterior, tilt), start)
    for _ in range(_ROUNDS):
        centre, precision = around.mode.mean, around.mode.factor @ around.mode.factor.T
        if tilt == 0 or centre @ centre + np.trace(np.linalg.inv(precision)) <= _MISS * posterior.radius**2:
            break
        # If the ball lies deep in the tail, the curvature in the ball differs from the curvature at the untilted mode.
        # So λ is found for a normal law that is fitted at the tilted mode.
        untilted = precision - tilt * np.eye(len(centre))
        tilt = _tilt(centre + tilt * np.linalg.solve(untilted, centre), untilted, posterior.radius)
        around = exact.envelope(_tilted(posterior, tilt), around)
    attributes = {entry.name: getattr(around, entry.name) for entry in fields(exact.Envelope)}
    return InBall(**attributes, tilt=tilt, radius=posterior.radius)


def _tilted(posterior: LogisticPosterior, tilt: float) -> LogisticPosterior:
    """Return the posterior under the stronger prior, without the ball."""
    return replace(posterior, prior_precision=posterior.prior_precision + tilt, radius=None)


def _tilt(mean: np.ndarray, precision: np.ndarray, radius: float) -> float:
    """Return the least λ ≥ 0 at which N(mean, precision⁻¹) times exp(−λ‖w‖²/2) has E‖w‖² ≤ R²."""
    values, vectors = np.linalg.eigh(precision)
    return gaussian_in_ball.tilt(vectors.T @ mean, values, radius)


def sample(around: InBall, size: int, rng: np.random.Generator) -> tuple[np.ndarray, float]:
    """Return draws (size, d), and the number of proposals per accepted proposal.

    Raises:
        ValueError: size < 1.
        ArithmeticError: a log-acceptance above 0.
    """
    if size < 1:
        raise ValueError(f"size is {size!r}; it must be >= 1")
    drawn, accepted, proposed = [], 0, 0
    while accepted < size:
        number = min(_MOST, 2 * (size - accepted) * max(1, proposed) // max(1, accepted) + _FEWEST)
        drawn.append(_accepted(around, number, rng))
        accepted, proposed = accepted + len(drawn[-1]), proposed + number
    return np.concatenate(drawn)[:size], proposed / accepted


def _accepted(around: InBall, number: int, rng) -> np.ndarray:
    """Make `number` proposals and return the accepted proposals."""
    uniforms = rng.random((number, 5))
    steps, exponents, shells = around.steps(rng.standard_normal((number, around.law.dimension)), uniforms[:, :3])
    weights = around.mode.mean + steps
    excess = np.einsum("kd,kd->k", weights, weights) - around.radius**2
    # The ball is checked first, because this check reads no records.
    inside = np.flatnonzero((excess <= 0) & (np.log(uniforms[:, 3]) < around.tilt / 2 * excess))
    log_acceptance = around.log_acceptance(steps[inside], exponents[inside], shells[inside])
    return weights[inside[np.log(uniforms[inside, 4]) < log_acceptance]]
