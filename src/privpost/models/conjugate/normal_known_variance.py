"""Normal records of known variance with a normal prior on their mean."""

from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np
from scipy.special import ndtr, ndtri

from privpost.models.base import check_positive
from privpost.models.conjugate.univariate import SegmentMoments, UnivariateFamily


@dataclass(frozen=True)
class NormalKnownVariance(UnivariateFamily):
    """A record is x ~ N(θ, record_variance), with the prior θ ~ N(prior_mean, prior_variance).

    Statistics are (Σx, n). The prior family has the natural parameters (h, p) = (mean/variance, 1/variance), to which a
    record adds (x, 1)/record_variance. The log-partition is C(h, p) = h²/(2p) − ½ ln p + ½ ln 2π.

    Raises:
        ValueError: a variance not positive and finite, or an infinite mean.

    >>> NormalKnownVariance(0.0, 1.0, 1.0).posterior([14.0, 10.0])
    array([14., 11.])
    """

    prior_mean: float = 0.0
    prior_variance: float = 1.0
    record_variance: float = 1.0

    family: ClassVar[str] = "normal"
    support: ClassVar[tuple[float, float]] = (-np.inf, np.inf)
    record_support: ClassVar[tuple[float, float]] = (-np.inf, np.inf)

    def __post_init__(self):
        for name in ("prior_variance", "record_variance"):
            check_positive(name, getattr(self, name))
        if not np.isfinite(self.prior_mean):
            raise ValueError(f"prior_mean is {self.prior_mean!r}; it must be finite")

    @property
    def prior(self) -> np.ndarray:
        """Natural parameters (mean/variance, 1/variance) of the prior."""
        return np.array([self.prior_mean, 1.0]) / self.prior_variance

    def update(self, statistics) -> np.ndarray:
        """Increments of the parameters, (Σx, n) / record_variance."""
        return statistics / self.record_variance

    def log_partition(self, natural) -> np.ndarray:
        """Log-partition C(η) = h²/(2p) − ½ ln p + ½ ln 2π for η = (h, p), shape (...)."""
        natural = np.asarray(natural, float)
        h, p = natural[..., 0], natural[..., 1]
        safe = np.where(p <= 0, 1.0, p)
        return np.where(p <= 0, np.inf, h**2 / (2 * safe) - np.log(safe) / 2 + np.log(2 * np.pi) / 2)

    def sample(self, parameters, rng, size=None) -> np.ndarray:
        """Draws of θ, shape ([size,] ...)."""
        mean, variance = self.mean(parameters), self.variance(parameters)
        shape = mean.shape if size is None else (size, *mean.shape)
        return mean + np.sqrt(variance) * rng.standard_normal(shape)

    def sample_data(self, theta, n, rng) -> np.ndarray:
        """Draws of n records per θ, shape (..., n)."""
        theta = np.asarray(theta, float)
        return theta[..., None] + np.sqrt(self.record_variance) * rng.standard_normal((*theta.shape, n))

    def mean(self, parameters) -> np.ndarray:
        """Mean h/p of θ under the natural parameters (h, p)."""
        parameters = np.asarray(parameters, float)
        return parameters[..., 0] / parameters[..., 1]

    def variance(self, parameters) -> np.ndarray:
        """Variance 1/p of θ under the natural parameters (h, p)."""
        return 1 / np.asarray(parameters, float)[..., 1]

    def log_density(self, theta, parameters) -> np.ndarray:
        """Log-density of the normal prior family at θ."""
        variance = self.variance(parameters)
        return -((np.asarray(theta, float) - self.mean(parameters)) ** 2) / (2 * variance) - 0.5 * np.log(
            2 * np.pi * variance
        )

    def log_likelihood(self, theta, statistics) -> np.ndarray:
        """Log-likelihood (θ Σx − nθ²/2) / record_variance without constants, shape (...)."""
        theta, statistics = np.asarray(theta, float), np.asarray(statistics, float)
        return (theta * statistics[..., 0] - statistics[..., 1] * theta**2 / 2) / self.record_variance

    def posterior_cdf(self, theta, parameters) -> np.ndarray:
        """P(Θ ≤ θ), a normal distribution function."""
        return ndtr((theta - self.mean(parameters)) / np.sqrt(self.variance(parameters)))

    def cdf(self, x, theta) -> np.ndarray:
        """Distribution function Φ((x − θ)/sd) of a record, where sd² is the records' variance."""
        return ndtr((x - np.asarray(theta, float)) / np.sqrt(self.record_variance))

    def quantile(self, probability, theta) -> np.ndarray:
        """Quantile θ + sd Φ⁻¹(probability) of a record, where sd² is the records' variance."""
        return theta + np.sqrt(self.record_variance) * ndtri(probability)

    def predictive_quantile(self, probability) -> np.ndarray:
        """Quantile of a record under the prior predictive law N(prior_mean, prior_variance + record_variance)."""
        return self.prior_mean + np.sqrt(self.prior_variance + self.record_variance) * ndtri(probability)

    def record_moments(self, theta):
        """Mean θ and variance `record_variance` of a record."""
        theta = np.asarray(theta, float)
        return theta, np.full_like(theta, self.record_variance)

    def record_log_partition(self, eta):
        """Log-partition A(η) = record_variance η²/2."""
        return self.record_variance * np.asarray(eta, float) ** 2 / 2

    def eta(self, theta) -> np.ndarray:
        """Natural parameter η = θ / record_variance."""
        return np.asarray(theta, float) / self.record_variance

    def theta_of(self, eta) -> np.ndarray:
        """Parameter θ = record_variance · η."""
        return np.asarray(eta, float) * self.record_variance

    def segment_moments(self, theta, low, high):
        """Moments of a record in [low, high], which follows a truncated normal distribution.

        Let α and β be the standardised ends, q = Φ(β) − Φ(α) and d = (φ(α) − φ(β))/q. The mean is θ + sd d, and the
        variance is sd² (1 + (αφ(α) − βφ(β))/q − d²).
        """
        sd = np.sqrt(self.record_variance)
        alpha, beta = (low - theta) / sd, (high - theta) / sd
        # Segments in the upper tail are reflected, so that q is never a difference of numbers near 1.
        upper = alpha > 0
        probability = ndtr(np.where(upper, -alpha, beta)) - ndtr(np.where(upper, -beta, alpha))
        # A segment beyond 37 standard deviations has probability 0, and the segment's moments only have to be finite.
        safe = np.maximum(probability, 1e-300)
        at_low, at_high = _density(alpha), _density(beta)
        shift = (at_low - at_high) / safe
        curvature = (_bounded(alpha) * at_low - _bounded(beta) * at_high) / safe
        return SegmentMoments(probability, theta + sd * shift, self.record_variance * (1 + curvature - shift**2))

    @classmethod
    def examples(cls) -> list[Self]:
        """The standard normal prior, and a prior off centre."""
        return [cls(0, 1, 1), cls(1.5, 0.5, 2)]


def _density(z):
    return np.exp(-z * z / 2) / np.sqrt(2 * np.pi)


def _bounded(z):
    """Return z, clipped so that infinite values become finite."""
    return np.clip(z, -1e9, 1e9)
