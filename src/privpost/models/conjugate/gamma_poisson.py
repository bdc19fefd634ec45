"""Poisson counts with a gamma prior on their mean."""

from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np
from scipy.special import nbdtrik, pdtr, pdtrik, xlogy

from privpost.models.conjugate.univariate import GammaPrior, SegmentMoments


@dataclass(frozen=True)
class GammaPoisson(GammaPrior):
    """A record is x ~ Poisson(θ), with the prior θ ~ Gamma(shape, rate).

    Statistics are (Σx, n). A record adds (x, 1) to the parameters (shape, rate). Likelihoods omit the factor 1/x!.

    Raises:
        ValueError: shape or rate not positive and finite.

    >>> GammaPoisson(2, 2).posterior([14.0, 10.0])
    array([16., 12.])
    """

    family: ClassVar[str] = "poisson"
    lattice: ClassVar[bool] = True

    def sample_data(self, theta, n, rng) -> np.ndarray:
        """Draws of n records per θ, shape (..., n)."""
        theta = np.asarray(theta, float)
        return rng.poisson(theta[..., None], (*theta.shape, n))

    def log_likelihood(self, theta, statistics) -> np.ndarray:
        """Log-likelihood Σx ln θ − n θ, shape (...)."""
        theta, statistics = np.asarray(theta, float), np.asarray(statistics, float)
        return xlogy(statistics[..., 0], theta) - statistics[..., 1] * theta

    def cdf(self, x, theta) -> np.ndarray:
        """Distribution function P(X ≤ x) of a record, a step function."""
        return np.where(np.asarray(x) < 0, 0.0, pdtr(np.floor(np.maximum(x, 0.0)), theta))

    def quantile(self, probability, theta) -> np.ndarray:
        """The smallest count x with P(X ≤ x) ≥ probability, plus a half."""
        return _half_above(pdtrik(probability, theta), probability)

    def predictive_quantile(self, probability) -> np.ndarray:
        """Quantile of a record, plus a half, under the prior predictive law, a negative binomial distribution."""
        quantile = nbdtrik(probability, self.shape, self.rate / (1 + self.rate))
        return _half_above(quantile, probability)

    def record_moments(self, theta):
        """Mean and variance of a record, which are both θ."""
        theta = np.asarray(theta, float)
        return theta, theta

    def record_log_partition(self, eta):
        """Log-partition A(η) = e^η."""
        return np.exp(eta)

    def eta(self, theta) -> np.ndarray:
        """Natural parameter η = ln θ."""
        return np.log(theta)

    def theta_of(self, eta) -> np.ndarray:
        """Parameter θ = e^η."""
        return np.exp(eta)

    def segment_moments(self, theta, low, high):
        """Moments of a record in [low, high] in closed form.

        With S_k = P(low − k ≤ X ≤ high − k), the mean of X is θ S₁/S₀ and the mean of X(X − 1) is θ² S₂/S₀.
        """
        theta = np.asarray(theta, float)
        low, high = np.ceil(low), np.floor(high)
        none, one, two = (self.cdf(high - k, theta) - self.cdf(low - k - 1, theta) for k in range(3))
        safe = np.maximum(none, 1e-300)
        mean = theta * one / safe
        return SegmentMoments(none, mean, np.maximum(theta**2 * two / safe + mean - mean**2, 0.0))

    @classmethod
    def examples(cls) -> list[Self]:
        """A prior for small counts (mean 4), and a prior for larger counts (mean 15)."""
        return [cls(8, 2), cls(30, 2)]


def _half_above(quantile, probability) -> np.ndarray:
    """Return the smallest count at or above a continuous quantile, plus a half."""
    # SciPy's inverse distribution functions have no value at the probabilities 0 and 1.
    count = np.ceil(np.maximum(quantile - 1e-9, 0.0)) + 0.5
    return np.where(np.equal(probability, 0), 0.5, np.where(np.equal(probability, 1), np.inf, count))
