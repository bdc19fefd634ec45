"""What posterior samples under Rényi DP share: direct, diffused and concentrated sampling, whatever the model."""

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from privpost.mechanisms.base import SamplingMechanism
from privpost.privacy.accounting import Cost
from privpost.privacy.checks import check_coefficient, check_model, check_order, rdp_budget, with_needed
from privpost.privacy.renyi import largest_coefficient


@dataclass(frozen=True)
class WeightedPosterior(SamplingMechanism):
    """One draw from a posterior whose likelihood or prior is weighted, with a Rényi guarantee (Geumlek et al. 2017).

    Attributes:
        order: order λ ≥ 1 at which `cost` is stated.

    Raises:
        ValueError: an order below 1.
    """

    order: float

    notion: ClassVar[str] = "rdp"

    def __post_init__(self):
        super().__post_init__()
        check_order(self.order)

    @property
    def r(self) -> float:
        """Weight of the likelihood, in (0, 1]; 1 unless a mechanism lowers it."""
        return 1.0

    @property
    def m(self) -> float:
        """What the prior's natural parameters are divided by, in (0, 1]; 1 unless a mechanism lowers it."""
        return 1.0

    def cost(self):
        """(λ, ε)-RDP at the mechanism's order; ε is inf where it has none."""
        return Cost("rdp", float(self.rdp(self.order)), order=self.order)


class ConjugateSampling(WeightedPosterior):
    """A weighted posterior of a conjugate model, which is a member of the prior's family.

    Raises:
        ValueError: a weight outside (0, 1].
    """

    norm: ClassVar[str] = "natural parameters"

    def __post_init__(self):
        super().__post_init__()
        check_coefficient(self.r)
        check_coefficient(self.m)

    @staticmethod
    @abstractmethod
    def supremum_over_neighbours(model, n: int, orders, r=1.0, m=1.0, **options) -> np.ndarray:
        """Supremum of the Rényi divergence between neighbours' laws; orders and weights broadcast."""

    def rdp(self, orders):
        """Supremum of the Rényi divergence over neighbours at each order; inf from the asymptote on."""
        return self.supremum_over_neighbours(self.model, self.n, orders, self.r, self.m, **self.options)

    def log_density(self, release, statistics):
        """Log-density of the draw given the statistics."""
        return self.model.log_density(release, self.release_law(statistics))

    def query(self, data):
        """Natural parameters of the distribution that the release is drawn from."""
        return self.model.natural_parameters(self.release_law(self.model.sufficient_statistics(data)))

    def release_law(self, statistics) -> np.ndarray:
        """Parameters (..., k) of the distribution that the release is drawn from, for statistics (..., d)."""
        return self.model.posterior(self.r * np.asarray(statistics, float), self.model.prior / self.m)

    def _perturb(self, statistics, rng):
        """One draw of θ per leading index."""
        return self.model.sample(self.release_law(statistics), rng)


@dataclass(frozen=True)
class Direct(WeightedPosterior):
    """One draw from the true posterior (algorithm 1), which has nothing to calibrate."""

    method: ClassVar[str] = "direct"
    calibrated: ClassVar[None] = None
    coefficient: ClassVar[float] = 1.0

    @classmethod
    def calibrate(cls, model, n: int, budget: Cost, **options) -> Self:
        """The mechanism itself, if its cost is within the budget.

        Raises:
            ValueError: the budget is not a Rényi budget, or below the cost of the direct posterior.
        """
        options = with_needed(cls, options)
        _, order = rdp_budget(budget, cls.method)
        mechanism = cls(model, n, order, **options)
        if not mechanism.cost().within(budget):
            raise ValueError(f"budget is {budget}; the direct posterior costs {mechanism.cost()}")
        return mechanism


@dataclass(frozen=True)
class Calibrated(WeightedPosterior):
    """A weighted posterior whose one coefficient is calibrated.

    Attributes:
        coefficient: the weight.

    Class attributes:
        weight: which of `r` and `m` it is.
    """

    coefficient: float

    calibrated: ClassVar[str] = "coefficient"
    weight: ClassVar[str]

    @classmethod
    def coefficient_within(cls, model, n: int, order: float, epsilon: float, **options) -> float:
        """The coefficient nearest to the true posterior at which a draw is (λ, ε)-RDP.

        The largest one, by bisection, unless a mechanism that is not of a conjugate model replaces it.
        """
        conjugate: Any = cls

        def divergence(value):
            return conjugate.supremum_over_neighbours(model, n, order, **{cls.weight: value}, **options)

        return float(largest_coefficient(divergence, epsilon))

    @classmethod
    def calibrate(cls, model, n: int, budget: Cost, **options) -> Self:
        """The draw nearest to the true posterior's within a Rényi budget."""
        options = with_needed(cls, options)
        epsilon, order = rdp_budget(budget, cls.method)
        check_model(model, cls.models)
        return cls(model, n, order, float(cls.coefficient_within(model, n, order, epsilon, **options)), **options)


@dataclass(frozen=True)
class Diffused(Calibrated):
    """The likelihood counts r times, r the coefficient in (0, 1] (algorithms 2 and 5)."""

    method: ClassVar[str] = "diffused"
    weight: ClassVar[str] = "r"

    @property
    def r(self):
        """The coefficient."""
        return self.coefficient


@dataclass(frozen=True)
class Concentrated(Calibrated):
    """The prior counts 1/m times, m the coefficient in (0, 1] (algorithms 3 and 4)."""

    method: ClassVar[str] = "concentrated"
    weight: ClassVar[str] = "m"

    @property
    def m(self):
        """The coefficient."""
        return self.coefficient
