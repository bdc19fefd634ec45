"""The base class of mechanisms that add noise to second moments of features and label (Bernstein and Sheldon 2019)."""

from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from privpost.distributions import noise
from privpost.mechanisms.base import Mechanism
from privpost.models.regression.normal import NormalInverseGamma, NormalRegression
from privpost.privacy.checks import check_given
from privpost.samplers.noise_aware import draws as noise_aware_draws
from privpost.samplers.noise_aware import regression as noise_aware_regression


@dataclass(frozen=True)
class NoisyMoments(Mechanism):
    """Adds independent noise to the second moments of features and label, in units of their public bounds.

    A release has the upper triangle of Σ vvᵀ in row order, where v = (x/X, y/Y) for public bounds X and Y. Products of
    two different features are multiplied by `products` before noise is added.
    """

    products: ClassVar[float] = 1.0
    releases: ClassVar[str] = "statistics"
    models: ClassVar[tuple[type, ...]] = (NormalRegression,)
    public_inputs: ClassVar[tuple[str, ...]] = ("n", "prior", "bounds on features and label")

    @abstractmethod
    def noise(self, shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
        """Draw independent noise of the given shape, in units of the public bounds."""

    @property
    @abstractmethod
    def noise_law(self) -> noise_aware_regression.Noise:
        """Law of the noise on each coordinate of the upper triangle, in the data's units."""

    @property
    def places(self) -> tuple[np.ndarray, np.ndarray]:
        """Row and column of each coordinate, two arrays of shape (q,)."""
        return np.triu_indices(self.model.dimension + 1)

    @property
    def units(self) -> np.ndarray:
        """The factors (q,) by which second moments are multiplied before noise is added."""
        model, (i, j) = self.model, self.places
        bounds = np.append(np.full(model.dimension, model.feature_bound), model.label_bound)
        return np.where((i < j) & (j < model.dimension), self.products, 1.0) / (bounds[i] * bounds[j])

    def select(self, statistics) -> np.ndarray:
        """The released coordinates (..., q) of statistics (..., d² + d + 1), without noise."""
        i, j = self.places
        return self.model.gram(statistics)[..., i, j] * self.units

    def query(self, data) -> np.ndarray:
        """The released coordinates of the data's second moments, before noise."""
        return self.select(self.model.sufficient_statistics(data))

    def _perturb(self, statistics, rng):
        exact = self.select(statistics)
        return noise.add(exact, self.noise(exact.shape, rng), rng)

    def moments(self, release) -> np.ndarray:
        """Noisy second moments (..., q) in the data's units, from a release (..., q)."""
        return np.asarray(release, float) / self.units

    def project(self, release) -> np.ndarray:
        """The positive semi-definite matrix (..., d + 1, d + 1) nearest to the noisy moments."""
        return noise_aware_regression.positive(noise_aware_regression.symmetric(self.moments(release)), 0.0)

    def naive_posterior(self, release) -> NormalInverseGamma:
        """Posterior of weights and noise variance that treats the projected moments as exact."""
        return self.model.given(self.project(release), self.n)

    def posterior(self, release: ArrayLike, draws: int, rng: np.random.Generator) -> noise_aware_draws.Draws:
        """Return draws (draws, d + 1) of weights and noise variance given a release (q,), from Markov chains."""
        check_given(release, self.units.shape, draws, rng)
        chains = noise_aware_draws.regression(self.model, self.moments(release), self.n, self.noise_law, draws, rng)
        return noise_aware_draws.named(noise_aware_draws.diagnosed(chains, draws, chains), self.model)
