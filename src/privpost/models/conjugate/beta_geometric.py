"""Geometric waiting times with a beta prior on the probability of success."""

from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np
from scipy.special import betaln

from privpost.models.conjugate.beta_bernoulli import BetaPrior
from privpost.models.conjugate.univariate import SegmentMoments, UnivariateFamily

# A predictive quantile below this number is looked up in a table.
_TABLE = 2.0**20


@dataclass(frozen=True)
class BetaGeometric(BetaPrior, UnivariateFamily):
    """A record is the number of failures before a success of probability θ, with the prior θ ~ Beta(alpha, beta).

    Statistics are (Σx, n), and parameters are (α, β). A record x adds 1 to α and x to β.

    Raises:
        ValueError: alpha or beta not positive and finite.

    >>> BetaGeometric(1, 1).posterior([20.0, 10.0])
    array([11., 21.])
    """

    alpha: float = 1.0
    beta: float = 1.0

    family: ClassVar[str] = "geometric"
    lattice: ClassVar[bool] = True
    record_support: ClassVar[tuple[float, float]] = (0.0, np.inf)

    def update(self, statistics) -> np.ndarray:
        """Increments (n, Σx) of (α, β)."""
        return statistics[..., ::-1]

    def sample_data(self, theta, n, rng) -> np.ndarray:
        """Draws of n records per θ, shape (..., n)."""
        theta = np.asarray(theta, float)
        return rng.geometric(theta[..., None], (*theta.shape, n)) - 1

    def log_likelihood(self, theta, statistics) -> np.ndarray:
        """Log-likelihood n ln θ + Σx ln(1 − θ), shape (...)."""
        return super().log_likelihood(theta, np.asarray(statistics, float)[..., ::-1])

    def cdf(self, x, theta) -> np.ndarray:
        """Distribution function of a record, a step function that is 1 − (1 − θ)^(x + 1) at integers x ≥ 0."""
        return -np.expm1((np.floor(np.maximum(x, -1.0)) + 1) * np.log1p(-np.asarray(theta, float)))

    def quantile(self, probability, theta) -> np.ndarray:
        """The smallest record x with P(X ≤ x) ≥ probability, plus a half."""
        exact = np.log1p(-np.asarray(probability, float)) / np.log1p(-np.asarray(theta, float))
        return np.maximum(np.ceil(exact - 1 - 1e-9), 0.0) + 0.5

    def predictive_quantile(self, probability) -> np.ndarray:
        """Quantile of a record under the prior predictive law, plus a half."""
        probability = np.asarray(probability, float)
        found = np.searchsorted(-self._above(np.arange(_TABLE)), probability - 1)
        return np.where(found < _TABLE, found, self._far(probability)) + 0.5

    def _above(self, record) -> np.ndarray:
        """P(X > record) under the prior predictive law."""
        return np.exp(betaln(self.alpha, self.beta + record + 1) - betaln(self.alpha, self.beta))

    def _far(self, probability) -> np.ndarray:
        """Predictive quantiles beyond the table's end, by bisection. They are infinite at probability 1."""
        low, high = np.full(probability.shape, _TABLE), np.full(probability.shape, 1e300)
        # 60 halvings of the logarithm reach its last digit.
        for _ in range(60):
            middle = np.sqrt(low) * np.sqrt(high)
            beyond = self._above(middle) > 1 - probability
            low, high = np.where(beyond, middle, low), np.where(beyond, high, middle)
        return np.where((probability == 1) | (self._above(1e300) > 1 - probability), np.inf, np.ceil(high))

    def record_moments(self, theta):
        """Mean (1 − θ)/θ and variance (1 − θ)/θ² of a record."""
        theta = np.asarray(theta, float)
        mean = (1 - theta) / theta
        return mean, mean / theta

    def record_log_partition(self, eta):
        """Log-partition A(η) = −ln(1 − e^η)."""
        return -np.log(-np.expm1(eta))

    def eta(self, theta) -> np.ndarray:
        """Natural parameter η = ln(1 − θ)."""
        return np.log1p(-np.asarray(theta, float))

    def theta_of(self, eta) -> np.ndarray:
        """Parameter θ = 1 − e^η."""
        return -np.expm1(eta)

    def segment_moments(self, theta, low, high):
        """Moments of a record in [low, high] in closed form.

        With q = 1 − θ and m integers in the interval, the mean is low + q/θ − m qᵐ/(1 − qᵐ) and the variance is
        q/θ² − m² qᵐ/(1 − qᵐ)².
        """
        theta = np.asarray(theta, float)
        low, log_q = np.maximum(np.ceil(low), 0.0), np.log1p(-theta)
        size = np.floor(high) - low + 1
        inside = -np.expm1(size * log_q)
        # An infinite interval has no records above it.
        size = np.where(np.isinf(size), 0.0, size)
        beyond = size * (1 - inside) / inside
        mean, variance = self.record_moments(theta)
        moments = low + mean - beyond, variance - beyond * (beyond + size)
        return SegmentMoments(np.exp(low * log_q) * inside, *moments)

    @classmethod
    def examples(cls) -> list[Self]:
        """A prior with θ around a third, and a wide prior."""
        return [cls(10, 20), cls(6, 4)]
