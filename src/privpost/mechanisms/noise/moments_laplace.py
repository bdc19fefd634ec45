"""Laplace noise on the second moments of features and label."""

from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np

from privpost.mechanisms.noise.moments import NoisyMoments
from privpost.mechanisms.pure import PureMechanism
from privpost.models.regression.normal import NormalRegression
from privpost.samplers.noise_aware.regression import Noise


@dataclass(frozen=True)
class MomentsLaplace(PureMechanism, NoisyMoments):
    """Second moments in units of the bounds, plus independent Laplace noise of scale Δ/ε.

    The release is ε-DP (Bernstein and Sheldon 2019, section 3). For one feature, the L1 sensitivity is Δ = 3, attained
    by the records (1, 1) and (0, 0). For d > 1 features, the Cauchy-Schwarz inequality bounds Δ by
    √(d(d − 1)/4 + 2d + 1) times the L2 sensitivity √4.5 of `MomentsGaussian`, which multiplies products of two features
    by √2.

    Attributes:
        epsilon: ε > 0, the cost of one release.

    Raises:
        ValueError: a setting is outside its range, or the model is not a NormalRegression.

    >>> MomentsLaplace.calibrate(NormalRegression(1), 100, Cost("pure", 1.5)).scale
    2.0
    """

    method: ClassVar[str] = "laplace"
    norm: ClassVar[str] = "l1"
    # For several features the sensitivity is only an upper bound.
    tight: ClassVar[bool] = False

    @property
    def sensitivity(self) -> float:
        """L1 sensitivity: 3 for one feature, otherwise the upper bound √(4.5 (d(d − 1)/4 + 2d + 1))."""
        d = self.model.dimension
        return 3.0 if d == 1 else float(np.sqrt(4.5 * (d * (d - 1) / 4 + 2 * d + 1)))

    @property
    def scale(self) -> float:
        """Scale Δ/ε of the noise in units of the bounds."""
        return self.sensitivity / self.epsilon

    def noise(self, shape, rng) -> np.ndarray:
        """Draw Laplace noise of scale Δ/ε."""
        return rng.laplace(0.0, self.scale, shape)

    @property
    def noise_law(self) -> Noise:
        """Laplace law of scale Δ/ε, converted to the data's units."""
        return Noise("laplace", self.scale / self.units)

    def log_density(self, release, statistics) -> np.ndarray | None:
        """Log-density of the release (..., q) given the statistics."""
        distance = np.abs(np.asarray(release, float) - self.select(statistics))
        return (-np.log(2 * self.scale) - distance / self.scale).sum(axis=-1)

    @classmethod
    def examples(cls) -> list[Self]:
        """One feature with unit bounds, one with other bounds, and two features."""
        return [
            cls(NormalRegression(1), 4, 1.0),
            cls(NormalRegression(1, feature_bound=2.0, label_bound=0.5), 4, 0.5),
            cls(NormalRegression(2), 2, 1.0),
        ]
