"""Gaussian mechanism on sufficient statistics, under Rényi DP."""

from dataclasses import dataclass, field, replace
from typing import ClassVar, Literal, Self

import numpy as np
from scipy.special import ndtr

from privpost.mechanisms.additive_noise import AdditiveNoiseMechanism, Coordinates
from privpost.models.base import check_positive
from privpost.models.beta_bernoulli import BetaBernoulli
from privpost.models.dirichlet_categorical import DirichletCategorical
from privpost.privacy.accounting import Cost
from privpost.privacy.approximate import gaussian_curve, gaussian_from_approximate
from privpost.privacy.checks import approximate_budget, check_choice, check_order, rdp_budget

# What the charge λΔ²/σ² is multiplied by: Geumlek et al. (2017) charge twice the exact divergence.
Variant = Literal["paper", "corrected"]
CHARGE = {"paper": 1.0, "corrected": 0.5}


@dataclass(frozen=True)
class GaussianMechanism(AdditiveNoiseMechanism):
    """Sufficient statistics plus independent N(0, σ²) noise.

    The exact Rényi DP parameter is λΔ²/(2σ²), Δ the L2 sensitivity (Mironov 2017, corollary 3), charged by
    `variant="corrected"`; Geumlek et al. (2017), section 5.1, charge λΔ²/σ² (`variant="paper"`). By default
    the last count is left out, as n is public: for bits Δ = 1.

    Attributes:
        sigma: standard deviation σ > 0 of the noise.
        order: order λ ≥ 1 at which `cost` is stated.
        variant: "corrected" or "paper".

    Raises:
        ValueError: a setting outside its range.

    >>> mechanism = GaussianMechanism.calibrate(BetaBernoulli(1, 1), 400, Cost("approximate", 0.5, delta=1e-6))
    >>> round(mechanism.sigma, 2)
    8.06
    """

    sigma: float
    order: float
    variant: Variant = field(default="corrected", kw_only=True)
    coordinates: Coordinates = field(default="free", kw_only=True)

    method: ClassVar[str] = "gaussian"
    norm: ClassVar[str] = "l2"
    notion: ClassVar[str] = "rdp"
    public_inputs: ClassVar[tuple[str, ...]] = ("n", "prior", "range of a record's statistics")
    calibrated: ClassVar[str] = "sigma"

    def __post_init__(self):
        super().__post_init__()
        check_positive("sigma", self.sigma)
        check_order(self.order)
        check_choice("variant", self.variant, tuple(CHARGE))

    @classmethod
    def calibrate(
        cls, model, n: int, budget: Cost, *, variant: Variant = "corrected", coordinates: Coordinates = "free"
    ) -> Self:
        """The smallest σ whose charge is within a Rényi budget, or whose privacy curve meets an (ε, δ) budget."""
        unit = cls(model, n, 1.0, getattr(budget, "order", None) or 2.0, variant=variant, coordinates=coordinates)
        if getattr(budget, "notion", None) == "approximate":
            return unit.recalibrated(budget)
        epsilon, _ = rdp_budget(budget, cls.method)
        return replace(unit, sigma=float(np.sqrt(unit.cost().epsilon / epsilon)))

    def noise(self, shape, rng) -> np.ndarray:
        """Normal variates of standard deviation σ."""
        return rng.normal(0.0, self.sigma, shape)

    def noise_cdf(self, value) -> np.ndarray | None:
        """Φ(value/σ)."""
        return ndtr(value / self.sigma)

    def cost(self) -> Cost:
        """(λ, ε)-RDP at the mechanism's order."""
        return Cost("rdp", float(self.rdp(self.order)), order=self.order)

    def rdp(self, orders) -> np.ndarray:
        """λΔ²/(2σ²), or twice that in the paper's variant, at each order."""
        return CHARGE[self.variant] * np.asarray(orders, float) * (self.sensitivity / self.sigma) ** 2

    def privacy_curve(self, epsilon) -> float:
        """`gaussian_curve` at μ = Δ/σ, of all variants."""
        return gaussian_curve(self.sensitivity / self.sigma, epsilon)

    def recalibrated(self, budget) -> Self:
        """By `gaussian_from_approximate`."""
        return replace(self, sigma=self.sensitivity * gaussian_from_approximate(*approximate_budget(budget)))

    def log_density(self, release, statistics) -> np.ndarray | None:
        """Log-density of the noisy coordinates (..., q) given the statistics (..., d)."""
        distance = (np.asarray(release, float) - self.select(statistics)) / self.sigma
        return (-0.5 * np.log(2 * np.pi) - np.log(self.sigma) - distance**2 / 2).sum(axis=-1)

    @classmethod
    def examples(cls) -> list[Self]:
        """Bits in both variants, and three categories."""
        bits, categories = BetaBernoulli(6, 12), DirichletCategorical((5, 5, 5))
        return [
            cls(bits, 8, 2.0, 2.0),
            cls(bits, 8, 2.0, 15.0, variant="paper"),
            cls(categories, 4, 3.0, 2.0),
            cls(categories, 4, 3.0, 1.0, coordinates="all"),
        ]
