"""Laplace mechanism on sufficient statistics."""

import math
from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from privpost.mechanisms.noise.additive import AdditiveNoiseMechanism, Coordinates
from privpost.mechanisms.pure import PureMechanism
from privpost.models.conjugate.beta_bernoulli import BetaBernoulli
from privpost.models.conjugate.clamped_moments import ClampedMoments
from privpost.models.conjugate.dirichlet_categorical import DirichletCategorical
from privpost.models.events import EventCounts
from privpost.models.networks.bayesian_network import BayesianNetwork
from privpost.privacy.accounting.approximate import laplace_from_approximate
from privpost.privacy.accounting.costs import Cost, at_most
from privpost.privacy.accounting.losses import Response
from privpost.privacy.checks import approximate_budget, check_given
from privpost.samplers.noise_aware.draws import Draws, named


@dataclass(frozen=True)
class LaplaceMechanism(PureMechanism, AdditiveNoiseMechanism):
    """Sufficient statistics plus independent Laplace noise of scale Δ/ε, where Δ is their L1 sensitivity.

    The release is ε-DP. For binary data, `coordinates="all"` releases (successes, failures) with Δ = 2 (Foulds et al.
    2016, section 3). "free" releases only the successes, with Δ = 1 (Bernstein and Sheldon 2018).

    Attributes:
        epsilon: ε > 0, the cost of one release.

    >>> LaplaceMechanism.calibrate(BetaBernoulli(1, 1), 400, Cost("pure", 0.5)).scale
    2.0
    """

    method: ClassVar[str] = "laplace"
    norm: ClassVar[str] = "l1"
    public_inputs: ClassVar[tuple[str, ...]] = ("n", "prior", "range of a record's statistics")

    @classmethod
    def calibrate(cls, model, n: int, budget: Cost, *, coordinates: Coordinates | None = None) -> Self:
        """Return the mechanism with the largest ε within the budget. `rdp_to_pure_epsilon` converts a Rényi budget."""
        return super().calibrate(model, n, budget, coordinates=coordinates)

    @property
    def scale(self) -> float:
        """Scale Δ/ε of the noise, whose variance is 2 scale²."""
        return self.sensitivity / self.epsilon

    @property
    def loss(self) -> Response:
        """Bound on the privacy loss of a release, as a law from `losses`: `Response`, repeated for counts."""
        counted = isinstance(self.model, BetaBernoulli | DirichletCategorical | EventCounts | BayesianNetwork)
        times = round(self.sensitivity) if counted else 1
        return Response(self.epsilon / times, times=times)

    def noise(self, shape, rng) -> np.ndarray:
        """Draw Laplace noise of scale Δ/ε."""
        return rng.laplace(0.0, self.scale, shape)

    def noise_cdf(self, value) -> np.ndarray | None:
        """Distribution function of the Laplace noise on one coordinate."""
        z = np.asarray(value, float) / self.scale
        return np.where(z < 0, 0.5 * np.exp(-np.abs(z)), 1 - 0.5 * np.exp(-np.abs(z)))

    def privacy_curve(self, epsilon) -> float | None:
        """δ(ε) = 1 − exp((ε − ε0)/2) for noise on one number, with the mechanism's ε0. None for several numbers."""
        if np.shape(self.query(self.model.records[:1])) != (1,):
            return None
        return max(0.0, -math.expm1((epsilon - self.epsilon) / 2))

    def recalibrated(self, budget) -> Self | None:
        """Return the mechanism with the largest ε within an (ε, δ) budget. None for noise on several numbers."""
        allowed = approximate_budget(budget)
        if self.privacy_curve(budget.epsilon) is None:
            return None
        epsilon = laplace_from_approximate(*allowed)
        # For δ below 1e-7, a rounding error of ε can push the curve above δ, and the ledger would refuse the release.
        while not at_most(replace(self, epsilon=epsilon).privacy_curve(budget.epsilon) or 0.0, budget.delta):
            epsilon = math.nextafter(epsilon, 0.0)
        return replace(self, epsilon=epsilon)

    def log_density(self, release, statistics) -> np.ndarray | None:
        """Log-density of the noisy coordinates (..., q) given the statistics (..., d)."""
        scale = self.scale
        distance = np.abs(np.asarray(release, float) - self.select(statistics))
        return (-np.log(2 * scale) - distance / scale).sum(axis=-1)

    def posterior(self, release: ArrayLike, draws: int, rng: np.random.Generator) -> Draws:
        """Return draws of θ given one release.

        For clamped moments, the shape is (draws, 2), and the exact sums are taken as normal.
        """
        if not isinstance(self.model, ClampedMoments):
            return super().posterior(release, draws, rng)
        check_given(release, (2,), draws, rng)
        from privpost.samplers.noise_aware import normal_quadrature as noise_aware_normal_quadrature

        law = noise_aware_normal_quadrature.posterior(self.model, np.asarray(release, float), self.n, self.scale)
        return named(law.sample(draws, rng), self.model)

    @classmethod
    def examples(cls) -> list[Self]:
        """Binary data and three categories, each with all counts released or all but one."""
        bits, categories = BetaBernoulli(1, 1), DirichletCategorical((5, 5, 5))
        return [
            cls(bits, 8, 1.0, coordinates="all"),
            cls(bits, 8, 0.1, coordinates="free"),
            cls(categories, 4, 1.0),
            cls(categories, 4, 1.0, coordinates="free"),
        ]
