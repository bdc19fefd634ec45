"""One draw from the posterior of a logistic regression on a ball (OPS) under pure DP."""

from dataclasses import dataclass, field, replace
from typing import ClassVar, Self

import numpy as np

from privpost.mechanisms.logistic_sampling import LogisticSampling
from privpost.mechanisms.pure import PureMechanism
from privpost.models.binary_regression import BinaryRegression
from privpost.privacy.accounting import Cost, at_most
from privpost.privacy.approximate import pure_curve, pure_from_approximate
from privpost.privacy.checks import check_choice, pure_epsilon
from privpost.privacy.glm import OPS_FACTOR, Charge, ops_pure_epsilon, ops_rdp


@dataclass(frozen=True)
class LogisticOps(PureMechanism, LogisticSampling):
    """One draw with the prior truncated to ‖w‖ ≤ c/β and the likelihood to a power ρ: pure 2c²ρ/β-DP.

    On the ball a record's log-likelihood varies by at most c²/β; Wang et al. (2015) charge twice that, and Geumlek et
    al. (2017), section 5.2, charge this pure ε at every order (`charge="paper"`).

    Attributes:
        epsilon: ε > 0 that one draw may cost.
        charge: "corrected_charge", or "paper".

    >>> round(LogisticOps.calibrate(BinaryRegression(2, 0.1), 100, Cost("pure", 1.0)).power, 3)
    0.05
    """

    charge: Charge = field(default="corrected_charge", kw_only=True)

    method: ClassVar[str] = "ops"
    norm: ClassVar[str] = "log-likelihood ratio"

    def __post_init__(self):
        super().__post_init__()
        check_choice("charge", self.charge, tuple(OPS_FACTOR))

    @classmethod
    def calibrate(
        cls, model, n: int, budget: Cost, *, charge: Charge = "corrected_charge", constant_time: bool = True
    ) -> Self:
        """The largest ρ within the budget; a Rényi budget through `rdp_to_pure_epsilon`, or as the paper does."""
        as_pure = Cost("pure", budget.epsilon) if charge == "paper" and budget.notion == "rdp" else budget
        return cls(model, n, pure_epsilon(as_pure, cls.method), charge=charge, constant_time=constant_time)

    @property
    def power(self) -> float:
        """min{1, εβ/(2c²)}, or with 4 in place of 2 as the paper charges."""
        return min(1.0, self.epsilon / float(self._pure(1.0)))

    def _pure(self, power) -> np.ndarray:
        return ops_pure_epsilon(power, self.precision, self.model.feature_bound, self.charge)

    @property
    def coefficient(self):
        """The power ρ of the likelihood."""
        return self.power

    @property
    def precision(self) -> float:
        """β of the model."""
        return self.model.prior_precision

    @property
    def radius(self) -> float:
        """c/β."""
        return self.model.feature_bound / self.precision

    @property
    def sensitivity(self) -> float:
        """ρc²/β, the largest change of the tempered log-likelihood on the ball."""
        return self.power * self.model.feature_bound * self.radius

    def query(self, data) -> np.ndarray:
        """Tempered log-likelihood on the axes of the ball, 21 points each with both ends, shape (21 d,)."""
        steps = np.linspace(-self.radius, self.radius, 21)
        points = (steps[:, None, None] * np.eye(self.model.dimension)).reshape(-1, self.model.dimension)
        return self.power * self.model.log_likelihood(points, self.model.sufficient_statistics(data))

    def privacy_curve(self, epsilon) -> float:
        """That of randomised response at the pure ε."""
        return pure_curve(float(self._pure(self.power)), epsilon)

    def recalibrated(self, budget) -> Self | None:
        """The largest pure ε."""
        found = replace(self, epsilon=pure_from_approximate(budget.epsilon, budget.delta))
        # Rounding of ε0 − ε takes it over a small δ.
        while not at_most(found.privacy_curve(budget.epsilon), budget.delta):
            found = replace(found, epsilon=float(np.nextafter(found.epsilon, 0.0)))
        return found

    def cost(self) -> Cost:
        """2c²ρ/β (the paper: 4c²ρ/β), which is ε or, at ρ = 1, less."""
        return Cost("pure", float(self._pure(self.power)))

    def rdp(self, orders) -> np.ndarray:
        """What pure DP implies at each order; by the paper's charge the pure ε itself."""
        return ops_rdp(orders, self.power, self.precision, self.model.feature_bound, self.charge)

    @classmethod
    def examples(cls) -> list[Self]:
        """One weight and two."""
        return [cls(BinaryRegression(1, 0.5), 4, 2.0), cls(BinaryRegression(2, 1.0), 3, 1.0)]
