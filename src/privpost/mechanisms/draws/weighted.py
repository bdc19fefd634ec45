"""Base classes of posterior draws whose prior or likelihood is weighted, under Rényi DP."""

from abc import abstractmethod
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, Self

import numpy as np

from privpost.mechanisms.base import Mechanism
from privpost.privacy.accounting.costs import Cost
from privpost.privacy.checks import LARGEST, check_choice, check_coefficient, check_model, check_order, rdp_budget
from privpost.privacy.divergences.renyi import largest_coefficient

Weighting = Literal["direct", "diffused", "concentrated"]


@dataclass(frozen=True)
class WeightedPosterior(Mechanism):
    """One draw from a posterior whose likelihood or prior is weighted, with a Rényi guarantee (Geumlek et al. 2017).

    Attributes:
        order: order λ ≥ 1 at which `cost` is stated.
        weighting: "direct" draws from the true posterior (algorithm 1). "diffused" weights the likelihood by `r`
            (algorithms 2 and 5). "concentrated" weights the prior by 1/`m` (algorithms 3 and 4).

    Class attributes:
        named: the mechanism's name in ledgers and tables, where {} stands for the weighting.

    Raises:
        ValueError: the order is below 1, the class lacks the weighting, or the coefficient is outside its range.
    """

    order: float
    weighting: str = field(kw_only=True)

    notion: ClassVar[str] = "rdp"
    releases: ClassVar[str] = "sample"
    weightings: ClassVar[tuple[str, ...]] = ("concentrated", "diffused", "direct")
    named: ClassVar[str]

    def __post_init__(self):
        super().__post_init__()
        check_order(self.order)
        check_choice("weighting", self.weighting, self.weightings)
        if self.weighting == "direct" and self.coefficient != 1:
            raise ValueError(f"coefficient is {self.coefficient!r}; a direct draw has none, so it must be 1")

    @property
    @abstractmethod
    def coefficient(self) -> float:
        """The weight r or m, which is a field of each subclass. It is 1 for a direct draw."""

    @property
    def method(self) -> str:
        """The method's id, which is the weighting."""
        return self.weighting

    @property
    def calibrated(self) -> str | None:
        """The field that `calibrate` determines: "coefficient", or None for a direct draw."""
        return None if self.weighting == "direct" else "coefficient"

    @property
    def options(self):
        """The settings that `calibrate` takes besides model, n and budget."""
        hidden = {"coefficient"} if len(self.weightings) > 1 else {"coefficient", "weighting"}
        return {name: value for name, value in super().options.items() if name not in hidden}

    @property
    def name(self) -> str:
        """The mechanism's name in ledgers and tables. Each weighting has a separate name."""
        return self.named.format(self.weighting.capitalize())

    @property
    def recorded(self):
        """Name, module and settings that a ledger records. Each weighting has a separate name."""
        name, module, settings = super().recorded
        hidden = {"weighting"} if self.calibrated else {"weighting", "coefficient"}
        return name, module, {setting: value for setting, value in settings.items() if setting not in hidden}

    @property
    def r(self) -> float:
        """Weight of the likelihood, in (0, 1]."""
        return self.coefficient if self.weighting == "diffused" else 1.0

    @property
    def m(self) -> float:
        """Divisor of the prior's natural parameters, in (0, 1]."""
        return self.coefficient if self.weighting == "concentrated" else 1.0

    def cost(self) -> Cost:
        """Cost of one draw, (λ, ε)-RDP at the mechanism's order λ. Without a guarantee, ε is inf."""
        epsilon: Any = self.rdp(self.order)
        return Cost("rdp", float(epsilon), order=self.order)

    @classmethod
    @abstractmethod
    def coefficient_within(cls, model, n: int, order: float, epsilon: float, *, weighting: str, **options) -> float:
        """Return the coefficient of the (λ, ε)-RDP draw that is nearest to the true posterior."""

    @classmethod
    def _within(cls, model, n: int, budget: Cost, **options: Any) -> Self:
        """Return the calibrated mechanism. The `calibrate` of each subclass calls this method."""
        kind: Any = cls
        # A class with only one weighting needs no argument that names this weighting.
        weighting = options.setdefault("weighting", cls.weightings[0])
        check_choice("weighting", weighting, cls.weightings)
        check_model(model, cls.models)
        if getattr(budget, "notion", None) == "approximate":
            return cls._by_curve(model, n, budget, **options)
        epsilon, order = rdp_budget(budget, weighting)
        if weighting != "direct":
            return kind(model, n, order, float(cls.coefficient_within(model, n, order, epsilon, **options)), **options)
        mechanism = kind(model, n, order, **options)
        if not mechanism.cost().within(budget):
            raise ValueError(f"budget is {budget}; the direct posterior costs {mechanism.cost()}")
        return mechanism

    @classmethod
    def _by_curve(cls, model, n: int, budget: Cost, **options: Any) -> Self:
        kind: Any = cls
        weighting = options["weighting"]
        coefficient = 1.0 if weighting == "direct" else cls.coefficient_within(model, n, 2.0, LARGEST, **options)
        mechanism = kind(model, n, 2.0, float(coefficient), **options).recalibrated(budget)
        if mechanism is None:
            raise ValueError(f"budget is {budget}; no privacy curve of {weighting} meets it: its notion must be 'rdp'")
        return mechanism


@dataclass(frozen=True)
class ConjugateDraw(WeightedPosterior):
    """One draw from the weighted posterior of a conjugate model.

    The coefficient is `r` of a diffused draw, or `m` of a concentrated draw. It lies in (0, 1].
    """

    norm: ClassVar[str] = "natural parameters"

    def __post_init__(self):
        super().__post_init__()
        check_coefficient(self.coefficient)

    @staticmethod
    @abstractmethod
    def supremum_over_neighbours(model, n: int, orders, r=1.0, m=1.0, **options) -> np.ndarray:
        """Supremum of the Rényi divergence between the draws' laws for neighbours. Orders and weights broadcast."""

    @classmethod
    def coefficient_within(cls, model, n, order, epsilon, *, weighting, **options):
        """Return the largest coefficient within the budget, by bisection."""
        weight = "r" if weighting == "diffused" else "m"

        def divergence(value):
            return cls.supremum_over_neighbours(model, n, order, **{weight: value}, **options)

        return float(largest_coefficient(divergence, epsilon))

    def rdp(self, orders) -> np.ndarray:
        """Supremum of the Rényi divergence over neighbours at each order. It is inf at and above the asymptote."""
        options = {name: value for name, value in self.options.items() if name != "weighting"}
        return self.supremum_over_neighbours(self.model, self.n, orders, self.r, self.m, **options)

    def log_density(self, release, statistics) -> np.ndarray | None:
        """Log-density of the draw given the statistics."""
        return self.model.log_density(release, self.release_law(statistics))

    def query(self, data) -> np.ndarray:
        """Natural parameters of the distribution that the release is drawn from."""
        return self.model.natural_parameters(self.release_law(self.model.sufficient_statistics(data)))

    def release_law(self, statistics) -> np.ndarray:
        """Parameters (..., k) of the distribution that the release is drawn from, for statistics (..., d)."""
        return self.model.posterior(self.r * np.asarray(statistics, float), self.model.prior / self.m)

    def _perturb(self, statistics, rng):
        """Return one draw of θ per leading index."""
        return self.model.sample(self.release_law(statistics), rng)
