"""A task with linear regression on one feature, given second moments with noise."""

from functools import partial

import numpy as np

from privpost.inference_benchmark import references
from privpost.inference_benchmark.base import Task
from privpost.inference_benchmark.tasks import Made
from privpost.mechanisms.noise.moments_laplace import MomentsLaplace
from privpost.models.regression.normal import NormalRegression


class RegressionTask(Task):
    """Regression on a feature of unknown variance, with the weight w and the noise variance σ² as θ.

    Records are clamped to public bounds. The exact posterior neglects clamping, since fewer than one record in a
    million is clamped under the default prior.
    """

    size = 2

    def __init__(self, name, prior, n, noise, budget):
        self.name, self.n, self.model = name, n, NormalRegression(1, *prior)
        self.mechanism = MomentsLaplace.calibrate(self.model, n, budget)

    @property
    def scale(self) -> float:
        """Scale of the noise on the second moments, in units of the bounds."""
        return float(self.mechanism.scale)

    def prior(self, size, rng):
        model = self.model
        variance = model.rate / rng.standard_gamma(model.shape, size)
        weight = np.sqrt(variance / model.prior_precision) * rng.standard_normal(size)
        return np.stack([weight, variance], axis=-1)

    def data(self, theta, rng):
        model, (weight, variance) = self.model, theta.T[..., None]
        features = model.sample_features(self.n, len(theta), rng)[..., 0]
        labels = weight * features + np.sqrt(variance) * rng.standard_normal(features.shape)
        bounds = model.feature_bound, model.label_bound
        records = [np.clip(part, -end, end) for part, end in zip((features, labels), bounds, strict=True)]
        return model.sufficient_statistics(np.stack(records, axis=-1))

    def update(self, statistics, rng):
        return self.model.sample(self.model.posterior(statistics, self.n), rng)

    def naive(self, releases, size, rng):
        return self.model.sample(self.mechanism.naive_posterior(releases), rng, size).transpose(1, 0, 2)

    def laws(self, releases):
        moments = self.mechanism.moments(releases)
        law = self.mechanism.noise_law
        return [partial(self._drawn, references.second_moments(self.model, each, self.n, law)) for each in moments]

    def _drawn(self, moments, draws: int, rng) -> np.ndarray:
        return self.model.sample(self.model.given(moments(draws, rng), self.n), rng)


TASKS = {"regression": Made(RegressionTask, (0.36, 6, 0.18, 12, 0.36))}
