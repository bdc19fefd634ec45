"""Gaussian noise on the second moments of features and label, under Rényi DP or (ε, δ)-DP."""

from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np

from privpost.mechanisms.noise.deviation import GaussianNoise
from privpost.mechanisms.noise.moments import NoisyMoments
from privpost.models.regression.normal import NormalRegression
from privpost.samplers.noise_aware.regression import Noise


@dataclass(frozen=True)
class MomentsGaussian(GaussianNoise, NoisyMoments):
    """Second moments plus N(0, σ²) noise in units of the bounds. Products of two features are multiplied by √2.

    For one feature, the L2 sensitivity is 2, attained by the records (1, 1) and (1, −1). For more features it is √4.5.
    To see this, let two records x, x′ have norms r, r′ ≤ 1 and labels q, q′. The squared distance of their moments is
    r⁴ + r′⁴ − 2(x·x′)² + r²q² + r′²q′² − 2(x·x′)qq′ + (q² − q′²)². For the worst x·x′ = −qq′/2, this is at most
    2 + q² + q′² + q⁴ + q′⁴ − 1.5 q²q′². This bound is convex in q² and in q′², so its maximum 4.5 is at a corner.

    Raises:
        ValueError: a setting is outside its range, or the model is not a NormalRegression.

    >>> round(MomentsGaussian(NormalRegression(2), 100, 3.0, 2.0).cost().epsilon, 6)
    0.5
    """

    products: ClassVar[float] = float(np.sqrt(2))

    @property
    def sensitivity(self) -> float:
        """L2 sensitivity: 2 for one feature, otherwise √4.5."""
        return 2.0 if self.model.dimension == 1 else float(np.sqrt(4.5))

    @property
    def noise_law(self) -> Noise:
        """Normal law of standard deviation σ, converted to the data's units."""
        return Noise("gaussian", self.sigma / self.units)

    @classmethod
    def examples(cls) -> list[Self]:
        """One feature, with unit bounds or with other bounds."""
        return [
            cls(NormalRegression(1), 3, 2.0, 2.0),
            cls(NormalRegression(1, feature_bound=2.0, label_bound=0.5), 2, 3.0, 1.0),
        ]
