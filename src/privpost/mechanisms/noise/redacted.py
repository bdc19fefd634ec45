"""Laplace mechanism on a sum that leaves out records outside public bounds."""

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from privpost.mechanisms.noise.laplace import LaplaceMechanism
from privpost.models.base import Checked
from privpost.models.conjugate.gamma_exponential import GammaExponential
from privpost.privacy.checks import check_given
from privpost.privacy.redaction import redacted_sensitivity, redacted_sum
from privpost.samplers.noise_aware import quadrature as noise_aware_quadrature
from privpost.samplers.noise_aware.draws import Draws, named


@dataclass(frozen=True)
class RedactedSum(metaclass=Checked):
    """Model whose statistic is Σ t(x) over the records x in [low, high] (Bernstein and Sheldon 2018, section 3.3).

    Attributes:
        family: model of the records, a univariate exponential family with an increasing statistic t(x).
        low, high: public bounds; for several trials, arrays of shape (trials,).

    Raises:
        ValueError: the bounds are not finite or are out of order.

    >>> RedactedSum(GammaExponential(2, 2), 0.0, 5.0).sufficient_statistics(np.array([1.0, 2.0, 9.0]))
    array([3.])
    """

    family: Any
    low: float | np.ndarray
    high: float | np.ndarray

    bounded: ClassVar[bool] = True
    statistics_size: ClassVar[int] = 1
    theta_shape: ClassVar[tuple[int, ...]] = ()

    def __post_init__(self):
        redacted_sensitivity(*self.ends)

    @property
    def ends(self):
        """Smallest and largest t(x) of a record that is not redacted."""
        low, high = (np.ceil(self.low), np.floor(self.high)) if self.family.lattice else (self.low, self.high)
        return self.family.statistic(low), self.family.statistic(high)

    @property
    def records(self):
        """Example records of the family: both bounds, their midpoint, and a record above them, which is redacted."""
        records = np.array([self.low, (self.low + self.high) / 2, self.high, self.high + 1.0])
        if self.family.lattice:
            records = np.append(np.ceil(records[:1]), np.floor(records[1:]))
        return np.clip(records, *self.family.record_support)

    @property
    def prior(self):
        """The prior of the family."""
        return self.family.prior

    def sufficient_statistics(self, data):
        """Return the redacted sum (..., 1) of records (..., n).

        Raises:
            ValueError: a value cannot be a record of the family.
        """
        return redacted_sum(self.family.statistic(self.family.check_records(data)), *self.ends)[..., None]

    def posterior(self, statistics) -> np.ndarray:
        """Parameters of the family's conjugate posterior, given the family's sufficient statistics."""
        return self.family.posterior(statistics)

    def sample(self, parameters, rng):
        """Draw θ from the family's conjugate law with the given parameters."""
        return self.family.sample(parameters, rng)


@dataclass(frozen=True)
class RedactedLaplace(LaplaceMechanism):
    """The redacted sum plus Laplace noise of scale Δ/ε, where Δ = max(|low|, |high|, high − low).

    Here low and high are bounds of t(x). A record outside them adds 0 to the sum. So high − low alone would be too
    small for an interval without 0 (Bernstein and Sheldon 2018, section 3.3).

    Raises:
        ValueError: a setting is outside its range, or the model is not a RedactedSum.

    >>> RedactedLaplace(RedactedSum(GammaExponential(2, 2), 0.0, 5.0), 100, 0.5).scale
    10.0
    """

    models: ClassVar[tuple[type, ...]] = (RedactedSum,)

    @property
    def sensitivity(self) -> Any:
        """Sensitivity max(|low|, |high|, high − low) for low ≤ t(x) ≤ high. For several trials, an array (trials,)."""
        delta = redacted_sensitivity(*self.model.ends)
        return delta if np.ndim(delta) else float(delta)

    def each(self, size) -> Self:
        """Return the mechanism with its bounds repeated as arrays (size,), one entry per trial."""
        low, high = (np.full(size, bound) for bound in (self.model.low, self.model.high))
        return replace(self, model=replace(self.model, low=low, high=high))

    def noise(self, shape, rng) -> np.ndarray:
        """Draw Laplace noise of scale Δ/ε. If each trial has a separate scale, the shape is (trials, 1)."""
        return rng.laplace(0.0, np.reshape(self.scale, shape) if np.ndim(self.scale) else self.scale, shape)

    def naive_posterior(self, release) -> np.ndarray:
        """Parameters of the conjugate posterior that treats max(0, release) as the exact sum of all n records."""
        total = self.project(release)[..., 0]
        return self.model.posterior(np.stack([total, np.full_like(total, self.n)], axis=-1))

    def posterior(self, release: ArrayLike, draws: int, rng: np.random.Generator) -> Draws:
        """Return independent draws (draws,) of θ given one release (1,), by quadrature over θ.

        The latent sum is taken to be normal, as in Bernstein and Sheldon (2018).
        """
        check_given(release, (1,), draws, rng)
        y, low, high = float(np.asarray(release)[0]), float(self.model.low), float(self.model.high)
        law = noise_aware_quadrature.resolved_posterior(self.model.family, y, self.n, float(self.scale), low, high)
        return named(law.sample(draws, rng), self.model)

    @classmethod
    def examples(cls) -> list[Self]:
        """A short interval far from 0, and a long one."""
        family = GammaExponential(8, 2)
        return [cls(RedactedSum(family, 1.0, 1.5), 4, 1.0), cls(RedactedSum(family, 0.5, 3.0), 4, 1.0)]
