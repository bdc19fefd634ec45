"""Private logistic regression without exact draws, by noisy gradient (Langevin) steps or by noise on the mode."""

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

# ours: default settings of the Langevin steps; studies state their own values.
STEP, RELAXATIONS = 1.0, 4.0
# Smallest power ρ that the search tries.
_LEAST = 1e-12


@dataclass(frozen=True)
class _GaussianLogistic(LogisticDraw):
    """Base of mechanisms for logistic regression whose releases are μ-Gaussian DP."""

    weighting: str = field(default="diffused", kw_only=True)

    weightings: ClassVar[tuple[str, ...]] = ("diffused",)

    def rdp(self, orders) -> np.ndarray:
        """Rényi DP parameter λμ²/2 at each order λ."""
        return 0.5 * self.mu**2 * np.asarray(orders, float)

    @classmethod
    def coefficient_within(cls, model, n, order, epsilon, **options):
        """Return the largest power ρ of the likelihood that the budget allows, by bisection.

        Raises:
            ValueError: even ρ = 1e-12 costs more than the budget.
        """

        def cost(power: float) -> Cost:
            return cls(model, n, order, power, **options).cost()

        if (least := cost(_LEAST)).epsilon > epsilon:
            raise ValueError(f"budget is {Cost('rdp', epsilon, order=order)}; {cls.method} costs {least} or more")
        return largest_within(lambda power: cost(power).epsilon <= epsilon, _LEAST, 1.0, steps=60)


@dataclass(frozen=True)
class LogisticLangevin(_GaussianLogistic):
    """Releases the weights w after k steps w ← w − η∇f(w) + √(2η) Z from w = 0, where Z is standard normal.

    Here f is the negative log-density of the posterior whose likelihood has the power ρ. The step size is η = `step`/M
    for the largest curvature M of f. The release is μ-Gaussian DP for every k, converged or not (`langevin_mu`). It
    never costs more than an exact draw with equal ρ.

    Attributes:
        step: the product ηM, in (0, 1].
        relaxations: number of steps > 0, in units of the chain's relaxation time 1/(ηnβ) for a prior of precision nβ.

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
        """Return the mechanism with the largest power ρ within a Rényi or (ε, δ) budget."""
        return cls._within(model, n, budget, step=step, relaxations=relaxations, public_time=public_time)

    @property
    def step_size(self) -> float:
        """Step size η = step/(nβ + nρc²/4)."""
        return self.step / (self.n * (self.precision + self.power * self.model.feature_bound**2 / 4))

    @property
    def steps(self) -> int:
        """Number k ≥ 1 of steps: relaxations/(ηnβ), rounded up to a whole number."""
        return max(1, math.ceil(round(self.relaxations / (self.step_size * self.n * self.precision), 9)))

    @property
    def mu(self) -> float:
        """Parameter μ of the Gaussian DP after k steps (`langevin_mu`)."""
        return float(langevin_mu(self.steps, self.step_size, self.n * self.precision, self.sensitivity))

    def draw(self, statistics, rng, size=None, *, after=None, **settings) -> Release:
        """Return releases (size, d) about one data set, or (..., d) if `size` is None.

        `after` continues earlier chains. It is a pair: a mechanism that takes fewer of these steps, and its releases
        (size, d).
        """
        if size is None:
            return Release(self.perturb(statistics, rng))
        posterior = self.release_law(self.model.checked(statistics, self.n))
        weights, eta, done = np.zeros((size, self.model.dimension)), self.step_size, 0
        if after is not None:
            if replace(after[0], relaxations=self.relaxations) != self or after[0].steps > self.steps:
                raise ValueError(f"after is {after[0]!r}; it must take fewer of the steps of {self!r}")
            weights, done = np.array(after[1], float), after[0].steps
        # 1/(1 + exp(z)) is computed as (1 − tanh(z/2))/2, which is faster.
        half, whole = posterior.features.T / 2, posterior.features.sum(axis=0) / 2
        waves = np.empty((size, len(posterior.features)))
        for _ in range(done, self.steps):
            np.tanh(np.matmul(weights, half, out=waves), out=waves)
            pull = whole - waves @ half.T
            weights += eta * (self.power * pull - posterior.prior_precision * weights)
            weights += math.sqrt(2 * eta) * rng.standard_normal(weights.shape)
        return Release(weights, Drawn(None, math.nan, math.nan))

    def prepare(self, statistics, **settings):
        """Check the statistics and return them."""
        return self.model.checked(statistics, self.n)

    @classmethod
    def examples(cls) -> list[Self]:
        """One weight with few steps, and two weights with many."""
        return [
            cls(BinaryRegression(1, 0.1), 4, 2.0, 0.3, relaxations=0.5),
            cls(BinaryRegression(2, 0.1), 3, 2.0, 0.3),
        ]


@dataclass(frozen=True)
class LogisticOutputNoise(_GaussianLogistic):
    """Releases the mode of the tempered posterior plus N(0, (nβ)⁻¹ I) noise.

    The likelihood has the power ρ, the prior has the precision nβ, and records have norms of at most c. The negative
    log-density is nβ-strongly convex, so the modes of neighbours are at most 2ρc/(nβ) apart. The gradient at the
    optimiser's point is at most τ long, so this point is within τ/(nβ) of the mode. The Rényi cost at order λ is
    λ(2ρc + 2τ)²/(2nβ).

    Attributes:
        tolerance: bound τ > 0 on the norm of the gradient at the optimiser's point.

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
        """Return the mechanism with the largest power ρ within a Rényi or (ε, δ) budget."""
        return cls._within(model, n, budget, tolerance=tolerance, public_time=public_time)

    @property
    def mu(self) -> float:
        """Parameter μ = (2ρc + 2τ)/√(nβ) of the Gaussian DP."""
        return (self.sensitivity + 2 * self.tolerance) / math.sqrt(self.n * self.precision)

    def prepare(self, statistics, start=None, size=None):
        """Return the posterior's mode.

        Raises:
            RuntimeError: the gradient at the optimiser's point is longer than τ.
        """
        posterior = self.release_law(self.model.checked(statistics, self.n))
        return posterior.accepted_mode(lambda w: np.linalg.norm(posterior.gradient(w)) <= self.tolerance, start)

    def draw(self, statistics, rng, size=None, *, start=None, prepared=None) -> Release:
        """Return releases (..., d).

        If `size` is given, return releases (size, d) about one data set, and the mode for later searches.
        """
        if size is None:
            return Release(self.perturb(statistics, rng))
        mode = prepared or self.prepare(statistics, start)
        noise = rng.standard_normal((size, self.model.dimension)) / math.sqrt(self.n * self.precision)
        return Release(mode.mean + noise, Drawn(mode, math.nan, math.nan))

    @classmethod
    def examples(cls) -> list[Self]:
        """One weight, and two weights."""
        return [cls(BinaryRegression(1, 0.1), 4, 2.0, 0.3), cls(BinaryRegression(2, 0.1), 3, 2.0, 0.3)]
