"""Pareto records of known scale with a gamma prior on their shape."""

from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np

from privpost.models.base import check_positive
from privpost.models.conjugate.gamma_exponential import GammaExponential


@dataclass(frozen=True)
class GammaPareto(GammaExponential):
    """A record is x ~ Pareto(shape θ) on [scale, ∞), with the prior θ ~ Gamma(shape, rate).

    Statistics are (Σ ln(x/scale), n). The logarithm ln(x/scale) is exponential with rate θ, like a record of
    `GammaExponential`.

    Attributes:
        scale: public smallest record, > 0.

    Raises:
        ValueError: a field that is not positive and finite.

    >>> GammaPareto(2, 2).posterior([14.0, 10.0])
    array([12., 16.])
    """

    scale: float = 1.0

    family: ClassVar[str] = "pareto"
    # θ is the rate of t(x), not of x.
    theta_is_rate: ClassVar[bool] = False

    def __post_init__(self):
        super().__post_init__()
        check_positive("scale", self.scale)

    @property
    def record_support(self):
        """Ends of the interval [scale, ∞) of possible records."""
        return (self.scale, np.inf)

    def statistic(self, x) -> np.ndarray:
        """Statistic ln(x/scale) of a record x, which is −inf for x ≤ 0."""
        with np.errstate(divide="ignore"):
            return np.log(np.maximum(x, 0.0) / self.scale)

    def sample_data(self, theta, n, rng) -> np.ndarray:
        """Draws of n records per θ, shape (..., n)."""
        return self.scale * np.exp(super().sample_data(theta, n, rng))

    def cdf(self, x, theta) -> np.ndarray:
        """Distribution function 1 − (x/scale)^(−θ) of a record, and 0 for x < scale."""
        return super().cdf(self.statistic(x), theta)

    def quantile(self, probability, theta) -> np.ndarray:
        """Quantile scale (1 − probability)^(−1/θ) of a record."""
        return self.scale * np.exp(super().quantile(probability, theta))

    def predictive_quantile(self, probability) -> np.ndarray:
        """Quantile of a record under the prior predictive law."""
        return self.scale * np.exp(super().predictive_quantile(probability))

    def segment_moments(self, theta, low, high):
        """Moments of ln(x/scale) for a record x in [low, high], in closed form."""
        return super().segment_moments(theta, self.statistic(low), self.statistic(high))

    @classmethod
    def examples(cls) -> list[Self]:
        """Records ≥ 1 with heavy tails, and records ≥ 2 with light tails."""
        return [cls(8, 2), cls(20, 5, 2.0)]
