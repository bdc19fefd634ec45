"""Exact draws from a multivariate normal distribution truncated to a ball around the origin."""

from typing import NamedTuple

import numpy as np
from scipy.special import log_ndtr, ndtri_exp

# Proposals per round, and the largest number of rounds: at worst a few percent of the proposals are accepted.
BATCH = 256
ROUNDS = 10_000


class Draws(NamedTuple):
    """The draws (size, d), and the share of accepted proposals."""

    draws: np.ndarray
    acceptance: float


def sample(mean, precision, radius: float, size: int, rng: np.random.Generator) -> Draws:
    """Return exact draws from N(mean, precision⁻¹) conditioned on ‖w‖ ≤ radius, whatever the mass of the ball.

    Proposals are "tilted": their density has a factor exp(−λ‖w‖²/2) such that E‖w‖² ≤ radius². If the mean lies outside
    the ball, "tangent" proposals are possible too. They come from the half-space that touches the ball at the most
    likely point of the ball. A first batch shows which kind of proposal is accepted more often.

    Args:
        mean: shape (d,).
        precision: symmetric and positive definite, shape (d, d).
        radius: radius of the ball, > 0.
        size: number of independent draws.

    Raises:
        ValueError: a radius that is not positive, a size below 1, or a precision that is not positive definite.
        RuntimeError: too few proposals are accepted.
    """
    mean, precision = np.asarray(mean, float), np.asarray(precision, float)
    if not radius > 0:
        raise ValueError(f"radius is {radius!r}; it must be > 0")
    if size < 1:
        raise ValueError(f"size is {size!r}; it must be >= 1")
    values, vectors = np.linalg.eigh(precision)
    if not values[0] > 0:
        raise ValueError(f"precision has the eigenvalue {values[0]:g}; it must be positive definite")
    centre = vectors.T @ mean
    # In the basis of the eigenvectors, the precision is diagonal and the ball is unchanged.
    propose = _tilted(centre, values, radius)
    if centre @ centre > radius**2:
        candidates = (propose, _tangent(centre, values, radius))
        first = [np.exp(_log_acceptance(candidate, radius, rng)[1]).mean() for candidate in candidates]
        propose = candidates[int(np.argmax(first))]
    batches, proposed, accepted = [], 0, 0
    for _ in range(ROUNDS):
        draws, log_acceptance = _log_acceptance(propose, radius, rng)
        accept = np.log(rng.random(len(draws))) < log_acceptance
        batches.append(draws[accept])
        proposed, accepted = proposed + len(draws), accepted + int(accept.sum())
        if accepted >= size:
            return Draws(np.concatenate(batches)[:size] @ vectors.T, accepted / proposed)
    raise RuntimeError(f"{BATCH * ROUNDS} proposals gave fewer than {size} draws")


def _log_acceptance(propose, radius, rng):
    draws, log_acceptance = propose(rng)
    return draws, np.where((draws**2).sum(axis=-1) <= radius**2, log_acceptance, -np.inf)


def _root(function, high: float) -> float:
    """Return the λ ≥ 0 at which a decreasing function vanishes, by bisection."""
    while function(high) > 0:
        high *= 2
    low = 0.0
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if function(middle) > 0 else (low, middle)
    return high


def tilt(centre, values, radius: float) -> float:
    """Return the least λ ≥ 0 at which E‖w‖² ≤ radius² under N(centre, diag(values)⁻¹) times exp(−λ‖w‖²/2)."""

    def excess(rate):
        return ((values * centre / (values + rate)) ** 2 + 1 / (values + rate)).sum() - radius**2

    return 0.0 if excess(0.0) <= 0 else _root(excess, values[0])


def _tilted(centre, values, radius):
    # A proposal w in the ball is accepted with probability exp(λ(‖w‖² − radius²)/2).
    rate = tilt(centre, values, radius)
    location, sd = values * centre / (values + rate), 1 / np.sqrt(values + rate)

    def propose(rng):
        draws = location + sd * rng.standard_normal((BATCH, centre.size))
        return draws, rate / 2 * ((draws**2).sum(axis=-1) - radius**2)

    return propose


def _tangent(centre, values, radius):
    # Let m be the most likely point of the ball: (P + λ)m = Pμ, ‖m‖ = R. In the ball the density is
    # ∝ exp(−½(w−m)ᵀP(w−m) − λRe). Here e = R − wᵀm/R is the depth below the tangent plane at m, and Re ≥ ‖w−m‖²/2. So
    # proposals have the law N(m, (P + (1−θ)λ)⁻¹) times exp(−θλRe) on the half-space e ≥ 0. They are accepted with
    # probability exp(−(1−θ)λ(Re − ‖w−m‖²/2)). θ = 2/(d+1) bounds the acceptance below however far away the mean is.
    tilt = _root(lambda tilt: ((values * centre / (values + tilt)) ** 2).sum() - radius**2, values[0])
    mode = values * centre / (values + tilt)
    normal = mode / np.linalg.norm(mode)
    share = 2 / (centre.size + 1) if centre.size > 1 else 1.0
    variance = 1 / (values + (1 - share) * tilt)
    # e = −normal·(w − m) is normal with standard deviation sd; the weight exp(−rate e) moves e's mean to −rate sd².
    sd = np.sqrt((normal**2 * variance).sum())
    rate = share * tilt * radius
    shift = rate * sd
    direction = -variance * normal / sd**2

    def propose(rng):
        # Standard normal beyond `shift`, by the inverse of its upper tail in logarithms.
        depth = -sd * ndtri_exp(log_ndtr(-shift) + np.log(rng.random(BATCH))) - sd * shift
        noise = np.sqrt(variance) * rng.standard_normal((BATCH, centre.size))
        # Given e, the unconstrained draw is moved along the regression of draws on e.
        step = noise + np.outer(depth + noise @ normal, direction)
        draws = mode + step
        return draws, -(1 - share) * tilt * (radius * depth - (step**2).sum(axis=-1) / 2)

    return propose
