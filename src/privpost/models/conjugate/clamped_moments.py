"""The first two moments of normal records that are clamped to public bounds."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.special import ndtr

from privpost.models.base import Checked, check_bounds, check_range, check_records
from privpost.models.conjugate.normal_unknown_variance import NormalUnknownVariance

# Intervals of u: within the bounds, above and below.
INTERVALS = (-1.0, 1.0), (1.0, np.inf), (-np.inf, -1.0)


@dataclass(frozen=True)
class ClampedMoments(metaclass=Checked):
    """Normal records of unknown mean and variance, with statistics (Σr, Σr²) of clamped records r.

    For a record x, let u = (x − centre)/half-width. Then r is u clamped to [−1, 1]. If a sum omits records beyond the
    bounds (Bernstein and Sheldon 2018, section 3.3), it first rises and then falls as the variance grows, so two
    variances can explain one sum. In contrast, Σr² does not fall.

    Attributes:
        family: model of the records, with its prior.
        low, high: public bounds.

    Raises:
        ValueError: bounds that are not finite or out of order.

    >>> ClampedMoments(NormalUnknownVariance(), 0.0, 4.0).sufficient_statistics(np.array([1.0, 4.0, 9.0]))
    array([1.5 , 2.25])
    """

    family: NormalUnknownVariance
    low: float
    high: float

    bounded: ClassVar[bool] = True
    statistics_size: ClassVar[int] = 2
    theta_shape: ClassVar[tuple[int, ...]] = (2,)

    # Names of the coordinates of θ.
    parameter_names: ClassVar[tuple[str, ...]] = NormalUnknownVariance.parameter_names

    def __post_init__(self):
        check_range("(-inf, inf)", low=self.low, high=self.high)
        check_bounds(self.low, self.high)

    @property
    def centre(self) -> float:
        """Middle between the public bounds."""
        return (self.low + self.high) / 2

    @property
    def half_width(self) -> float:
        """Half the distance between the public bounds."""
        return (self.high - self.low) / 2

    @property
    def records(self) -> np.ndarray:
        """Records with r = −1, −½, 0, ½ and 1, and a record beyond the bounds.

        These records attain the L1 sensitivity 9/4 of the statistics, which is the range of r + r² and of r − r².
        """
        return np.append(self.centre + self.half_width * np.linspace(-1, 1, 5), self.high + 1.0)

    @property
    def prior(self) -> np.ndarray:
        """Parameters of the prior of `family`."""
        return self.family.prior

    def clamped(self, data) -> np.ndarray:
        """Return the clamped value r of each record, in the shape of the data.

        Raises:
            ValueError: a record that is not finite.
        """
        return np.clip((check_records(data) - self.centre) / self.half_width, -1.0, 1.0)

    def sufficient_statistics(self, data) -> np.ndarray:
        """Statistics (Σr, Σr²), shape (..., 2), of records (..., n)."""
        r = self.clamped(data)
        return np.stack([r.sum(axis=-1), np.square(r).sum(axis=-1)], axis=-1)

    def sums(self, statistics, n: int) -> np.ndarray:
        """The family's statistics (..., 3) of n unclamped records, from (Σu, Σu²) with u = (x − centre)/half-width."""
        first, second = np.moveaxis(np.asarray(statistics, float), -1, 0)
        centre, width = self.centre, self.half_width
        square = n * centre**2 + 2 * centre * width * first + width**2 * second
        return np.stack([n * centre + width * first, square, np.full_like(first, n)], axis=-1)

    def sample(self, parameters, rng, size=None) -> np.ndarray:
        """Draw θ from the prior family with the given parameters."""
        return self.family.sample(parameters, rng, size)

    def project(self, release, n: int) -> np.ndarray:
        """Clip a release (..., 2) to moments of n numbers in [−1, 1]: 0 ≤ Σr² ≤ n and |Σr| ≤ √(n Σr²)."""
        first, second = np.moveaxis(np.asarray(release, float), -1, 0)
        second = np.clip(second, 0.0, n)
        limit = np.sqrt(n * second)
        return np.stack([np.clip(first, -limit, limit), second], axis=-1)

    def in_units(self, theta) -> tuple[np.ndarray, np.ndarray]:
        """Mean and variance of u = (x − centre)/half-width for a record x, given θ = (μ, σ²) (..., 2)."""
        mean, variance = np.moveaxis(np.asarray(theta, float), -1, 0)
        return (mean - self.centre) / self.half_width, variance / self.half_width**2

    def sum_moments(self, theta, n: int) -> tuple[np.ndarray, np.ndarray]:
        """Mean (4, ...) and covariance (4, 4, ...) of (Σr, Σr², Σu, Σu²) for n records, given θ (..., 2)."""
        mean, variance = self.in_units(theta)
        inside, above, below = (moments_within(mean, variance, *ends) for ends in INTERVALS)
        # E r^k, E u^i r^j and E u^k.
        clamped = [inside[k] + above[0] + (-1) ** k * below[0] for k in range(5)]
        square = mean**2 + variance
        unclamped = square, mean * (square + 2 * variance), mean**4 + 6 * mean**2 * variance + 3 * variance**2
        first = np.stack([clamped[1], clamped[2], mean, square])
        product = np.empty((4, *first.shape))
        for i, j in np.ndindex(2, 2):
            product[i, j], product[i + 2, j + 2] = clamped[2 + i + j], unclamped[i + j]
            mixed = inside[2 + i + j] + above[i + 1] + (-1) ** (j + 1) * below[i + 1]
            product[i + 2, j] = product[j, i + 2] = mixed
        return n * first, n * (product - first[:, None] * first)


def moments_within(mean, variance, low: float, high: float) -> np.ndarray:
    """Return E[x^k 1(low ≤ x ≤ high)] for k = 0 to 4 and x ~ N(mean, variance), shape (5, ...).

    Integration by parts on [l, h], with the density f, gives M_k = mean M_(k−1) + variance ((k−1) M_(k−2) − h^(k−1)
    f(h) + l^(k−1) f(l)). If the standard deviation is much larger than the interval, digits are lost. On [−1, 1] the
    error is about variance² times the rounding error.
    """
    mean, variance = np.asarray(mean, float), np.asarray(variance, float)
    sd = np.sqrt(variance)
    alpha, beta = (low - mean) / sd, (high - mean) / sd
    # Intervals in the upper tail are reflected, so that no probability is a difference of numbers near 1.
    upper = alpha > 0
    moments = np.empty((5, *np.broadcast_shapes(mean.shape, variance.shape)))
    moments[0] = ndtr(np.where(upper, -alpha, beta)) - ndtr(np.where(upper, -beta, alpha))
    at_low, at_high = (np.exp(-z * z / 2) / (np.sqrt(2 * np.pi) * sd) for z in (alpha, beta))
    moments[1] = mean * moments[0] - variance * (at_high - at_low)
    # The density is 0 where a bound is infinite.
    low, high = (end if np.isfinite(end) else 0.0 for end in (low, high))
    for k in range(2, 5):
        at_low, at_high = low * at_low, high * at_high
        moments[k] = mean * moments[k - 1] + variance * ((k - 1) * moments[k - 2] - at_high + at_low)
    return moments
