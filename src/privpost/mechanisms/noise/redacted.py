"""Laplace mechanism on a sum from which records outside public bounds are left out."""

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
    """Records of a univariate family; only t(x) of those in [low, high] are summed (Bernstein and Sheldon 2018, 3.3).

    Attributes:
        family: a univariate family, whose statistic t(x) is increasing.
        low, high: public bounds; of several trials an array each, shape (trials,).

    Raises:
        ValueError: bounds that are not finite or out of order.

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
        """Both bounds, their middle, and a record beyond them, which is redacted: records of the family."""
        records = np.array([self.low, (self.low + self.high) / 2, self.high, self.high + 1.0])
        if self.family.lattice:
            records = np.append(np.ceil(records[:1]), np.floor(records[1:]))
        return np.clip(records, *self.family.record_support)

    @property
    def prior(self):
        """The family's."""
        return self.family.prior

    def sufficient_statistics(self, data):
        """The redacted sum (..., 1) of records (..., n).

        Raises:
            ValueError: a record that is none of the family's: it is no number beyond the bounds, to be left out.
        """
        return redacted_sum(self.family.statistic(self.family.check_records(data)), *self.ends)[..., None]

    def posterior(self, statistics) -> np.ndarray:
        """The family's."""
        return self.family.posterior(statistics)

    def sample(self, parameters, rng):
        """The family's."""
        return self.family.sample(parameters, rng)


@dataclass(frozen=True)
class RedactedLaplace(LaplaceMechanism):
    """The redacted sum plus Lap(Δ/ε), Δ = max(|low|, |high|, high − low) (Bernstein and Sheldon 2018, section 3.3).

    low and high are those of t(x). A record can leave the interval, so that high − low is too small wherever the
    interval does not contain 0.

    Raises:
        ValueError: a setting outside its range, or another model than RedactedSum.

    >>> RedactedLaplace(RedactedSum(GammaExponential(2, 2), 0.0, 5.0), 100, 0.5).scale
    10.0
    """

    models: ClassVar[tuple[type, ...]] = (RedactedSum,)

    @property
    def sensitivity(self) -> Any:
        """max(|low|, |high|, high − low); of several trials shape (trials,)."""
        delta = redacted_sensitivity(*self.model.ends)
        return delta if np.ndim(delta) else float(delta)

    def each(self, size) -> Self:
        """Bounds as arrays (size,)."""
        low, high = (np.full(size, bound) for bound in (self.model.low, self.model.high))
        return replace(self, model=replace(self.model, low=low, high=high))

    def noise(self, shape, rng) -> np.ndarray:
        """Laplace variates of scale Δ/ε, each trial's own in shape (trials, 1)."""
        return rng.laplace(0.0, np.reshape(self.scale, shape) if np.ndim(self.scale) else self.scale, shape)

    def naive_posterior(self, release) -> np.ndarray:
        """Parameters of the conjugate update as if the sum, raised to at least 0, were that of all n records."""
        total = self.project(release)[..., 0]
        return self.model.posterior(np.stack([total, np.full_like(total, self.n)], axis=-1))

    def posterior(self, release: ArrayLike, draws: int, rng: np.random.Generator) -> Draws:
        """Independent draws (draws,) of θ given one release (1,), by quadrature over θ.

        The latent sum has a normal law, as in Bernstein and Sheldon (2018).
        """
        check_given(release, (1,), draws, rng)
        y, low, high = float(np.asarray(release)[0]), float(self.model.low), float(self.model.high)
        law = noise_aware_quadrature.resolved_posterior(self.model.family, y, self.n, float(self.scale), low, high)
        return named(law.sample(draws, rng), self.model)

    @classmethod
    def examples(cls) -> list[Self]:
        """A short interval far from 0 and a long one."""
        family = GammaExponential(8, 2)
        return [cls(RedactedSum(family, 1.0, 1.5), 4, 1.0), cls(RedactedSum(family, 0.5, 3.0), 4, 1.0)]
