"""Noise-aware posteriors a second time: sums over all counts, and integrals over records and redacted sums.

Nothing here comes from the samplers or the models. Redacted sums are of exponential or Poisson records under a gamma
prior on θ; a normal model of the sum takes its mean and variance from integrals over one record.
"""

from __future__ import annotations

import itertools
import math
from types import SimpleNamespace

import numpy as np
from recomputed import log_beta, midpoints
from scipy.special import betainc


def watched_chains(monkeypatch, owner) -> list[SimpleNamespace]:
    """Chains that a study runs from here on: their settings, draws (sweeps, chains) and proposals."""
    made, original = [], owner.run

    def watched(kernel, rng, burn_in, draws, consume):
        parts = []

        def both(theta):
            parts.append(theta.copy())
            consume(theta)

        proposals = original(kernel, rng, burn_in, draws, both)
        theta = np.concatenate(parts)
        made.append(SimpleNamespace(burn_in=burn_in, draws=draws, theta=theta, proposals=proposals))
        return proposals

    monkeypatch.setattr(owner, "run", watched)
    return made


# Counts: p(s | y) ∝ p(s) Π exp(−|y_j − s_j|/b)


def tables(n: int, levels: int) -> list[tuple[int, ...]]:
    """All counts of n records over some levels."""
    return [counts for counts in itertools.product(range(n + 1), repeat=levels) if sum(counts) == n]


def count_weights(prior, noisy, n: int, scale: float, size: int = 1) -> dict[tuple[int, ...], float]:
    """p(counts | y) of records of `size` equal parts; the first counts were released, per record."""
    logs = {}
    for counts in tables(n * size, len(prior)):
        log_prior = sum(math.lgamma(a + s) - math.lgamma(s + 1) for a, s in zip(prior, counts, strict=True))
        logs[counts] = log_prior - sum(abs(y - s / size) for y, s in zip(noisy, counts, strict=False)) / scale
    highest = max(logs.values())
    total = sum(math.exp(value - highest) for value in logs.values())
    return {counts: math.exp(value - highest) / total for counts, value in logs.items()}


def marginal(prior, counts, place: int = 0) -> tuple[float, float]:
    """Beta law of one probability given all counts."""
    own = prior[place] + counts[place]
    return own, sum(prior) + sum(counts) - own


def counts_cdf(weights, prior, theta: float, place: int = 0) -> float:
    """P(Θ ≤ θ | y) of one probability."""
    return sum(share * betainc(*marginal(prior, counts, place), theta) for counts, share in weights.items())


def counts_density(weights, prior, theta):
    """Density of the first probability given y."""
    parts = [(share, *marginal(prior, counts)) for counts, share in weights.items()]
    logs = np.log(theta), np.log1p(-theta)
    return sum(share * np.exp((a - 1) * logs[0] + (b - 1) * logs[1] - log_beta(a, b)) for share, a, b in parts)


# Redacted sums


def gamma_density(theta, shape: float, rate: float):
    return np.exp(shape * math.log(rate) + (shape - 1) * np.log(theta) - rate * theta - math.lgamma(shape))


def exponential_moments(theta, low: float, high: float):
    """E t and E t² of exponential records t within [low, high], others counting as 0."""
    t, width = midpoints(low, high, 600)
    density = theta[:, None] * np.exp(-theta[:, None] * t) * width
    return density @ t, density @ t**2


def poisson_moments(theta, low: float, high: float):
    t = np.arange(math.ceil(low), math.floor(high) + 1)
    density = np.exp(t * np.log(theta)[:, None] - theta[:, None] - [math.lgamma(x + 1) for x in t])
    return density @ t, density @ t**2


def normal_laplace(residual, variance, scale: float):
    """Density of a normal variate plus Laplace noise, by the integral over the normal one."""
    z, width = midpoints(-8.5, 8.5, 1200)
    weight = np.exp(-(z**2) / 2) / math.sqrt(2 * math.pi) * width
    distance = np.abs(np.asarray(residual)[:, None] - np.sqrt(variance)[:, None] * z)
    return (np.exp(-distance / scale) / (2 * scale)) @ weight


def redacted_mass(prior, noisy: float, n: int, scale: float, low: float, high: float, moments=exponential_moments):
    """Values of θ and their shares given the noisy sum, whose law before noise is taken to be normal."""
    shape, rate = prior
    centre, spread = shape / rate, math.sqrt(shape) / rate
    theta, _ = midpoints(max(1e-3, centre - 4 * spread), centre + 9 * spread, 800)
    first, second = moments(theta, low, high)
    likelihood = normal_laplace(noisy - n * first, n * (second - first**2), scale)
    mass = gamma_density(theta, shape, rate) * likelihood
    return theta, mass / mass.sum()


def share_below(theta, mass, at: float) -> float:
    """P(Θ ≤ at): whole cells, and a part of the one around `at`."""
    step = theta[1] - theta[0]
    return float(mass @ np.clip((at - theta) / step + 0.5, 0.0, 1.0))


def lomax(shape: float, rate: float) -> tuple[float, float]:
    """Quantiles at 2.5 % and 97.5 % of an exponential record whose rate has a gamma law."""
    return tuple(rate * ((1 - p) ** (-1 / shape) - 1) for p in (0.025, 0.975))
