"""Univariate exponential families whose statistic is the record itself, for sums that are redacted before release."""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar, NamedTuple

import numpy as np

from privpost.models.base import ConjugateModel

# Relative step of the central differences in the natural parameter: the fourth-order formulas leave a truncation error
# of about 1e-9 and, in the second derivative, a rounding error of about 1e-10.
_STEP = 5e-3


class SegmentMoments(NamedTuple):
    """Probability that a record falls into an interval, and mean and variance of the record given that it does."""

    probability: np.ndarray
    mean: np.ndarray
    variance: np.ndarray


class UnivariateFamily(ConjugateModel):
    """Records x with density h(x) exp(η(θ) x − A(η)) for a scalar θ; statistics are (Σx, n), shape (..., 2).

    A family needs its distribution function, its log-partition with the map between θ and η, and its conjugate
    prior; `segment_moments` then follows by differentiation, and a family with closed forms replaces it.

    Class attributes:
        family: name of the family in the tables.
    """

    family: ClassVar[str]

    bounded: ClassVar[bool] = False

    @property
    @abstractmethod
    def record_support(self) -> tuple[float, float]:
        """Smallest and largest possible record; infinite where there is none."""

    @property
    def records(self):
        """Some records only: those of an unbounded family have no largest distance."""
        return np.clip([0.0, 0.5, 2.0], *self.record_support)

    @property
    def theta_shape(self):
        """θ is a scalar."""
        return ()

    def sufficient_statistics(self, data):
        """(Σx, n) of data of shape (..., n); shape (..., 2).

        Raises:
            ValueError: a record outside the support.
        """
        data = np.asarray(data, float)
        low, high = self.record_support
        if not np.all((data >= low) & (data <= high)):
            raise ValueError(f"data has records outside [{low:g}, {high:g}]")
        total = data.sum(axis=-1)
        return np.stack([total, np.full_like(total, data.shape[-1])], axis=-1)

    @abstractmethod
    def cdf(self, x, theta) -> np.ndarray:
        """Distribution function of a record, broadcast shape of x and θ."""

    @abstractmethod
    def quantile(self, probability, theta) -> np.ndarray:
        """Inverse of `cdf` in x, broadcast shape."""

    @abstractmethod
    def predictive_quantile(self, probability) -> np.ndarray:
        """Quantile of one record under the prior predictive distribution."""

    @abstractmethod
    def record_moments(self, theta) -> tuple[np.ndarray, np.ndarray]:
        """Mean A'(η) and variance A''(η) of one record, each of the shape of θ."""

    @abstractmethod
    def record_log_partition(self, eta) -> np.ndarray:
        """A(η)."""

    @abstractmethod
    def eta(self, theta) -> np.ndarray:
        """Natural parameter η(θ)."""

    @abstractmethod
    def theta_of(self, eta) -> np.ndarray:
        """θ with the given natural parameter."""

    @abstractmethod
    def posterior_cdf(self, theta, parameters) -> np.ndarray:
        """P(Θ ≤ θ) under the prior family with parameters (..., k)."""

    def segment_moments(self, theta, low, high) -> SegmentMoments:
        """Moments of a record in [low, high], from derivatives of Â(η) = A(η) + ln(F(high; η) − F(low; η)).

        The mean is Â' and the variance Â'' (Bernstein and Sheldon 2018, lemma 1), by central differences with a
        relative error of about 1e-7.

        Args:
            theta: shape (...); low and high broadcast against it and may be infinite.
        """
        theta = np.asarray(theta, float)
        eta = self.eta(theta)
        step = _STEP * np.maximum(np.abs(eta), 1e-3)

        def log_partition(k):
            shifted = eta + k * step
            at = self.theta_of(shifted)
            return self.record_log_partition(shifted) + np.log(self.cdf(high, at) - self.cdf(low, at))

        far_below, below, centre, above, far_above = (log_partition(k) for k in (-2, -1, 0, 1, 2))
        mean = (far_below - 8 * below + 8 * above - far_above) / (12 * step)
        variance = (-far_below + 16 * below - 30 * centre + 16 * above - far_above) / (12 * step**2)
        return SegmentMoments(self.cdf(high, theta) - self.cdf(low, theta), mean, variance)
