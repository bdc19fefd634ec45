"""Private logistic regression without exact draws: Langevin steps, with a cost for each step, and noise on the mode."""

import math
from dataclasses import dataclass, field, replace
from typing import ClassVar, Self

import numpy as np

from privpost.mechanisms.draws.logistic_sampling import Drawn, LogisticDraw
from privpost.models.base import check_positive
from privpost.models.regression.binary import BinaryRegression
from privpost.privacy.accounting.approximate import largest_within
from privpost.privacy.accounting.costs import Cost
from privpost.privacy.divergences.glm import langevin_mu
from privpost.privacy.ledger.gate import Release

# ours: defaults of Langevin steps; studies state theirs.
STEP, RELAXATIONS = 1.0, 4.0
# The smallest ρ that is tried.
_LEAST = 1e-12


@dataclass(frozen=True)
class _GaussianLogistic(LogisticDraw):
    """A μ-Gaussian-DP release: telling it from a neighbour's is no easier than telling N(μ, 1) from N(0, 1)."""

    weighting: str = field(default="diffused", kw_only=True)

    weightings: ClassVar[tuple[str, ...]] = ("diffused",)

    def rdp(self, orders) -> np.ndarray:
        """λμ²/2 at each order."""
        return 0.5 * self.mu**2 * np.asarray(orders, float)

    @classmethod
    def coefficient_within(cls, model, n, order, epsilon, **options):
        """The largest ρ that the budget allows, by bisection.

        Raises:
            ValueError: no ρ of at least 1e-12 is private enough.
        """

        def cost(power: float) -> Cost:
            return cls(model, n, order, power, **options).cost()

        if (least := cost(_LEAST)).epsilon > epsilon:
            raise ValueError(f"budget is {Cost('rdp', epsilon, order=order)}; {cls.method} costs {least} or more")
        return largest_within(lambda power: cost(power).epsilon <= epsilon, _LEAST, 1.0, steps=60)


@dataclass(frozen=True)
class LogisticLangevin(_GaussianLogistic):
    """The last of k steps w ← w − η∇f(w) + √(2η) Z from w = 0, f the negative log-density with the power ρ.

    Its guarantee needs no convergence: it is μ-Gaussian DP at every k (`langevin_mu`), never more than an exact draw
    of the same ρ. η is `step`/M, M the largest curvature, and k is `relaxations`/(ηnβ).

    Attributes:
        step: ηM in (0, 1].
        relaxations: > 0, steps in units of the chain's relaxation time.

    >>> LogisticLangevin(BinaryRegression(2, 0.1), 100, 2.0, 0.5).steps
    9
    """

    step: float = field(default=STEP, kw_only=True)
    relaxations: float = field(default=RELAXATIONS, kw_only=True)

    method: ClassVar[str] = "langevin"
    named: ClassVar[str] = "LogisticLangevin"

    def __post_init__(self):
        super().__post_init__()
        check_positive("relaxations", self.relaxations)
        if not 0 < self.step <= 1:
            raise ValueError(f"step is {self.step!r}; it must lie in (0, 1]")

    @classmethod
    def calibrate(
        cls,
        model,
        n: int,
        budget: Cost,
        *,
        step: float = STEP,
        relaxations: float = RELAXATIONS,
        public_time: bool = True,
    ) -> Self:
        """With the largest ρ within a Rényi budget or, by its privacy curve, an (ε, δ) budget."""
        return cls._within(model, n, budget, step=step, relaxations=relaxations, public_time=public_time)

    @property
    def step_size(self) -> float:
        """η = step/(nβ + nρc²/4)."""
        return self.step / (self.n * (self.precision + self.power * self.model.feature_bound**2 / 4))

    @property
    def steps(self) -> int:
        """k, at least 1; a ratio that is whole but for rounding adds no step."""
        return max(1, math.ceil(round(self.relaxations / (self.step_size * self.n * self.precision), 9)))

    @property
    def mu(self) -> float:
        """μ after k steps (`langevin_mu`)."""
        return float(langevin_mu(self.steps, self.step_size, self.n * self.precision, self.sensitivity))

    def draw(self, statistics, rng, size=None, *, after=None, **settings) -> Release:
        """Releases (size, d) or (..., d); all releases about one data set are one batch.

        `after`: a mechanism with fewer of the same steps, and its releases (size, d), to continue from.
        """
        if size is None:
            return Release(self.perturb(statistics, rng))
        posterior = self.release_law(self.model.checked(statistics, self.n))
        weights, eta, done = np.zeros((size, self.model.dimension)), self.step_size, 0
        if after is not None:
            if replace(after[0], relaxations=self.relaxations) != self or after[0].steps > self.steps:
                raise ValueError(f"after is {after[0]!r}; it must take fewer of the steps of {self!r}")
            weights, done = np.array(after[1], float), after[0].steps
        # 1/(1 + exp(z)) = (1 − tanh(z/2))/2, the quicker one.
        half, whole = posterior.features.T / 2, posterior.features.sum(axis=0) / 2
        waves = np.empty((size, len(posterior.features)))
        for _ in range(done, self.steps):
            np.tanh(np.matmul(weights, half, out=waves), out=waves)
            pull = whole - waves @ half.T
            weights += eta * (self.power * pull - posterior.prior_precision * weights)
            weights += math.sqrt(2 * eta) * rng.standard_normal(weights.shape)
        return Release(weights, Drawn(None, math.nan, math.nan))

    def prepare(self, statistics, **settings):
        """The checked statistics; there is nothing to prepare."""
        return self.model.checked(statistics, self.n)

    @classmethod
    def examples(cls) -> list[Self]:
        """One weight and two, few steps and many."""
        return [
            cls(BinaryRegression(1, 0.1), 4, 2.0, 0.3, relaxations=0.5),
            cls(BinaryRegression(2, 0.1), 3, 2.0, 0.3),
        ]


@dataclass(frozen=True)
class LogisticOutputNoise(_GaussianLogistic):
    """The mode plus N(0, (nβ)⁻¹ I), the likelihood to the power ρ: RDP λ(2ρc + 2τ)²/(2nβ).

    Modes of neighbours are at most 2ρc/(nβ) apart, as f is nβ-strongly convex, and the point found, whose gradient is
    certified to be at most τ, is within τ/(nβ) of the mode.

    Attributes:
        tolerance: τ > 0, bound on the norm of the gradient.

    >>> round(LogisticOutputNoise.calibrate(BinaryRegression(2, 0.1), 100, Cost("rdp", 0.1, order=2)).coefficient, 3)
    0.5
    """

    tolerance: float = field(default=1e-8, kw_only=True)

    method: ClassVar[str] = "output_noise"
    named: ClassVar[str] = "LogisticOutputNoise"

    def __post_init__(self):
        super().__post_init__()
        check_positive("tolerance", self.tolerance)

    @classmethod
    def calibrate(cls, model, n: int, budget: Cost, *, tolerance: float = 1e-8, public_time: bool = True) -> Self:
        """With the largest ρ within a Rényi budget or, by its privacy curve, an (ε, δ) budget."""
        return cls._within(model, n, budget, tolerance=tolerance, public_time=public_time)

    @property
    def mu(self) -> float:
        """(2ρc + 2τ)/√(nβ)."""
        return (self.sensitivity + 2 * self.tolerance) / math.sqrt(self.n * self.precision)

    def prepare(self, statistics, start=None, size=None):
        """The mode, certified.

        Raises:
            RuntimeError: the gradient at the point found is longer than τ.
        """
        posterior = self.release_law(self.model.checked(statistics, self.n))
        return posterior.accepted_mode(lambda w: np.linalg.norm(posterior.gradient(w)) <= self.tolerance, start)

    def draw(self, statistics, rng, size=None, *, start=None, prepared=None) -> Release:
        """Releases (size, d), with the mode as a start for a similar posterior, or (..., d)."""
        if size is None:
            return Release(self.perturb(statistics, rng))
        mode = prepared or self.prepare(statistics, start)
        noise = rng.standard_normal((size, self.model.dimension)) / math.sqrt(self.n * self.precision)
        return Release(mode.mean + noise, Drawn(mode, math.nan, math.nan))

    @classmethod
    def examples(cls) -> list[Self]:
        """One weight and two."""
        return [cls(BinaryRegression(1, 0.1), 4, 2.0, 0.3), cls(BinaryRegression(2, 0.1), 3, 2.0, 0.3)]
