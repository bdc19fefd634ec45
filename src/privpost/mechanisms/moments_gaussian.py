"""Gaussian noise on the second moments of features and label, under Rényi DP or (ε, δ)-DP."""

from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np

from privpost.mechanisms.noisy_moments import NoisyMoments
from privpost.models.base import check_positive
from privpost.models.normal_regression import NormalRegression
from privpost.privacy.accounting import Cost
from privpost.privacy.approximate import gaussian_curve, gaussian_from_approximate
from privpost.privacy.checks import approximate_budget, check_order, rdp_budget
from privpost.samplers.noise_aware_regression import Noise


@dataclass(frozen=True)
class MomentsGaussian(NoisyMoments):
    """Second moments plus independent N(0, σ²) noise in units of the bounds, products of two features times √2.

    Of one feature the L2 sensitivity is 2, from (1, 1) to (1, −1). Of more it is √4.5: for records of norms r, r′ ≤ 1
    and labels q, q′ the squared distance is r⁴ + r′⁴ − 2(x·x′)² + r²q² + r′²q′² − 2(x·x′)qq′ + (q² − q′²)², at the
    worst x·x′ = −qq′/2 at most 2 + q² + q′² + q⁴ + q′⁴ − 1.5 q²q′², which is convex in q² and in q′².

    Attributes:
        sigma: standard deviation σ > 0 of the noise, in units of the bounds.
        order: order λ ≥ 1 at which `cost` is stated.

    Raises:
        ValueError: a setting outside its range, or another model than NormalRegression.

    >>> round(MomentsGaussian(NormalRegression(2), 100, 3.0, 2.0).cost().epsilon, 6)
    0.5
    """

    sigma: float
    order: float

    products: ClassVar[float] = float(np.sqrt(2))
    method: ClassVar[str] = "gaussian"
    norm: ClassVar[str] = "l2"
    notion: ClassVar[str] = "rdp"
    calibrated: ClassVar[str] = "sigma"

    def __post_init__(self):
        super().__post_init__()
        check_positive("sigma", self.sigma)
        check_order(self.order)

    @classmethod
    def calibrate(cls, model, n: int, budget: Cost) -> Self:
        """The smallest σ within a Rényi budget, or whose privacy curve meets an (ε, δ) budget (Balle and Wang 2018)."""
        unit = cls(model, n, 1.0, getattr(budget, "order", None) or 2.0)
        if getattr(budget, "notion", None) == "approximate":
            return unit.recalibrated(budget)
        epsilon, _ = rdp_budget(budget, cls.method)
        return replace(unit, sigma=float(np.sqrt(unit.cost().epsilon / epsilon)))

    @property
    def sensitivity(self) -> float:
        """2 for one feature, else √4.5."""
        return 2.0 if self.model.dimension == 1 else float(np.sqrt(4.5))

    def noise(self, shape, rng) -> np.ndarray:
        """Normal variates of standard deviation σ."""
        return rng.normal(0.0, self.sigma, shape)

    @property
    def noise_law(self) -> Noise:
        """Normal noise of standard deviation σ times the units of each coordinate."""
        return Noise("gaussian", self.sigma / self.units)

    def cost(self) -> Cost:
        """(λ, ε)-RDP at the mechanism's order."""
        return Cost("rdp", float(self.rdp(self.order)), order=self.order)

    def rdp(self, orders) -> np.ndarray:
        """λΔ²/(2σ²) at each order (Mironov 2017, corollary 3)."""
        return np.asarray(orders, float) * (self.sensitivity / self.sigma) ** 2 / 2

    def privacy_curve(self, epsilon) -> float:
        """`gaussian_curve` at μ = Δ/σ."""
        return gaussian_curve(self.sensitivity / self.sigma, epsilon)

    def recalibrated(self, budget) -> Self:
        """By `gaussian_from_approximate`."""
        return replace(self, sigma=self.sensitivity * gaussian_from_approximate(*approximate_budget(budget)))

    def log_density(self, release, statistics) -> np.ndarray | None:
        """Log-density of the release (..., q) given the statistics."""
        distance = (np.asarray(release, float) - self.select(statistics)) / self.sigma
        return (-0.5 * np.log(2 * np.pi) - np.log(self.sigma) - distance**2 / 2).sum(axis=-1)

    @classmethod
    def examples(cls) -> list[Self]:
        """One feature, with unit bounds and others."""
        return [
            cls(NormalRegression(1), 3, 2.0, 2.0),
            cls(NormalRegression(1, feature_bound=2.0, label_bound=0.5), 2, 3.0, 1.0),
        ]
