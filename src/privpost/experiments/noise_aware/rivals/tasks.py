"""Tasks: a model with its prior, a release of n records at ε, and the exact posterior given the release.

What a method may ask of a task is what `Task` declares. Everything is in batches: releases (k, q), parameters (k, p).
"""

from abc import ABC, abstractmethod
from dataclasses import fields
from typing import NamedTuple

import numpy as np

from privpost.experiments.bernstein2018.clamped import ClampedNormal
from privpost.experiments.bernstein2018.trials import Counts, Data, Experiment, Release, experiment
from privpost.experiments.noise_aware.rivals import references
from privpost.lab.schema import SettingError
from privpost.mechanisms.network_laplace import NetworkLaplace
from privpost.models import graphs
from privpost.models.bayesian_network import BayesianNetwork
from privpost.privacy.accounting import Cost
from privpost.samplers import noise_aware_normal_quadrature as quadrature
from privpost.samplers.noise_aware_gibbs import random_sum

# Tasks on Bayesian networks, with their graphs.
NETWORKS = {
    "naive_bayes": graphs.naive_bayes(2),
    "collider": graphs.checked({"a": [], "b": [], "c": ["a", "b"]}),
}
# Records that are in memory at once.
_RECORDS = 2_000_000


class Records(NamedTuple):
    """Records by what they add to the released coordinates (k, n, q) and to the sufficient statistics (k, n, d)."""

    released: np.ndarray
    statistics: np.ndarray


class Budget(NamedTuple):
    """How long a method may run on each release: chains, draws of each, and steps before. Others give all draws."""

    chains: int
    draws: int
    burn_in: int

    @property
    def total(self) -> int:
        """Draws of all chains."""
        return self.chains * self.draws


class Refused(Exception):
    """A method cannot serve a task; its text is the reason, in one line."""


class Task(ABC):
    """A release with its model, its prior and its reference posterior.

    Attributes:
        name: as in the tables.
        n: public number of records.
        model: the model of the records, with its prior.
        mechanism: the Laplace mechanism; `mechanism.scale` is the scale of its noise.
        size: number p of parameters.
    """

    name: str
    n: int
    model: object
    mechanism: object
    size: int

    @property
    def scale(self) -> float:
        """Scale b of the Laplace noise on each released coordinate."""
        return float(np.max(self.mechanism.scale))

    def prior(self, size: int, rng) -> np.ndarray:
        """Draws (size, p) from the prior."""
        return self.model.sample(self.model.prior, rng, size).reshape(size, -1)

    def update(self, statistics, rng) -> np.ndarray:
        """One draw (..., p) from the conjugate posterior given sufficient statistics (..., d) without noise."""
        theta = self.model.sample(self.model.posterior(statistics), rng)
        return theta.reshape(*np.shape(statistics)[:-1], self.size)

    def noise_log_density(self, releases, exact) -> np.ndarray:
        """Log-density (...) of releases (..., q) given the coordinates (..., q) without noise, up to a constant."""
        return -np.abs(releases - exact).sum(axis=-1) / self.scale

    def naive(self, releases) -> np.ndarray:
        """Parameters (k, d) of the conjugate law that takes releases (k, q) for statistics without noise."""
        return self.mechanism.naive_posterior(releases)

    @abstractmethod
    def records(self, theta, rng) -> Records:
        """n records for each θ (k, p)."""

    def data(self, theta, rng) -> np.ndarray:
        """Statistics (k, d) of n records for each θ (k, p), as `mechanism` takes them."""
        part = max(1, _RECORDS // self.n)
        parts = [self.records(theta[i : i + part], rng).released.sum(axis=1) for i in range(0, len(theta), part)]
        return np.concatenate(parts)

    def simulate(self, theta, rng) -> np.ndarray:
        """The released coordinates (k, q) without noise of n records for each θ (k, p)."""
        return self.mechanism.select(self.data(theta, rng))

    def moments(self, theta) -> tuple[np.ndarray, np.ndarray]:
        """Mean and variance (points,) of the released sum without noise, at values (points,) of the one parameter."""
        raise Refused("the moments of its release are not known here")

    def log_prior(self, theta) -> np.ndarray:
        """Log-density (points,) of the prior at values of the one parameter."""
        return self.model.log_density(theta, self.model.prior)

    @abstractmethod
    def reference(self, releases, draws: int, rng) -> np.ndarray:
        """Independent draws (k, draws, p) from the exact posterior of each release (k, q)."""


class OneCategory(Task):
    """Bits, or records of one category each, whose counts are released."""

    def __init__(self, name: str, trial: Experiment, n: int, epsilon: float):
        self.name, self.n, self.trial, self.model = name, n, trial, trial.model
        self.mechanism = trial.mechanism(n, epsilon)
        self.size = len(trial.parameters)

    def _probabilities(self, theta) -> np.ndarray:
        return np.concatenate([theta, 1 - theta], axis=-1) if self.size == 1 else theta

    def records(self, theta, rng):
        ends = np.cumsum(self._probabilities(theta), axis=-1)
        category = (rng.random((len(theta), self.n, 1)) > ends[:, None, :-1]).sum(axis=-1)
        every = np.eye(ends.shape[-1])[category]
        return Records(self.mechanism.select(every), every)

    def data(self, theta, rng):
        return rng.multinomial(self.n, self._probabilities(theta)).astype(float)

    def moments(self, theta):
        return self.n * theta, self.n * theta * (1 - theta)

    def reference(self, releases, draws, rng):
        drawn = [np.asarray(self.mechanism.posterior(release, draws, rng)) for release in releases]
        return np.stack(drawn).reshape(len(releases), draws, self.size)


class RedactedTask(Task):
    """A univariate family whose sum is released, without the records outside public bounds."""

    size = 1

    def __init__(self, name: str, trial: Experiment, n: int, epsilon: float):
        self.name, self.n, self.trial, self.model = name, n, trial, trial.model
        self.mechanism = trial.mechanism(n, epsilon)

    def records(self, theta, rng):
        values = self.model.statistic(self.model.sample_data(theta[:, 0], self.n, rng))
        low, high = self.mechanism.model.ends
        released = np.where((values >= low) & (values <= high), values, 0.0)[..., None]
        return Records(released, np.stack([values, np.ones_like(values)], axis=-1))

    def moments(self, theta):
        bounds = self.mechanism.model.low, self.mechanism.model.high
        return random_sum(self.n, self.model.segment_moments(theta, *bounds))

    def reference(self, releases, draws, rng):
        law = references.redacted(self.mechanism, releases[:, 0])
        each = [references.Posterior(*(part[k : k + 1] for part in law)) for k in range(len(releases))]
        return np.stack([one.sample(draws, rng) for one in each])[..., None]


class ClampedTask(Task):
    """Normal records of unknown mean and variance, whose first two moments are released, clamped to public bounds."""

    size = 2

    def __init__(self, name: str, trial: Experiment, n: int, epsilon: float):
        self.name, self.n, self.trial, self.model = name, n, trial, trial.model
        self.mechanism = trial.mechanism(n, epsilon)

    def records(self, theta, rng):
        values = self.model.sample_data(theta, self.n, rng)
        clamped = self.mechanism.model.sufficient_statistics(values[..., None])
        return Records(clamped, np.stack([values, values * values, np.ones_like(values)], axis=-1))

    def reference(self, releases, draws, rng):
        laws = [quadrature.exact(self.mechanism.model, release, self.n, self.scale) for release in releases]
        return np.stack([law.sample(draws, rng) for law in laws])


class NetworkTask(Task):
    """A small Bayesian network whose counts are released."""

    def __init__(self, name: str, prior, n: int, epsilon: float):
        self.name, self.n = name, n
        self.model = BayesianNetwork(NETWORKS[name], *prior)
        self.mechanism = NetworkLaplace.calibrate(self.model, n, Cost("pure", epsilon))
        self.size = self.model.theta_shape[0]

    def records(self, theta, rng):
        data = self.model.sample_data(theta, self.n, rng)
        cells = 2 * self.model.configurations(data) + 1 - data
        every = np.zeros((*data.shape[:-1], 2 * self.size))
        np.put_along_axis(every, cells, 1.0, axis=-1)
        return Records(every, every)

    def data(self, theta, rng):
        return self.model.sufficient_statistics(self.model.sample_data(theta, self.n, rng))

    def reference(self, releases, draws, rng):
        draw = references.naive_bayes if self.name == "naive_bayes" else references.enumerated
        counts = np.stack([draw(self.model, self.n, self.scale, release, draws, rng) for release in releases])
        return self.update(counts, rng)


def made(name: str, prior, n: int, epsilon: float) -> Task:
    """Return the task on a model; raises SettingError for an unknown model, a prior it cannot have, or n too large."""
    if name in NETWORKS:
        if len(prior) != 2 or min(prior) <= 0:
            raise SettingError(f"prior is {prior}, but {name} needs 2 positive numbers, alpha and beta.")
        limit = references.LARGEST[name]
        if n > limit:
            raise SettingError(f"n is {n}, but must be at most {limit} for {name}, whose reference sums over counts")
        return NetworkTask(name, prior, n, epsilon)
    trial = experiment(name, prior, "corrected")
    kind = {Counts: OneCategory, ClampedNormal: ClampedTask}.get(type(trial), RedactedTask)
    return kind(name, trial, n, epsilon)


def same(task: RedactedTask, variant: str) -> Experiment:
    """Return the experiment of a task in another variant of `bernstein2018.trials`."""
    return experiment(task.name, [getattr(task.model, field.name) for field in fields(task.model)], variant)


def repeated(task, releases, times: int) -> tuple[Data, Release]:
    """Return data and release of `bernstein2018.trials`, each release repeated: what its kernels are made from."""
    values = np.repeat(releases.T, times, axis=1)
    low, high = (getattr(task.mechanism.model, end, None) for end in ("low", "high"))
    bounds = [None if bound is None else np.full(values.shape[1], float(bound)) for bound in (low, high)]
    scale = task.scale if bounds[0] is None else np.full(values.shape[1], task.scale)
    return Data(None, None, None, *bounds), Release(values, scale)
