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

# The charge is λΔ²/σ² times this factor. Geumlek et al. (2017) charge twice the exact divergence.
Variant = Literal["paper", "corrected"]
CHARGE = {"paper": 1.0, "corrected": 0.5}


@dataclass(frozen=True)
class GaussianMechanism(GaussianNoise, AdditiveNoiseMechanism):
    """Sufficient statistics plus independent N(0, σ²) noise.

    As n is public, the last count is left out by default. The L2 sensitivity is then Δ = 1 for binary data.

    Attributes:
        variant: "corrected" charges the exact Rényi DP parameter λΔ²/(2σ²) (Mironov 2017, corollary 3). "paper" charges
            λΔ²/σ² (Geumlek et al. 2017, section 5.1).

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
        """Return the mechanism with the smallest σ within a Rényi or (ε, δ) budget."""
        return super().calibrate(model, n, budget, variant=variant, coordinates=coordinates)

    def noise_cdf(self, value) -> np.ndarray | None:
        """Distribution function Φ(value/σ) of the noise."""
        return ndtr(value / self.sigma)

    def rdp(self, orders) -> np.ndarray:
        """Rényi DP parameter λΔ²/(2σ²) at each order λ. The variant "paper" doubles it."""
        return CHARGE[self.variant] * np.asarray(orders, float) * (self.sensitivity / self.sigma) ** 2

    @classmethod
    def examples(cls) -> list[Self]:
        """Binary data in both variants, and three categories."""
        bits, categories = BetaBernoulli(6, 12), DirichletCategorical((5, 5, 5))
        return [
            cls(bits, 8, 2.0, 2.0),
            cls(bits, 8, 2.0, 15.0, variant="paper"),
            cls(categories, 4, 3.0, 2.0),
            cls(categories, 4, 3.0, 1.0, coordinates="all"),
        ]
