"""Base classes of the benchmark's tasks and methods. All arrays are batches: releases (k, q), θ (k, p)."""

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, NamedTuple

import numpy as np

from privpost.privacy.accounting.costs import Cost

# Powers r by the mechanism's method id. The noise has the log-density −|x/scale|^r / r, up to a constant.
POWERS = {"laplace": 1, "geometric": 1, "gaussian": 2, "discrete_gaussian": 2}


class Refused(Exception):
    """A method cannot serve a task. The text of the exception is the reason, in one line."""


class Inferred(NamedTuple):
    """What a method infers from k releases.

    Attributes:
        draws: draws of θ, shape (k, chains, draws, p).
        effective: effective sample sizes, shape (k,), if the method knows them. If None, they are estimated from
            several chains. The draws of a single chain count as independent.
    """

    draws: np.ndarray
    effective: np.ndarray | None = None


class Budget(NamedTuple):
    """Chains per release, draws per chain, and burn-in steps per chain. Methods without chains give `total` draws."""

    chains: int
    draws: int
    burn_in: int

    @property
    def total(self) -> int:
        """Number of draws of all chains together."""
        return self.chains * self.draws


class Records(NamedTuple):
    """What each record adds to the released coordinates (k, n, q), and to the sufficient statistics (k, n, d)."""

    released: np.ndarray
    statistics: np.ndarray


# Function (draws, rng) that draws from the posterior given one release. It draws θ, or counts that determine θ's law.
Draw = Callable[[int, np.random.Generator], np.ndarray]


class Task(ABC):
    """A release with its model, its prior and its reference posterior.

    A subclass has to define `data` and `laws`. Everything else is optional. A method refuses a task that lacks what the
    method needs.

    Attributes:
        name: the task's name in the tables.
        n: number of records. It is public unless `neighbours` is "add or remove one".
        model: the model of the records, with its prior.
        mechanism: the mechanism, with the `sensitivity` and `cost()` of one release.
        budget: the budget that the mechanism is calibrated to.
        size: number p of parameters.
        saved: CPU seconds that calls of `reference` saved because an earlier call had prepared the same releases.

    Class attributes:
        kind: how the reference is computed: "exact", by a sum or by quadrature, or "gold", by a chain.
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
        """Relation between data sets that the mechanism's guarantee is about."""
        return self.mechanism.neighbours

    @property
    def noise(self) -> str:
        """Method id of the mechanism, such as "laplace"."""
        return self.mechanism.method

    @property
    def power(self) -> int:
        """Power r of additive noise with the log-density −|x/scale|^r / r, up to a constant: 1 or 2."""
        if self.noise not in POWERS:
            raise Refused("its release is no sum with noise on it")
        return POWERS[self.noise]

    @property
    def scale(self) -> float:
        """Scale of the noise on each released coordinate: b of Laplace noise, σ of Gaussian noise."""
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
        """Log-density (points,) of the prior at values of θ, for tasks with one parameter."""
        return self.model.log_density(theta, self.model.prior)

    @abstractmethod
    def data(self, theta, rng) -> np.ndarray:
        """Simulated statistics (k, d) of n records for each θ (k, p), in the form that `mechanism` takes."""

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
        """Draws (k, size, p) from the conjugate posteriors that take releases (k, q) for noiseless statistics."""
        drawn = self.model.sample(self.mechanism.naive_posterior(releases), rng, size)
        return drawn.reshape(size, len(releases), self.size).transpose(1, 0, 2)

    def moments(self, theta) -> tuple[np.ndarray, np.ndarray]:
        """Mean (points, q) and covariance (points, q, q) of the noiseless coordinates given θ (points, p)."""
        raise Refused("the moments of its release are not known here")

    @abstractmethod
    def laws(self, releases) -> Sequence[Draw]:
        """One function per release (k, q) that draws from the release's exact posterior. `laws` does all other work."""

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
