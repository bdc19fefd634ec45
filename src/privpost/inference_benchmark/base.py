"""Base classes of the benchmark's tasks and methods, for batches of releases (k, q) and of parameters θ (k, p)."""

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, NamedTuple

import numpy as np

from privpost.privacy.accounting.costs import Cost

# Power r by the mechanism's method id. The noise x has the log-density −|x/scale|^r / r, up to a constant.
POWERS = {"laplace": 1, "geometric": 1, "gaussian": 2, "discrete_gaussian": 2}


class Refused(Exception):
    """Raised if a method cannot serve a task. The text gives the reason in one line."""


class Inferred(NamedTuple):
    """Draws (k, chains, draws, p) of θ given k releases, and their effective sample sizes (k,), or None if unknown."""

    draws: np.ndarray
    effective: np.ndarray | None = None


class Budget(NamedTuple):
    """Numbers of chains per release, draws per chain, and burn-in steps per chain."""

    chains: int
    draws: int
    burn_in: int

    @property
    def total(self) -> int:
        """Number of draws of all chains together, which is also the number of draws of a method without chains."""
        return self.chains * self.draws


class Records(NamedTuple):
    """Contributions of each record: (k, n, q) to the released coordinates, (k, n, d) to the sufficient statistics."""

    released: np.ndarray
    statistics: np.ndarray


# Function of the number of draws and a generator. It draws θ, or counts that determine the law of θ, given a release.
Draw = Callable[[int, np.random.Generator], np.ndarray]


class Task(ABC):
    """A release with its model, its prior and its reference posterior.

    A subclass defines `data` and `laws`, and can define the other functions.

    Attributes:
        name: the task's name in the tables.
        n: number of records, which is public unless `neighbours` is "add or remove one".
        model: the model of the records, with its prior.
        mechanism: the mechanism, with the `sensitivity` and `cost()` of one release.
        budget: the budget that the mechanism is calibrated to.
        size: number p of parameters.
        saved: CPU seconds that calls of `reference` saved by reuse of earlier preparations.

    Class attributes:
        kind: "exact" if the reference is a sum or a quadrature, and "gold" if it is a chain.
    """

    name: str
    n: int
    model: Any
    mechanism: Any
    budget: Cost
    size: int
    saved: float = 0.0
    kind: ClassVar[str] = "exact"
    _prepared: tuple[dict[bytes, Draw], float] = {}, 0.0

    @property
    def neighbours(self) -> str:
        """Relation between neighbouring data sets in the mechanism's guarantee."""
        return self.mechanism.neighbours

    @property
    def noise(self) -> str:
        """Method id of the mechanism, such as "laplace"."""
        return self.mechanism.method

    @property
    def power(self) -> int:
        """Power r, 1 or 2, of additive noise x with the log-density −|x/scale|^r / r, up to a constant."""
        if self.noise not in POWERS:
            raise Refused("its release is no sum with noise on it")
        return POWERS[self.noise]

    @property
    def scale(self) -> float:
        """Scale of the noise on each released coordinate: b for Laplace noise, σ for Gaussian noise."""
        return float(np.max(self.mechanism.scale if self.power == 1 else self.mechanism.sigma))

    @property
    def noise_variance(self) -> float:
        """Variance of the noise on each released coordinate."""
        if self.noise == "geometric":
            return 1 / (2 * np.sinh(1 / (2 * self.scale)) ** 2)
        if self.noise == "discrete_gaussian":
            value = np.arange(np.ceil(40 * self.scale + 1))
            mass = np.exp(-0.5 * (value / self.scale) ** 2)
            return float(2 * (value**2 @ mass) / (2 * mass.sum() - 1))
        return self.scale**2 * (2 if self.power == 1 else 1)

    def noise_log_density(self, releases, exact) -> np.ndarray:
        """Log-density (...) of releases (..., q) given the noiseless coordinates `exact` (..., q), up to a constant."""
        power = self.power
        return -(np.abs((releases - exact) / self.scale) ** power).sum(axis=-1) / power

    def prior(self, size: int, rng) -> np.ndarray:
        """Draws (size, p) from the prior."""
        return self.model.sample(self.model.prior, rng, size).reshape(size, -1)

    def log_prior(self, theta) -> np.ndarray:
        """Log-density (points,) of the prior at values of θ (points,), for tasks with one parameter."""
        return self.model.log_density(theta, self.model.prior)

    @abstractmethod
    def data(self, theta, rng) -> np.ndarray:
        """Simulated statistics (k, d) of n records for each θ (k, p), as the mechanism takes them."""

    def simulate(self, theta, rng) -> np.ndarray:
        """Simulated noiseless coordinates (k, q) of n records for each θ (k, p)."""
        return self.mechanism.select(self.data(theta, rng))

    def records(self, theta, rng) -> Records:
        """Simulated records, n for each θ (k, p)."""
        raise Refused("its records are not simulated one by one here")

    def update(self, statistics, rng) -> np.ndarray:
        """One draw (..., p) from the conjugate posterior given noiseless sufficient statistics (..., d)."""
        theta = self.model.sample(self.model.posterior(statistics), rng)
        return theta.reshape(*np.shape(statistics)[:-1], self.size)

    def naive(self, releases, size: int, rng) -> np.ndarray:
        """Draws (k, size, p) from conjugate posteriors that treat the releases (k, q) as noiseless statistics."""
        drawn = self.model.sample(self.mechanism.naive_posterior(releases), rng, size)
        return drawn.reshape(size, len(releases), self.size).transpose(1, 0, 2)

    def moments(self, theta) -> tuple[np.ndarray, np.ndarray]:
        """Mean (points, q) and covariance (points, q, q) of the noiseless coordinates given θ (points, p)."""
        raise Refused("the moments of its release are not known here")

    @abstractmethod
    def laws(self, releases) -> Sequence[Draw]:
        """Functions that draw from the exact posterior, one for each of the releases (k, q)."""

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
