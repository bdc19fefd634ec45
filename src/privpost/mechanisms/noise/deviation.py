"""Base classes of mechanisms with normal noise, or with other noise that has the same Rényi divergences."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np

from privpost.mechanisms.base import Mechanism
from privpost.models.base import check_scale
from privpost.privacy.accounting.approximate import gaussian_curve, gaussian_from_approximate
from privpost.privacy.accounting.costs import Cost
from privpost.privacy.accounting.losses import Normal
from privpost.privacy.checks import approximate_budget, check_order, rdp_budget


@dataclass(frozen=True)
class NoiseOfDeviation(Mechanism):
    """Base of mechanisms whose noise has the Rényi divergences of normal noise, for L2 sensitivity Δ.

    Attributes:
        sigma: standard deviation σ > 0 of the normal noise.
        order: order λ ≥ 1 at which `cost` is stated.

    Raises:
        ValueError: a setting is outside its range, or the model is not supported.
    """

    sigma: float
    order: float

    norm: ClassVar[str] = "l2"
    notion: ClassVar[str] = "rdp"
    calibrated: ClassVar[str] = "sigma"

    def __post_init__(self):
        super().__post_init__()
        check_scale(sigma=self.sigma)
        check_order(self.order)

    @classmethod
    def calibrate(cls, model, n: int, budget: Cost, **options) -> Self:
        """Return the mechanism with the smallest σ within a Rényi or (ε, δ) budget."""
        unit = cls(model, n, 1.0, getattr(budget, "order", None) or 2.0, **options)
        if getattr(budget, "notion", None) != "approximate":
            epsilon, _ = rdp_budget(budget, cls.method)
            return replace(unit, sigma=math.sqrt(unit.cost().epsilon / epsilon))
        if (mechanism := unit.recalibrated(budget)) is None:
            raise ValueError(f"budget is {budget}; no privacy curve of {cls.method} meets it: its notion must be 'rdp'")
        return mechanism

    def cost(self) -> Cost:
        """The cost (λ, ε)-RDP at the mechanism's order λ."""
        return Cost("rdp", float(self.rdp(self.order)), order=self.order)

    def rdp(self, orders) -> np.ndarray:
        """Rényi DP parameter λΔ²/(2σ²) at each order λ (Mironov 2017, corollary 3)."""
        return np.asarray(orders, float) * (self.sensitivity / self.sigma) ** 2 / 2


@dataclass(frozen=True)
class GaussianNoise(NoiseOfDeviation):
    """Base of mechanisms that add N(0, σ²) noise to each coordinate that `select` returns."""

    method: ClassVar[str] = "gaussian"
    # This function returns the released coordinates (..., q) of statistics (..., d). Another base class defines it.
    select: ClassVar[Callable[..., np.ndarray]]

    def noise(self, shape, rng) -> np.ndarray:
        """Draw normal noise of standard deviation σ."""
        return rng.normal(0.0, self.sigma, shape)

    @property
    def loss(self) -> Normal:
        """Bound on the privacy loss of a release, as a law from `losses`: `Normal` with the shift Δ/σ."""
        return Normal(float(self.sensitivity / self.sigma))

    def privacy_curve(self, epsilon) -> float:
        """δ(ε) from `gaussian_curve` at μ = Δ/σ."""
        return gaussian_curve(self.sensitivity / self.sigma, epsilon)

    def recalibrated(self, budget) -> Self:
        """Return the mechanism with the smallest σ within an (ε, δ) budget."""
        return replace(self, sigma=self.sensitivity * gaussian_from_approximate(*approximate_budget(budget)))

    def log_density(self, release, statistics) -> np.ndarray | None:
        """Log-density of the noisy coordinates (..., q) given the statistics (..., d)."""
        distance = (np.asarray(release, float) - self.select(statistics)) / self.sigma
        return (-0.5 * np.log(2 * np.pi) - np.log(self.sigma) - distance**2 / 2).sum(axis=-1)
