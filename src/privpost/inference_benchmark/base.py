"""What tasks and methods of the benchmark are written with. Everything is in batches: releases (k, q), θ (k, p)."""

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, NamedTuple

import numpy as np

from privpost.privacy.accounting.costs import Cost

# Powers r of noise whose log-density is −|x/scale|^r / r, by the mechanism's method id.
POWERS = {"laplace": 1, "geometric": 1, "gaussian": 2, "discrete_gaussian": 2}


class Refused(Exception):
    """A method cannot serve a task; its text is the reason, in one line."""


class Inferred(NamedTuple):
    """What a method infers from k releases.

    Attributes:
        draws: of θ, shape (k, chains, draws, p).
        effective: how many independent draws they are worth, shape (k,), where the method knows; None: as R-hat's
            companion says, or all of them where there is one chain.
    """

    draws: np.ndarray
    effective: np.ndarray | None = None


class Budget(NamedTuple):
    """How long a method may run on each release: chains, draws of each, and steps before. Others give all draws."""

    chains: int
    draws: int
    burn_in: int

    @property
    def total(self) -> int:
        """Draws of all chains."""
        return self.chains * self.draws


class Records(NamedTuple):
    """Records by what they add to the released coordinates (k, n, q) and to the sufficient statistics (k, n, d)."""

    released: np.ndarray
    statistics: np.ndarray


# Draws (draws, ...) by the law of one release: of θ, or of counts that determine its law.
Draw = Callable[[int, np.random.Generator], np.ndarray]


class Task(ABC):
    """A release with its model, its prior and its reference posterior.

    A subclass has `data` and `laws`. A method refuses the task if it needs more than the task has.

    Attributes:
        name: as in the tables.
        n: number of records, public unless `neighbours` are "add or remove one".
        model: the model of the records, with its prior.
        mechanism: what releases, with one release's `sensitivity` and `cost()`.
        budget: the budget that it is calibrated to.
        size: number p of parameters.
        saved: CPU seconds that calls of `reference` saved, as an earlier one had prepared the same releases.

    Class attributes:
        kind: how the reference is made: "exact", by a sum or by quadrature, or "gold", by a chain.
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
        """r of additive noise whose log-density is −|x/scale|^r / r up to a constant: 1 or 2."""
        if self.noise not in POWERS:
            raise Refused("its release is no sum with noise on it")
        return POWERS[self.noise]

    @property
    def scale(self) -> float:
        """Scale of the noise on each released coordinate, as `power` has it: b of Laplace, σ of Gaussian noise."""
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
        """Log-density (...) of releases (..., q) given the coordinates (..., q) without noise, up to a constant."""
        power = self.power
        return -(np.abs((releases - exact) / self.scale) ** power).sum(axis=-1) / power

    def prior(self, size: int, rng) -> np.ndarray:
        """Draws (size, p) from the prior."""
        return self.model.sample(self.model.prior, rng, size).reshape(size, -1)

    def log_prior(self, theta) -> np.ndarray:
        """Log-density (points,) of the prior at values of the one parameter."""
        return self.model.log_density(theta, self.model.prior)

    @abstractmethod
    def data(self, theta, rng) -> np.ndarray:
        """Statistics (k, d) of n records for each θ (k, p), as `mechanism` takes them."""

    def simulate(self, theta, rng) -> np.ndarray:
        """The released coordinates (k, q) without noise of n records for each θ (k, p)."""
        return self.mechanism.select(self.data(theta, rng))

    def records(self, theta, rng) -> Records:
        """n records for each θ (k, p)."""
        raise Refused("its records are not simulated one by one here")

    def update(self, statistics, rng) -> np.ndarray:
        """One draw (..., p) from the conjugate posterior given sufficient statistics (..., d) without noise."""
        theta = self.model.sample(self.model.posterior(statistics), rng)
        return theta.reshape(*np.shape(statistics)[:-1], self.size)

    def naive(self, releases, size: int, rng) -> np.ndarray:
        """Draws (k, size, p) from the conjugate posteriors that take releases (k, q) for statistics without noise."""
        drawn = self.model.sample(self.mechanism.naive_posterior(releases), rng, size)
        return drawn.reshape(size, len(releases), self.size).transpose(1, 0, 2)

    def moments(self, theta) -> tuple[np.ndarray, np.ndarray]:
        """Mean (points, q) and covariance (points, q, q) of the release without noise, at θ (points, p)."""
        raise Refused("the moments of its release are not known here")

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
