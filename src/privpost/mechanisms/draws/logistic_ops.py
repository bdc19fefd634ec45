"""One draw from the posterior of a logistic regression, truncated to a ball (OPS), under pure DP."""

import math
from dataclasses import dataclass, field, replace
from typing import ClassVar, Self

import numpy as np

from privpost.mechanisms.draws.logistic_sampling import Drawn, LogisticSampling
from privpost.mechanisms.pure import PureMechanism
from privpost.models.base import check_range
from privpost.models.regression.binary import BinaryRegression
from privpost.privacy.accounting.approximate import pure_curve, pure_from_approximate
from privpost.privacy.accounting.costs import Cost, at_most, pure_to_rdp
from privpost.privacy.checks import check_choice, pure_epsilon
from privpost.privacy.divergences.glm import CHARGES, Charge, ops_power_at, ops_pure_epsilon, ops_radius, ops_rdp
from privpost.privacy.ledger.gate import Release
from privpost.samplers.logistic import in_ball as logistic_in_ball


@dataclass(frozen=True)
class LogisticOps(PureMechanism, LogisticSampling):
    """One draw from the posterior whose likelihood has the power ρ and whose prior is truncated to ‖w‖ ≤ R.

    Records have ‖z_i‖ ≤ c, so a record's log-likelihood varies by at most cR on this ball. A draw costs 2cρR. Let σ be
    the logistic function, s_i = z_i·w, and κ = max x/(1 + e^x) = .2785. With the prior N(0, (nβ)⁻¹ I), the mode has
    nβ‖w‖² = ρ Σ σ(−s_i) s_i ≤ ρnκ. So R = √(ρκ/β) is the radius of the smallest ball that always contains the mode.

    Attributes:
        epsilon: upper bound ε > 0 of the cost of one draw.
        charge: "corrected_charge" is 2cρR with R = c/β. "paper" is 4cρR with this radius (Wang et al. 2015), also at
            every Rényi order (Geumlek et al. 2017, section 5.2). "smallest_ball" is 2cρR with R = √(ρκ/β).
        ball: radius R, or None for the radius of the charge. With a given radius or "smallest_ball", the time of a draw
            depends on the data.

    >>> round(LogisticOps.calibrate(BinaryRegression(2, 0.1), 100, Cost("pure", 1.0)).power, 3)
    0.05
    """

    charge: Charge = field(default="corrected_charge", kw_only=True)
    ball: float | None = field(default=None, kw_only=True)

    method: ClassVar[str] = "ops"
    norm: ClassVar[str] = "log-likelihood ratio"

    def __post_init__(self):
        super().__post_init__()
        check_choice("charge", self.charge, CHARGES)
        if self.ball is not None:
            check_range("(0, inf)", ball=self.ball)
            if self.charge != "corrected_charge":
                raise ValueError(f"charge is {self.charge!r}; with a ball of its own it must be 'corrected_charge'")
        if self._cuts and self.public_time:
            name = "the smallest ball" if self.ball is None else "a ball of its own"
            raise ValueError(f"public_time is True; draws on {name} have none, so it must be False")

    @property
    def _cuts(self) -> bool:
        """Whether the ball may cut off a large part of the posterior."""
        return self.charge == "smallest_ball" or self.ball is not None

    @classmethod
    def calibrate(
        cls, model, n: int, budget: Cost, *, charge: Charge = "corrected_charge", public_time: bool = True,
        ball: float | None = None,
    ) -> Self:  # fmt: skip
        """Return the mechanism with the largest ρ within the budget. The charge "paper" takes a Rényi ε as pure ε."""
        as_pure = Cost("pure", budget.epsilon) if charge == "paper" and budget.notion == "rdp" else budget
        options: dict = {"charge": charge, "public_time": public_time, "ball": ball}
        return cls(model, n, pure_epsilon(as_pure, cls.method), **options)

    @property
    def power(self) -> float:
        """Largest power ρ ≤ 1 of the likelihood at which a draw costs at most ε."""
        if self.ball is not None:
            return min(1.0, self.epsilon / (2 * self.model.feature_bound * self.ball))
        return float(ops_power_at(self.epsilon, self.precision, self.model.feature_bound, self.charge))

    def _pure(self, power) -> np.ndarray:
        if self.ball is not None:
            return 2 * self.model.feature_bound * np.asarray(power, float) * self.ball
        return ops_pure_epsilon(power, self.precision, self.model.feature_bound, self.charge)

    @property
    def coefficient(self):
        """The power ρ of the likelihood."""
        return self.power

    @property
    def precision(self) -> float:
        """The precision β of the model's prior."""
        return self.model.prior_precision

    @property
    def radius(self) -> float:
        """Radius R of the ball: c/β, or √(ρκ/β) for "smallest_ball", or the setting `ball`."""
        if self.ball is not None:
            return self.ball
        return float(ops_radius(self.power, self.precision, self.model.feature_bound, self.charge))

    @property
    def sensitivity(self) -> float:
        """Largest change ρcR of the tempered log-likelihood on the ball."""
        return self.power * self.model.feature_bound * self.radius

    def query(self, data) -> np.ndarray:
        """Tempered log-likelihood (21 d,) at 21 points along each axis of the ball, ends included."""
        steps = np.linspace(-self.radius, self.radius, 21)
        points = (steps[:, None, None] * np.eye(self.model.dimension)).reshape(-1, self.model.dimension)
        return self.power * self.model.log_likelihood(points, self.model.sufficient_statistics(data))

    def prepare(self, statistics, start=None, size=None):
        """Return what `draw` needs. If the ball may cut off much of the posterior, the result is an `InBall`."""
        if not self._cuts:
            return super().prepare(statistics, start, size)
        return logistic_in_ball.envelope(self.release_law(self.model.checked(statistics, self.n)), start)

    def draw(self, statistics, rng, size=None, *, start=None, prepared=None) -> Release:
        """Return releases as `LogisticSampling.draw` does. If the ball may cut off much, another sampler draws."""
        if size is None or not self._cuts:
            return super().draw(statistics, rng, size, start=start, prepared=prepared)
        around = prepared or self.prepare(statistics, start)
        values, proposals = logistic_in_ball.sample(around, size, rng)
        return Release(values, Drawn(around, proposals, math.nan))

    def privacy_curve(self, epsilon) -> float:
        """Upper bound of δ(ε): the curve of randomised response with the mechanism's pure ε."""
        return pure_curve(float(self._pure(self.power)), epsilon)

    def recalibrated(self, budget) -> Self | None:
        """Return the mechanism with the largest pure ε0 that the (ε, δ) budget allows."""
        mechanism = replace(self, epsilon=pure_from_approximate(budget.epsilon, budget.delta))
        # For a small δ, the rounding error of ε0 − ε can push the curve above δ.
        while not at_most(mechanism.privacy_curve(budget.epsilon), budget.delta):
            mechanism = replace(mechanism, epsilon=float(np.nextafter(mechanism.epsilon, 0.0)))
        return mechanism

    def cost(self) -> Cost:
        """Pure cost 2cρR, or 4cρR with the charge "paper". The cost is ε if ρ < 1, and at most ε if ρ = 1."""
        return Cost("pure", float(self._pure(self.power)))

    def rdp(self, orders) -> np.ndarray:
        """Rényi DP parameter at each order, implied by the pure cost. For the charge "paper" it is the pure ε."""
        if self.ball is not None:
            return pure_to_rdp(self._pure(self.power), orders)
        return ops_rdp(orders, self.power, self.precision, self.model.feature_bound, self.charge)

    @classmethod
    def examples(cls) -> list[Self]:
        """One weight and two weights, also on the smallest ball, which cuts off part of the posterior."""
        smallest: dict = {"charge": "smallest_ball", "public_time": False}
        return [
            cls(BinaryRegression(1, 0.5), 4, 2.0),
            cls(BinaryRegression(2, 1.0), 3, 1.0),
            cls(BinaryRegression(1, 0.05), 4, 1.0, **smallest),
            cls(BinaryRegression(2, 0.05), 3, 1.0, **smallest),
        ]
