"""Trials of normal records with unknown mean and variance, a case that the paper leaves open."""

import numpy as np
from scipy.special import gammaincc, stdtr

from privpost.experiments.bernstein2018.base import COVERAGE, RECORDS, Data, Experiment
from privpost.lab.schema import SettingError
from privpost.mechanisms.noise.laplace import LaplaceMechanism
from privpost.models.conjugate.clamped_moments import ClampedMoments
from privpost.models.conjugate.normal_unknown_variance import NormalUnknownVariance
from privpost.samplers.noise_aware import normal as noise_aware_normal
from privpost.samplers.noise_aware import normal_quadrature as noise_aware_normal_quadrature


class ClampedNormal(Experiment):
    """Normal records of unknown mean and variance. The mechanism clamps the first two moments of records (ours)."""

    parameters = ("theta_1", "theta_2")
    alike = (0, 1)

    def __init__(self, model: NormalUnknownVariance):
        self.model = model

    @property
    def public_bounds(self) -> tuple[float, float]:
        """Bounds that do not depend on θ: quantiles of the prior predictive law."""
        low, high = self.model.predictive_quantile(np.array([(1 - COVERAGE) / 2, (1 + COVERAGE) / 2]))
        return float(low), float(high)

    @property
    def clamped(self) -> ClampedMoments:
        """The model of moments that are clamped to the public bounds."""
        return ClampedMoments(self.model, *self.public_bounds)

    def mechanism(self, n, epsilon, data=None):
        return LaplaceMechanism(self.clamped, n, epsilon)

    def data(self, n, size, rng):
        theta = self.model.sample(self.model.prior, rng, size)
        statistics, exact = np.empty((size, 3)), np.empty((size, 2))
        part = max(1, RECORDS // n)
        for start in range(0, size, part):
            trials = slice(start, start + part)
            records = self.model.sample_data(theta[trials], n, rng)
            statistics[trials] = self.model.sufficient_statistics(records)
            exact[trials] = self.clamped.sufficient_statistics(records)
        return Data(theta.T, statistics.T, exact.T)

    def kernel(self, data, release, n):
        return noise_aware_normal.kernel(self.clamped, release.values, n, scale_of(release))

    def _posteriors(self, release, n):
        given = n, scale_of(release)
        return [noise_aware_normal_quadrature.posterior(self.clamped, noisy, *given) for noisy in release.values.T]

    def exact_quantiles(self, data, releases, n):
        quantiles = [
            [law.cdf(theta) for law, theta in zip(self._posteriors(release, n), data.theta.T, strict=True)]
            for release in releases
        ]
        return np.moveaxis(np.array(quantiles), -1, 0)

    def exact_moments(self, data, release, n):
        moments = np.array([law.moments() for law in self._posteriors(release, n)])
        return moments[:, 0, 0], moments[:, 1, 0]

    def exact_features(self, data, release, n):
        return self.features(None)

    def features(self, statistics):
        raise SettingError(f"model is {self.model.family!r}, whose distance to the true posterior is not measured")

    def naive(self, data, release, n):
        """Return the projected release as sums of all records, and the share of projected trials."""
        mechanism = self.mechanism(n, 1.0)
        projected = mechanism.project(release.values.T)
        changed = np.any(projected != release.values.T, axis=-1)
        return self.clamped.sums(projected, n).T, float(changed.mean())

    def quantiles(self, data, statistics):
        mean, strength, shape, rate = self.model.standard(self.model.posterior(statistics.T))
        t = (data.theta[0] - mean) / np.sqrt(rate / shape / strength)
        return np.stack([stdtr(2 * shape, t), gammaincc(shape, rate / data.theta[1])])


def scale_of(release) -> float:
    """Return the scale of a release's noise, which is the same for all trials."""
    return float(np.max(release.scale))
