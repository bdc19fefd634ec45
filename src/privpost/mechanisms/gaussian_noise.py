"""The common base of mechanisms that add independent normal noise of one standard deviation."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np

from privpost.mechanisms.base import Mechanism
from privpost.models.base import check_positive
from privpost.privacy.accounting import Cost
from privpost.privacy.approximate import gaussian_curve, gaussian_from_approximate
from privpost.privacy.checks import approximate_budget, check_order, rdp_budget
from privpost.privacy.losses import Normal


@dataclass(frozen=True)
class GaussianNoise(Mechanism):
    """A mechanism whose release is the `select`ed statistics plus N(0, σ²) noise on each, Δ their L2 sensitivity.

    Attributes:
        sigma: standard deviation σ > 0 of the noise.
        order: order λ ≥ 1 at which `cost` is stated.

    Raises:
        ValueError: a setting outside its range, or an unsupported model.
    """

    sigma: float
    order: float

    method: ClassVar[str] = "gaussian"
    norm: ClassVar[str] = "l2"
    notion: ClassVar[str] = "rdp"
    calibrated: ClassVar[str] = "sigma"
    # The released coordinates (..., q) of statistics (..., d), defined by the other base class.
    select: ClassVar[Callable[..., np.ndarray]]

    def __post_init__(self):
        super().__post_init__()
        check_positive("sigma", self.sigma)
        check_order(self.order)

    @classmethod
    def calibrate(cls, model, n: int, budget: Cost, **options) -> Self:
        """The smallest σ within a Rényi budget, or whose privacy curve meets an (ε, δ) budget (Balle and Wang 2018)."""
        unit = cls(model, n, 1.0, getattr(budget, "order", None) or 2.0, **options)
        if getattr(budget, "notion", None) == "approximate":
            return unit.recalibrated(budget)
        epsilon, _ = rdp_budget(budget, cls.method)
        return replace(unit, sigma=float(np.sqrt(unit.cost().epsilon / epsilon)))

    def noise(self, shape, rng) -> np.ndarray:
        """Normal variates of standard deviation σ."""
        return rng.normal(0.0, self.sigma, shape)

    def cost(self) -> Cost:
        """(λ, ε)-RDP at the mechanism's order."""
        return Cost("rdp", float(self.rdp(self.order)), order=self.order)

    def rdp(self, orders) -> np.ndarray:
        """λΔ²/(2σ²) at each order (Mironov 2017, corollary 3)."""
        return np.asarray(orders, float) * (self.sensitivity / self.sigma) ** 2 / 2

    @property
    def loss(self) -> Normal:
        """The normal law of deviation 1 that neighbours shift by Δ/σ."""
        return Normal(float(self.sensitivity / self.sigma))

    def privacy_curve(self, epsilon) -> float:
        """`gaussian_curve` at μ = Δ/σ."""
        return gaussian_curve(self.sensitivity / self.sigma, epsilon)

    def recalibrated(self, budget) -> Self:
        """Recalibrated by `gaussian_from_approximate`."""
        return replace(self, sigma=self.sensitivity * gaussian_from_approximate(*approximate_budget(budget)))

    def log_density(self, release, statistics) -> np.ndarray | None:
        """Log-density of the noisy coordinates (..., q) given the statistics (..., d)."""
        distance = (np.asarray(release, float) - self.select(statistics)) / self.sigma
        return (-0.5 * np.log(2 * np.pi) - np.log(self.sigma) - distance**2 / 2).sum(axis=-1)
