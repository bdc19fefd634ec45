"""Tasks with small Bayesian networks of bits, whose counts are released with Laplace noise."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from privpost.inference_benchmark import references
from privpost.inference_benchmark.base import Records, Task
from privpost.inference_benchmark.tasks import Made
from privpost.mechanisms.noise.network import NetworkLaplace
from privpost.models.networks import graphs
from privpost.models.networks.bayesian_network import BayesianNetwork

NETWORKS = {
    "naive_bayes": graphs.naive_bayes(2),
    "log_linear": graphs.naive_bayes(2),
    "collider": graphs.checked({"a": [], "b": [], "c": ["a", "b"]}),
    "three_parents": graphs.checked({"a": [], "b": [], "c": ["a"], "d": ["a", "b", "c"], "e": ["d"]}),
}


@dataclass(frozen=True)
class FeaturesLaplace(NetworkLaplace):
    """Counts of K features by class plus Laplace noise of scale 2K/ε. The counts of the class are not released.

    Raises:
        ValueError: in the same cases as `NetworkLaplace`.
    """

    @property
    def sensitivity(self) -> float:
        """The sensitivity 2K, which a change from a row of zeros to a row of ones attains."""
        return 2.0 * (len(self.model.nodes) - 1)

    def select(self, statistics) -> np.ndarray:
        """Counts (..., 4K) of the features: all statistics except the first two, which are the counts of the class."""
        return np.asarray(statistics, float)[..., 2:]

    def project(self, release) -> np.ndarray:
        """Counts (..., 2 + 4K) of class and features, truncated to [0, n]."""
        # The counts of the class are means of the totals of the features.
        shown = super().project(release)
        totals = shown.reshape(*shown.shape[:-1], -1, 2, 2).sum(axis=-1).mean(axis=-2)
        return np.concatenate([totals, shown], axis=-1)


class NetworkTask(Task):
    """A small Bayesian network whose counts are released."""

    # Whether all counts are released.
    complete: ClassVar[bool] = True
    release_by: ClassVar[type[NetworkLaplace]] = NetworkLaplace

    def __init__(self, name, prior, n, noise, budget):
        self.name, self.n = name, n
        if len(prior) != 2:
            raise ValueError("it needs 2 positive numbers, alpha and beta")
        self.model = BayesianNetwork(NETWORKS[name], *prior)
        self.mechanism = self.release_by.calibrate(self.model, n, budget)
        self.size = self.model.theta_shape[0]

    def records(self, theta, rng):
        data = self.model.sample_data(theta, self.n, rng)
        cells = 2 * self.model.configurations(data) + 1 - data
        indicators = np.zeros((*data.shape[:-1], 2 * self.size))
        np.put_along_axis(indicators, cells, 1.0, axis=-1)
        return Records(self.mechanism.select(indicators), indicators)

    def data(self, theta, rng):
        return self.model.sufficient_statistics(self.model.sample_data(theta, self.n, rng))

    @property
    def cells(self) -> np.ndarray:
        """Contribution of each possible record to the statistics, shape (records, d)."""
        return self.model.sufficient_statistics(self.model.records[:, None])

    def record_law(self, theta) -> np.ndarray:
        """Probabilities (k, records) of all possible records at θ (k, p)."""
        pairs = np.stack([theta, 1 - theta], axis=-1).reshape(len(theta), -1)
        law = np.exp(np.log(np.maximum(pairs, np.finfo(float).tiny)) @ self.cells.T)
        # The generator refuses probabilities whose rounded sum is above 1.
        return law / law.sum(axis=1, keepdims=True)

    def moments(self, theta):
        law, shown = self.record_law(theta), self.mechanism.select(self.cells)
        mean = law @ shown
        covariance = np.einsum("kr,ri,rj->kij", law, shown, shown) - mean[:, :, None] * mean[:, None]
        return self.n * mean, self.n * covariance

    def laws(self, releases):
        return references.counts(self.model, self.n, self.scale, releases)

    def reference(self, releases, draws, rng):
        return self.update(super().reference(releases, draws, rng), rng)


class LogLinearTask(NetworkTask):
    """Naive Bayes without counts of the class, which Xiong, Ju and Zhang (2025) call the log-linear model."""

    complete = False
    release_by = FeaturesLaplace

    def laws(self, releases):
        unseen = np.full((len(releases), 2), np.nan)
        return super().laws(np.concatenate([unseen, releases], axis=1))


_LARGEST = references.LARGEST
TASKS = {
    "naive_bayes": Made(NetworkTask, (1, 1), largest=_LARGEST["naive_bayes"]),
    "log_linear": Made(LogLinearTask, (2, 2), largest=_LARGEST["naive_bayes"]),
    "collider": Made(NetworkTask, (1, 1), n=50, largest=_LARGEST["collider"]),
    "three_parents": Made(NetworkTask, (1, 1), n=8, largest=_LARGEST["three_parents"]),
}
