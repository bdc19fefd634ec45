"""Exponential records with a gamma prior on their rate."""

from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np
from scipy.special import xlogy

from privpost.models.conjugate.univariate import GammaPrior, SegmentMoments

# For θ(high − low) below this, the closed forms lose digits to cancellation, and power series replace them.
_SERIES_BELOW = 0.3


@dataclass(frozen=True)
class GammaExponential(GammaPrior):
    """A record is x ~ Exp(rate θ), with the prior θ ~ Gamma(shape, rate).

    Statistics are (Σx, n). A record adds (1, x) to the parameters (shape, rate).

    Raises:
        ValueError: shape or rate not positive and finite.

    >>> GammaExponential(2, 2).posterior([14.0, 10.0])
    array([12., 16.])
    """

    family: ClassVar[str] = "exponential"
    theta_is_rate: ClassVar[bool] = True

    def update(self, statistics) -> np.ndarray:
        """Increments (n, Σx) of (shape, rate)."""
        return statistics[..., ::-1]

    def sample_data(self, theta, n, rng) -> np.ndarray:
        """Draws of n records per θ, shape (..., n)."""
        theta = np.asarray(theta, float)
        return rng.standard_exponential((*theta.shape, n)) / theta[..., None]

    def log_likelihood(self, theta, statistics) -> np.ndarray:
        """Log-likelihood n ln θ − θ Σx, shape (...)."""
        theta, statistics = np.asarray(theta, float), np.asarray(statistics, float)
        return xlogy(statistics[..., 1], theta) - theta * statistics[..., 0]

    def cdf(self, x, theta) -> np.ndarray:
        """Distribution function 1 − exp(−θx) of a record, and 0 for x < 0."""
        return -np.expm1(-np.asarray(theta, float) * np.maximum(x, 0.0))

    def quantile(self, probability, theta) -> np.ndarray:
        """Quantile −ln(1 − probability) / θ of a record."""
        return -np.log1p(-np.asarray(probability, float)) / theta

    def predictive_quantile(self, probability) -> np.ndarray:
        """Quantile of a record under the prior predictive law, a Lomax distribution."""
        return self.rate * np.expm1(-np.log1p(-np.asarray(probability, float)) / self.shape)

    def record_moments(self, theta):
        """Mean 1/θ and variance 1/θ² of a record."""
        mean = 1 / np.asarray(theta, float)
        return mean, mean**2

    def record_log_partition(self, eta):
        """Log-partition A(η) = −ln(−η)."""
        return -np.log(-np.asarray(eta, float))

    def eta(self, theta) -> np.ndarray:
        """Natural parameter η = −θ."""
        return -np.asarray(theta, float)

    def theta_of(self, eta) -> np.ndarray:
        """Parameter θ = −η."""
        return -np.asarray(eta, float)

    def segment_moments(self, theta, low, high):
        """Moments of a record in [low, high] in closed form. Entries of `high` must be all finite or all infinite.

        With L = high − low and z = θL, the mean is low + L (1/z − 1/(e^z − 1)) and the variance is L²
        (1/z² − e^z/(e^z − 1)²) (Bernstein and Sheldon 2018, lemma 1).
        """
        theta = np.asarray(theta, float)
        # An interval that starts at 0 is the paper's lower segment, which every sweep needs.
        from_zero = np.size(low) == 1 and not np.any(low)
        above = None if from_zero else np.exp(-theta * low)
        if np.isinf(np.asarray(high).flat[0]):
            mean = 1 / theta
            return SegmentMoments(np.ones_like(mean) if from_zero else above, low + mean, mean**2)
        length = high if from_zero else high - low
        z = theta * length
        inside = -np.expm1(-z)
        small = z < _SERIES_BELOW
        if small.all():
            mean, variance = _by_series(z)
        else:
            mean, variance = _in_closed_form(z, inside)
            if small.any():
                mean, variance = map(np.where, (small, small), _by_series(z), (mean, variance))
        mean, variance = length * mean, length * length * variance
        return (
            SegmentMoments(inside, mean, variance)
            if from_zero
            else SegmentMoments(above * inside, low + mean, variance)
        )

    @classmethod
    def examples(cls) -> list[Self]:
        """The prior of the paper, and a wide prior."""
        return [cls(8, 2), cls(1, 1)]


def _in_closed_form(z, inside):
    """Return 1/z − 1/(e^z − 1) and 1/z² − e^z/(e^z − 1)², given inside = 1 − e^(−z)."""
    # With `inside`, no term overflows.
    ratio = (1 - inside) / inside
    inverse = 1 / z
    return inverse - ratio, inverse * inverse - ratio / inside


def _by_series(z):
    """Return the values of `_in_closed_form` for z < 0.3, by power series that are accurate to 1e-12."""
    square = z * z
    mean = 0.5 - z / 12 * (1 - square / 60 * (1 - square / 42 * (1 - square / 40)))
    variance = 1 / 12 - square / 240 * (1 - square * (5 / 126) * (1 - square * (7 / 200) * (1 - square * (20 / 616))))
    return mean, variance
