"""Tasks whose releases are sums of numbers with Laplace noise.

Records outside public bounds are left out (redacted) or moved to the bounds (clamped).
"""

from abc import abstractmethod

import numpy as np

from privpost import discovery
from privpost.inference_benchmark import references
from privpost.inference_benchmark.base import Records, Task
from privpost.inference_benchmark.tasks import Made
from privpost.mechanisms.noise.laplace import LaplaceMechanism
from privpost.mechanisms.noise.redacted import RedactedLaplace, RedactedSum
from privpost.models.conjugate.clamped_moments import ClampedMoments
from privpost.models.conjugate.normal_unknown_variance import NormalUnknownVariance
from privpost.models.conjugate.univariate import UnivariateFamily
from privpost.samplers.noise_aware import normal_quadrature as quadrature
from privpost.samplers.noise_aware.gibbs import random_sum

# The public bounds are the quantiles of a record's prior predictive law at these levels.
ENDS = np.array([0.025, 0.975])
# Number of records in memory at once.
_RECORDS = 2_000_000


class NumbersTask(Task):
    """A task whose records are numbers and whose releases are sums."""

    @abstractmethod
    def values(self, theta, rng) -> np.ndarray:
        """Simulated records (k, n) for each θ (k, p)."""

    @abstractmethod
    def released(self, values) -> tuple[np.ndarray, ...]:
        """Contributions (k, n) of records (k, n) to each released coordinate."""

    @abstractmethod
    def statistics(self, values) -> tuple[np.ndarray, ...]:
        """Contributions (k, n) of records (k, n) to each sufficient statistic except the number of records."""

    def records(self, theta, rng):
        values = self.values(theta, rng)
        terms = *self.statistics(values), np.ones_like(values)
        return Records(*(np.stack(part, axis=-1) for part in (self.released(values), terms)))

    def data(self, theta, rng):
        part = max(1, _RECORDS // self.n)
        values = (self.values(theta[i : i + part], rng) for i in range(0, len(theta), part))
        sums = [[terms.sum(axis=1) for terms in self.released(records)] for records in values]
        return np.concatenate(sums, axis=1).T


class RedactedTask(NumbersTask):
    """Records of a univariate family. The sum of the records within public bounds is released with noise."""

    size = 1
    _last: tuple = b"", None

    def __init__(self, name, prior, n, noise, budget):
        self.name, self.n, self.model = name, n, FAMILIES[name](*prior)
        ends = (float(self.model.predictive_quantile(share)) for share in ENDS)
        self.mechanism = RedactedLaplace.calibrate(RedactedSum(self.model, *ends), n, budget)

    def values(self, theta, rng):
        return self.model.statistic(self.model.sample_data(theta[:, 0], self.n, rng))

    def released(self, values):
        low, high = self.mechanism.model.ends
        return (np.where((values >= low) & (values <= high), values, 0.0),)

    def statistics(self, values):
        return (values,)

    def moments(self, theta):
        bounds = self.mechanism.model.low, self.mechanism.model.high
        mean, variance = random_sum(self.n, self.model.segment_moments(theta[:, 0], *bounds))
        return mean[:, None], variance[:, None, None]

    def posteriors(self, releases) -> references.Posterior:
        """The exact posteriors given releases (k, 1)."""
        # The result of the last call is kept, since the computation is slow.
        if self._last[0] != releases.tobytes():
            self._last = releases.tobytes(), references.redacted(self.mechanism, releases[:, 0])
        return self._last[1]

    def laws(self, releases):
        law = self.posteriors(releases)
        laws = [references.Posterior(*(part[k : k + 1] for part in law)) for k in range(len(releases))]
        return [lambda draws, rng, law=law: law.sample(draws, rng)[:, None] for law in laws]


class ClampedTask(NumbersTask):
    """Normal records of unknown mean and variance. The two moments of the clamped records are released with noise."""

    size = 2

    def __init__(self, name, prior, n, noise, budget):
        self.name, self.n, self.model = name, n, NormalUnknownVariance(*prior)
        low, high = map(float, self.model.predictive_quantile(ENDS))
        self.mechanism = LaplaceMechanism.calibrate(ClampedMoments(self.model, low, high), n, budget)

    def values(self, theta, rng):
        return self.model.sample_data(theta, self.n, rng)

    def released(self, values):
        clamped = self.mechanism.model.clamped(values)
        return clamped, np.square(clamped)

    def statistics(self, values):
        return values, np.square(values)

    def laws(self, releases):
        return [quadrature.exact(self.mechanism.model, release, self.n, self.scale).sample for release in releases]


FAMILIES = {model.family: model for model in discovery.models().values() if issubclass(model, UnivariateFamily)}
_PRIORS = {"exponential": (8, 2), "normal": (0, 0.1, 1), "poisson": (30, 10), "geometric": (10, 20), "pareto": (8, 2)}
TASKS = {
    **{name: Made(RedactedTask, prior) for name, prior in _PRIORS.items()},
    NormalUnknownVariance.family: Made(ClampedTask, (0, 4, 6, 6)),
}
