"""Gaussian mechanism on sufficient statistics, under Rényi DP."""

from dataclasses import dataclass, field
from typing import ClassVar, Literal, Self

import numpy as np
from scipy.special import ndtr

from privpost.mechanisms.noise.additive import AdditiveNoiseMechanism, Coordinates
from privpost.mechanisms.noise.deviation import GaussianNoise
from privpost.models.conjugate.beta_bernoulli import BetaBernoulli
from privpost.models.conjugate.dirichlet_categorical import DirichletCategorical
from privpost.privacy.accounting.costs import Cost
from privpost.privacy.checks import check_choice

# What the charge λΔ²/σ² is multiplied by: Geumlek et al. (2017) charge twice the exact divergence.
Variant = Literal["paper", "corrected"]
CHARGE = {"paper": 1.0, "corrected": 0.5}


@dataclass(frozen=True)
class GaussianMechanism(GaussianNoise, AdditiveNoiseMechanism):
    """Sufficient statistics plus independent N(0, σ²) noise.

    The exact Rényi DP parameter is λΔ²/(2σ²), Δ the L2 sensitivity (Mironov 2017, corollary 3), charged by
    `variant="corrected"`; Geumlek et al. (2017), section 5.1, charge λΔ²/σ² (`variant="paper"`). By default
    the last count is left out, as n is public: for bits Δ = 1.

    Attributes:
        variant: "corrected" or "paper".

    Raises:
        ValueError: a setting outside its range.

    >>> mechanism = GaussianMechanism.calibrate(BetaBernoulli(1, 1), 400, Cost("approximate", 0.5, delta=1e-6))
    >>> round(mechanism.sigma, 2)
    8.06
    """

    variant: Variant = field(default="corrected", kw_only=True)
    coordinates: Coordinates = field(default="free", kw_only=True)

    public_inputs: ClassVar[tuple[str, ...]] = ("n", "prior", "range of a record's statistics")

    def __post_init__(self):
        super().__post_init__()
        check_choice("variant", self.variant, tuple(CHARGE))

    @classmethod
    def calibrate(
        cls, model, n: int, budget: Cost, *, variant: Variant = "corrected", coordinates: Coordinates = "free"
    ) -> Self:
        """The smallest σ whose charge is within a Rényi budget, or whose privacy curve meets an (ε, δ) budget."""
        return super().calibrate(model, n, budget, variant=variant, coordinates=coordinates)

    def noise_cdf(self, value) -> np.ndarray | None:
        """Φ(value/σ)."""
        return ndtr(value / self.sigma)

    def rdp(self, orders) -> np.ndarray:
        """λΔ²/(2σ²), or twice that in the paper's variant, at each order."""
        return CHARGE[self.variant] * np.asarray(orders, float) * (self.sensitivity / self.sigma) ** 2

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
