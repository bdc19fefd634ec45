"""Whole-number noise on counts: the two-sided geometric mechanism and the discrete Gaussian mechanism."""

import math
from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np

from privpost.distributions import noise
from privpost.mechanisms.base import COUNTED
from privpost.mechanisms.noise.additive import AdditiveNoiseMechanism, Coordinates
from privpost.mechanisms.noise.deviation import NoiseOfDeviation
from privpost.mechanisms.pure import PureMechanism
from privpost.models.conjugate.beta_bernoulli import BetaBernoulli
from privpost.models.conjugate.dirichlet_categorical import DirichletCategorical
from privpost.privacy.accounting.approximate import by_curve, pure_curve, pure_from_approximate
from privpost.privacy.accounting.costs import Cost, at_most
from privpost.privacy.checks import approximate_budget


@dataclass(frozen=True)
class GeometricMechanism(PureMechanism, AdditiveNoiseMechanism):
    """Counts plus independent two-sided geometric (discrete Laplace) noise with P(k) ∝ exp(−|k| ε/Δ).

    Δ is the L1 sensitivity of the counts. The release is ε-DP (Ghosh, Roughgarden and Sundararajan 2012).

    Attributes:
        epsilon: ε > 0, the cost of one release.

    Raises:
        ValueError: a setting is outside its range, or the model's statistics are not counts of n records.

    >>> GeometricMechanism.calibrate(BetaBernoulli(1, 1), 400, Cost("pure", 0.5)).perturb([120, 280], rng).shape
    (1,)
    """

    method: ClassVar[str] = "geometric"
    norm: ClassVar[str] = "l1"
    public_inputs: ClassVar[tuple[str, ...]] = ("n", "prior")
    support: ClassVar[str] = "integers"
    models: ClassVar[tuple[type, ...]] = COUNTED

    @classmethod
    def calibrate(cls, model, n: int, budget: Cost, *, coordinates: Coordinates | None = None) -> Self:
        """Return the mechanism with the largest ε within the budget. `rdp_to_pure_epsilon` converts a Rényi budget."""
        return super().calibrate(model, n, budget, coordinates=coordinates)

    @property
    def scale(self) -> float:
        """Scale Δ/ε of the noise."""
        return self.sensitivity / self.epsilon

    def noise(self, shape, rng) -> np.ndarray:
        """Draw discrete Laplace noise."""
        return noise.discrete_laplace(self.scale, shape, rng)

    def noise_cdf(self, value) -> np.ndarray:
        """Distribution function of the noise on one count, which is a step function."""
        k = np.floor(np.asarray(value, float))
        tail = np.exp(-np.where(k < 0, -k, k + 1) / self.scale) / (1 + math.exp(-1 / self.scale))
        return np.where(k < 0, tail, 1 - tail)

    def log_mass(self, release, statistics) -> np.ndarray:
        """Log-probability of the noisy counts (..., q) given the statistics (..., d)."""
        k = np.asarray(release, float) - self.select(statistics)
        log_one = np.log(np.tanh(1 / (2 * self.scale)))
        return np.where(k == np.rint(k), log_one - np.abs(k) / self.scale, -np.inf).sum(axis=-1)

    def privacy_curve(self, epsilon) -> float | None:
        """δ(ε) for one count of sensitivity 1: the curve of randomised response. None for several counts."""
        return pure_curve(self.epsilon, epsilon) if self.sensitivity == 1 else None

    def recalibrated(self, budget) -> Self | None:
        """Return the mechanism with the largest ε within an (ε, δ) budget. None for noise on several counts."""
        approximate_budget(budget)
        if self.sensitivity != 1:
            return None
        mechanism = replace(self, epsilon=pure_from_approximate(budget.epsilon, budget.delta))
        # For a small δ, the rounding error of ε0 − ε can push the curve above δ.
        while not at_most(pure_curve(mechanism.epsilon, budget.epsilon), budget.delta):
            mechanism = replace(mechanism, epsilon=math.nextafter(mechanism.epsilon, 0.0))
        return mechanism

    @classmethod
    def examples(cls) -> list[Self]:
        """Binary data with one count released or both, and three categories."""
        bits, categories = BetaBernoulli(1, 1), DirichletCategorical((5, 5, 5))
        return [
            cls(bits, 8, 0.5),
            cls(bits, 8, 1.0, coordinates="all"),
            cls(categories, 4, 1.0),
            cls(categories, 4, 1.0, coordinates="free"),
        ]


@dataclass(frozen=True)
class DiscreteGaussianMechanism(NoiseOfDeviation, AdditiveNoiseMechanism):
    """Counts plus independent discrete Gaussian noise with P(k) ∝ exp(−k²/(2σ²)).

    For L2 sensitivity Δ, the release is (λ, λΔ²/(2σ²))-RDP at every order λ, as with continuous noise (Canonne, Kamath
    and Steinke 2020, proposition 5).

    Attributes:
        sigma: σ > 0, an upper bound of the standard deviation of the noise.
        order: order λ ≥ 1 at which `cost` is stated.

    Raises:
        ValueError: a setting is outside its range, or the model's statistics are not counts of n records.

    >>> mechanism = DiscreteGaussianMechanism.calibrate(BetaBernoulli(1, 1), 400, Cost("rdp", 0.1, order=2))
    >>> round(mechanism.sigma, 3)
    3.162
    """

    method: ClassVar[str] = "discrete_gaussian"
    public_inputs: ClassVar[tuple[str, ...]] = ("n", "prior")
    support: ClassVar[str] = "integers"
    models: ClassVar[tuple[type, ...]] = COUNTED

    @classmethod
    def calibrate(cls, model, n: int, budget: Cost, *, coordinates: Coordinates | None = None) -> Self:
        """Return the mechanism with the smallest σ within a Rényi budget or, for one count, an (ε, δ) budget."""
        return super().calibrate(model, n, budget, coordinates=coordinates)

    def noise(self, shape, rng) -> np.ndarray:
        """Draw discrete Gaussian noise."""
        return noise.discrete_gaussian(self.sigma, shape, rng)

    def log_mass(self, release, statistics) -> np.ndarray:
        """Log-probability of the noisy counts (..., q) given the statistics (..., d)."""
        k = np.asarray(release, float) - self.select(statistics)
        logs = -0.5 * (k / self.sigma) ** 2 - noise.log_theta(self.sigma)
        return np.where(k == np.rint(k), logs, -np.inf).sum(axis=-1)

    def recalibrated(self, budget) -> Self | None:
        """Return the mechanism with the smallest σ within an (ε, δ) budget. None for noise on several counts."""
        approximate_budget(budget)
        if self.privacy_curve(budget.epsilon) is None:
            return None
        # The search starts from the mechanism's own σ, but not below 0.3.
        return by_curve(replace(self, sigma=max(0.3, self.sigma)), budget)

    @classmethod
    def examples(cls) -> list[Self]:
        """Binary data with much noise or little, and three categories."""
        bits, categories = BetaBernoulli(6, 12), DirichletCategorical((5, 5, 5))
        return [
            cls(bits, 8, 2.0, 2.0),
            cls(bits, 8, 0.7, 4.0),
            cls(categories, 4, 3.0, 2.0),
            cls(categories, 4, 2.0, 1.5, coordinates="free"),
        ]
