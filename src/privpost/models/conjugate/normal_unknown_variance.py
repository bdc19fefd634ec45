"""Normal records with a normal-inverse-gamma prior on their mean and variance."""

from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np
from scipy.special import betaincinv, betaln, gammaln, stdtrit

from privpost.models.base import ConjugateModel, check_positive, check_records


@dataclass(frozen=True)
class NormalUnknownVariance(ConjugateModel):
    """Normal records of unknown mean and variance θ = (μ, σ²), with a normal-inverse-gamma prior.

    The prior is μ | σ² ~ N(prior_mean, σ²/strength) and σ² ~ InverseGamma(shape, rate). The prior family has the
    natural parameters (k m, 2 rate + k m², k) with mean m and strength k. The statistics (Σx, Σx², n) are added to
    these parameters. The difference shape − k/2 is equal in prior and posterior. The log-partition is
    C = ln Γ(shape) − shape ln rate − ½ ln k + ½ ln 2π.

    Attributes:
        prior_mean: prior mean of μ, finite.
        strength: > 0, the number of records that the prior of the mean is worth.
        shape, rate: parameters > 0 of the prior of σ².

    >>> NormalUnknownVariance().posterior([4.0, 6.0, 3.0])
    array([ 4., 10.,  4.])
    """

    prior_mean: float = 0.0
    strength: float = 1.0
    shape: float = 3.0
    rate: float = 2.0

    family: ClassVar[str] = "normal_unknown_variance"
    bounded: ClassVar[bool] = False
    theta_shape: ClassVar[tuple[int, ...]] = (2,)
    support: ClassVar[tuple[float, float]] = (-np.inf, np.inf)

    # Names of the coordinates of θ.
    parameter_names: ClassVar[tuple[str, ...]] = ("mu", "s2")

    def __post_init__(self):
        for name in ("strength", "shape", "rate"):
            check_positive(name, getattr(self, name))
        if not np.isfinite(self.prior_mean):
            raise ValueError(f"prior_mean is {self.prior_mean!r}; it must be finite")

    @property
    def records(self) -> np.ndarray:
        """Some example records."""
        return np.array([-1.0, 0.0, 1.5])

    @property
    def prior(self) -> np.ndarray:
        """Natural parameters (k m, 2 rate + k m², k) of the prior with mean m and strength k."""
        first = self.strength * self.prior_mean
        return np.array([first, 2 * self.rate + first * self.prior_mean, self.strength])

    def sufficient_statistics(self, data) -> np.ndarray:
        """Statistics (Σx, Σx², n), shape (..., 3), of data (..., n).

        Raises:
            ValueError: a record that is not finite.
        """
        data = check_records(data)
        total = data.sum(axis=-1)
        return np.stack([total, np.square(data).sum(axis=-1), np.full_like(total, data.shape[-1])], axis=-1)

    def standard(self, parameters) -> tuple[np.ndarray, ...]:
        """Mean m, strength k, shape and rate, each of shape (...), given natural parameters (..., 3)."""
        first, second, strength = np.moveaxis(np.asarray(parameters, float), -1, 0)
        mean = first / strength
        return mean, strength, self.shape + (strength - self.strength) / 2, (second - first * mean) / 2

    def log_partition(self, natural) -> np.ndarray:
        """Log-partition C(η), shape (...)."""
        natural = np.asarray(natural, float)
        none = natural[..., 2] <= 0
        _, strength, shape, rate = self.standard(np.where(none[..., None], [0.0, 1.0, 1.0], natural))
        none |= (shape <= 0) | (rate <= 0)
        shape, rate = np.where(none, 1.0, shape), np.where(none, 1.0, rate)
        value = gammaln(shape) - shape * np.log(rate) - np.log(strength) / 2 + np.log(2 * np.pi) / 2
        return np.where(none, np.inf, value)

    def sample(self, parameters, rng, size=None) -> np.ndarray:
        """Draws of (μ, σ²), shape ([size,] ..., 2)."""
        mean, strength, shape, rate = self.standard(parameters)
        lead = mean.shape if size is None else (size, *mean.shape)
        variance = rate / rng.standard_gamma(shape, lead)
        return np.stack([mean + np.sqrt(variance / strength) * rng.standard_normal(lead), variance], axis=-1)

    def sample_data(self, theta, n, rng) -> np.ndarray:
        """Draws of n records per θ (..., 2), shape (..., n)."""
        theta = np.asarray(theta, float)
        noise = rng.standard_normal((*theta.shape[:-1], n))
        return theta[..., :1] + np.sqrt(theta[..., 1:]) * noise

    def mean(self, parameters) -> np.ndarray:
        """Means of μ and σ², shape (..., 2). The mean of σ² is infinite for shape ≤ 1."""
        mean, _, shape, rate = self.standard(parameters)
        return np.stack([mean, np.where(shape > 1, rate / np.where(shape > 1, shape - 1, 1.0), np.inf)], axis=-1)

    def variance(self, parameters) -> np.ndarray:
        """Variances of μ and σ², shape (..., 2). The variance of σ² is infinite for shape ≤ 2."""
        _, strength, shape, _ = self.standard(parameters)
        expected = self.mean(parameters)[..., 1]
        second = np.where(shape > 2, expected**2 / np.where(shape > 2, shape - 2, 1.0), np.inf)
        return np.stack([expected / strength, second], axis=-1)

    def log_density(self, theta, parameters) -> np.ndarray:
        """Log-density of the prior family at θ (..., 2), which is (μ, σ²). It is −inf for σ² ≤ 0."""
        theta = np.asarray(theta, float)
        mean, strength, shape, rate = self.standard(parameters)
        outside = theta[..., 1] <= 0
        variance = np.where(outside, 1.0, theta[..., 1])
        squares = strength * (theta[..., 0] - mean) ** 2 / 2 + rate
        log_kernel = -squares / variance - (shape + 1.5) * np.log(variance)
        return np.where(outside, -np.inf, log_kernel - self.log_partition(parameters))

    def log_likelihood(self, theta, statistics) -> np.ndarray:
        """Log-likelihood −(Σx² − 2μΣx + nμ²)/(2σ²) − (n/2) ln σ² without constants, shape (...)."""
        (mean, variance), statistics = np.moveaxis(np.asarray(theta, float), -1, 0), np.asarray(statistics, float)
        total, square, n = np.moveaxis(statistics, -1, 0)
        return -(square - 2 * mean * total + n * mean**2) / (2 * variance) - n / 2 * np.log(variance)

    def predictive_quantile(self, probability) -> np.ndarray:
        """Quantile of a record under the prior predictive law, a scaled Student t law."""
        scale = np.sqrt(self.rate / self.shape * (1 + 1 / self.strength))
        return self.prior_mean + scale * _student_quantile(2 * self.shape, np.asarray(probability, float))

    @classmethod
    def examples(cls) -> list[Self]:
        """A prior around 0, and a prior off centre."""
        return [cls(0.0, 1.0, 4.0, 3.0), cls(0.5, 3.0, 5.0, 2.0)]


def _student_quantile(degrees: float, probability) -> np.ndarray:
    """Return the quantile of Student's t law."""
    tail = np.minimum(probability, 1 - probability)
    # `stdtrit` fails in the far tails. There t² = degrees (1 − b)/b for a beta variate b, whose distribution function
    # starts as b^a / (a B(a, ½)).
    a = degrees / 2
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        place = betaincinv(a, 0.5, 2 * tail)
        least = np.exp(-(np.log(2 * tail) + np.log(a) + betaln(a, 0.5)) / (2 * a))
        size = np.sqrt(degrees) * np.where(place < 1e-290, least, np.sqrt((1 - place) / place))
    return np.where(tail < 1e-10, np.copysign(size, probability - 0.5), stdtrit(degrees, probability))
