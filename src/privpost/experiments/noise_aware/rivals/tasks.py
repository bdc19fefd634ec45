"""Tasks: a model with its prior, a release of n records at ε, and the exact posterior given the release.

A method may use what `Task` declares. Everything is in batches: releases (k, q), parameters (k, p).
"""

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import fields
from functools import partial
from typing import NamedTuple

import numpy as np

from privpost.experiments.bernstein2018.clamped import ClampedNormal
from privpost.experiments.bernstein2018.trials import Counts, Data, Experiment, Release, experiment
from privpost.experiments.noise_aware.rivals import approximation, references
from privpost.lab.schema import SettingError
from privpost.mechanisms.noise.network import NetworkLaplace
from privpost.models.networks import graphs
from privpost.models.networks.bayesian_network import BayesianNetwork
from privpost.privacy.accounting.costs import Cost
from privpost.samplers.noise_aware import normal_quadrature as quadrature
from privpost.samplers.noise_aware.gibbs import random_sum

# Tasks on Bayesian networks, with their graphs.
NETWORKS = {
    "naive_bayes": graphs.naive_bayes(2),
    "collider": graphs.checked({"a": [], "b": [], "c": ["a", "b"]}),
    "three_parents": graphs.checked({"a": [], "b": [], "c": ["a"], "d": ["a", "b", "c"], "e": ["d"]}),
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


# Draws (draws, ...) by the law of one release: of θ, or of counts that determine its law.
Draw = Callable[[int, np.random.Generator], np.ndarray]


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
        saved: CPU seconds that calls of `reference` saved, as an earlier one had prepared the same releases.
    """

    name: str
    n: int
    model: object
    mechanism: object
    size: int
    saved: float = 0.0
    _prepared: tuple[dict[bytes, Draw], float] = {}, 0.0

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

    @abstractmethod
    def data(self, theta, rng) -> np.ndarray:
        """Statistics (k, d) of n records for each θ (k, p), as `mechanism` takes them."""

    def simulate(self, theta, rng) -> np.ndarray:
        """The released coordinates (k, q) without noise of n records for each θ (k, p)."""
        return self.mechanism.select(self.data(theta, rng))

    def moments(self, theta) -> tuple[np.ndarray, np.ndarray]:
        """Mean and variance (points,) of the released sum without noise, at values (points,) of the one parameter."""
        raise Refused("the moments of its release are not known here")

    def log_prior(self, theta) -> np.ndarray:
        """Log-density (points,) of the prior at values of the one parameter."""
        return self.model.log_density(theta, self.model.prior)

    def approximation(self, releases) -> np.ndarray:
        """Total variation (k,) from the exact posterior to where the paper's normal approximation leads; nan if none.

        Args:
            releases: shape (k, q).
        """
        return np.full(len(releases), np.nan)

    @abstractmethod
    def laws(self, releases) -> Sequence[Draw]:
        """The exact posterior of each release (k, q), without the random part."""

    def reference(self, releases, draws: int, rng) -> np.ndarray:
        """Independent draws (k, draws, p) from the exact posterior of each release (k, q)."""
        laws, seconds_each = self._prepared
        keys = [np.ascontiguousarray(release).tobytes() for release in releases]
        if all(key in laws for key in keys):
            self.saved += seconds_each * len(keys)
        else:
            start = time.process_time()
            laws = dict(zip(keys, self.laws(releases), strict=True))
            self._prepared = laws, (time.process_time() - start) / len(keys)
        return np.stack([laws[key](draws, rng) for key in keys])


class OneCategory(Task):
    """Bits, or records of one category each, whose counts are released."""

    def __init__(self, name: str, trial: Experiment, n: int, epsilon: float):
        self.name, self.n, self.trial, self.model = name, n, trial, trial.model
        self.mechanism = trial.mechanism(n, epsilon)
        self.size = len(trial.parameters)

    def _probabilities(self, theta) -> np.ndarray:
        return np.concatenate([theta, 1 - theta], axis=-1) if self.size == 1 else theta

    def records(self, theta, rng):
        probabilities, uniform = self._probabilities(theta), rng.random((len(theta), self.n))
        indicators, reached = np.empty((*uniform.shape, probabilities.shape[-1])), np.zeros(uniform.shape, bool)
        for j, ends in enumerate(np.cumsum(probabilities, axis=-1).T[:-1]):
            before, reached = reached, uniform <= ends[:, None]
            indicators[..., j] = reached ^ before
        indicators[..., -1] = ~reached
        return Records(self.mechanism.select(indicators), indicators)

    def data(self, theta, rng):
        return rng.multinomial(self.n, self._probabilities(theta)).astype(float)

    def moments(self, theta):
        return self.n * theta, self.n * theta * (1 - theta)

    def laws(self, releases):
        return [partial(self._drawn, release) for release in releases]

    def approximation(self, releases):
        if self.size > 1:
            return super().approximation(releases)
        return approximation.bits(tuple(self.model.prior), releases[:, 0], self.n, self.scale)

    def _drawn(self, release, draws: int, rng) -> np.ndarray:
        return np.reshape(self.mechanism.posterior(release, draws, rng), (draws, self.size))


class NumbersTask(Task):
    """Records that are numbers, of which sums are released."""

    def __init__(self, name: str, trial: Experiment, n: int, epsilon: float):
        self.name, self.n, self.trial, self.model = name, n, trial, trial.model
        self.mechanism = trial.mechanism(n, epsilon)

    @abstractmethod
    def values(self, theta, rng) -> np.ndarray:
        """n records (k, n) for each θ (k, p)."""

    @abstractmethod
    def released(self, values) -> tuple[np.ndarray, ...]:
        """What records (k, n) add to each released coordinate, (k, n)."""

    @abstractmethod
    def statistics(self, values) -> tuple[np.ndarray, ...]:
        """What they add to each sufficient statistic but the last, their number."""

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
    """A univariate family whose sum is released, without the records outside public bounds."""

    size = 1
    _last: tuple = b"", None

    def values(self, theta, rng):
        return self.model.statistic(self.model.sample_data(theta[:, 0], self.n, rng))

    def released(self, values):
        low, high = self.mechanism.model.ends
        return (np.where((values >= low) & (values <= high), values, 0.0),)

    def statistics(self, values):
        return (values,)

    def moments(self, theta):
        bounds = self.mechanism.model.low, self.mechanism.model.high
        return random_sum(self.n, self.model.segment_moments(theta, *bounds))

    def approximation(self, releases):
        law = self._posterior(releases)
        return approximation.redacted(law, self.log_prior, self.moments, releases[:, 0], self.scale)

    def _posterior(self, releases) -> references.Posterior:
        """The exact posteriors; those of the last releases are remembered, as they take most of the time."""
        if self._last[0] != releases.tobytes():
            self._last = releases.tobytes(), references.redacted(self.mechanism, releases[:, 0])
        return self._last[1]

    def laws(self, releases):
        law = self._posterior(releases)
        laws = [references.Posterior(*(part[k : k + 1] for part in law)) for k in range(len(releases))]
        return [lambda draws, rng, law=law: law.sample(draws, rng)[:, None] for law in laws]


class ClampedTask(NumbersTask):
    """Normal records of unknown mean and variance, whose first two moments are released, clamped to public bounds."""

    size = 2

    def values(self, theta, rng):
        return self.model.sample_data(theta, self.n, rng)

    def released(self, values):
        clamped = self.mechanism.model.clamped(values)
        return clamped, np.square(clamped)

    def statistics(self, values):
        return values, np.square(values)

    def laws(self, releases):
        return [quadrature.exact(self.mechanism.model, release, self.n, self.scale).sample for release in releases]


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
        indicators = np.zeros((*data.shape[:-1], 2 * self.size))
        np.put_along_axis(indicators, cells, 1.0, axis=-1)
        return Records(indicators, indicators)

    def data(self, theta, rng):
        return self.model.sufficient_statistics(self.model.sample_data(theta, self.n, rng))

    def laws(self, releases):
        return references.counts(self.model, self.n, self.scale, releases)

    def reference(self, releases, draws, rng):
        return self.update(super().reference(releases, draws, rng), rng)


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
    """Return data and release for the kernels of `bernstein2018.trials`, with each release repeated."""
    values = np.repeat(releases.T, times, axis=1)
    low, high = (getattr(task.mechanism.model, end, None) for end in ("low", "high"))
    bounds = [None if bound is None else np.full(values.shape[1], float(bound)) for bound in (low, high)]
    scale = task.scale if bounds[0] is None else np.full(values.shape[1], task.scale)
    return Data(None, None, None, *bounds), Release(values, scale)
