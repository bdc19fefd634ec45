"""Laplace mechanism on the first two moments of records that are clamped to public bounds."""

from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np

from privpost.mechanisms.laplace import LaplaceMechanism
from privpost.models.clamped_moments import ClampedMoments
from privpost.models.normal_unknown_variance import NormalUnknownVariance
from privpost.privacy.checks import check_given
from privpost.samplers import noise_aware_normal_quadrature
from privpost.samplers.noise_aware_draws import Draws


@dataclass(frozen=True)
class ClampedMomentsLaplace(LaplaceMechanism):
    """(Σr, Σr²) of records in units of their bounds, clamped to [−1, 1], plus Lap(Δ/ε) on either.

    Δ = 9/4: |Δr| + |Δr²| is the larger change of r + r² and of r − r², and either has a range of 9/4.
    The bound of Bernstein and Sheldon (2018, section 3.3), a sum over coordinates, would be 3.

    Raises:
        ValueError: a setting outside its range, or another model than ClampedMoments.

    >>> ClampedMomentsLaplace(ClampedMoments(NormalUnknownVariance(), -2.0, 2.0), 100, 0.5).scale
    4.5
    """

    models: ClassVar[tuple[type, ...]] = (ClampedMoments,)

    def project(self, release) -> np.ndarray:
        """Moments of n numbers in [−1, 1] near the release: Σr² within [0, n], |Σr| at most √(n Σr²)."""
        first, second = np.moveaxis(np.asarray(release, float), -1, 0)
        second = np.clip(second, 0.0, self.n)
        limit = np.sqrt(self.n * second)
        return np.stack([np.clip(first, -limit, limit), second], axis=-1)

    def naive_posterior(self, release) -> np.ndarray:
        """Parameters (..., 3) of the conjugate law with the projected release taken for the sums of all n records."""
        return self.model.family.posterior(self.model.sums(self.project(release), self.n))

    def posterior(self, release, draws: int, rng: np.random.Generator) -> Draws:
        """Independent draws (draws, 2) of (μ, σ²) given one release (2,), by quadrature over both.

        The latent sums have a normal law, as in Bernstein and Sheldon (2018).
        """
        check_given(release, (2,), draws, rng)
        given = np.asarray(release, float), self.n, self.scale
        law = noise_aware_normal_quadrature.posterior(self.model, *given)
        return law.sample(draws, rng).view(Draws)

    @classmethod
    def examples(cls) -> list[Self]:
        """An interval around 0, and one that does not hold it."""
        return [
            cls(ClampedMoments(NormalUnknownVariance(0.0, 4.0, 6.0, 6.0), -2.0, 2.0), 4, 1.0),
            cls(ClampedMoments(NormalUnknownVariance(1.5, 1.0, 4.0, 3.0), 1.0, 2.0), 4, 1.0),
        ]
