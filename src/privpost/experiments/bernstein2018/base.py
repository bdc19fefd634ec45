"""What studies of Bernstein and Sheldon (2018) need from a model and its release."""

from abc import ABC, abstractmethod
from functools import partial
from typing import NamedTuple

import numpy as np

from privpost.evaluation.mmd import Bins, UnitInterval
from privpost.mechanisms.noise.laplace import LaplaceMechanism
from privpost.privacy.accounting.costs import Cost
from privpost.samplers.noise_aware.gibbs import Kernel

# Probability of a record between the redaction bounds.
COVERAGE = 0.95
# The most records in memory at once.
RECORDS = 2_000_000


class Data(NamedTuple):
    """Trials of a model at one n, along the last axis.

    Attributes:
        theta: true parameters (parameters, trials).
        statistics: sufficient statistics of the data (d, trials).
        exact: statistics that the mechanism adds noise to (q, trials).
        low, high: redaction bounds (trials,); None for a model with bounded statistics.
    """

    theta: np.ndarray
    statistics: np.ndarray
    exact: np.ndarray
    low: np.ndarray | None = None
    high: np.ndarray | None = None


class Release(NamedTuple):
    """Noisy statistics (q, trials), and the scale of their noise, scalar or (trials,)."""

    values: np.ndarray
    scale: np.ndarray | float


class Experiment(ABC):
    """A model with its prior, its release and its posteriors.

    Attributes:
        parameters: names of the parameters.
        alike: a label for each parameter; those with one label are exchangeable in the model and in its release.
        space: feature space in which the distance of two laws of the first parameter is their MMD.
        uses_private_metadata: whether redaction bounds depend on the true θ.
        collapses: whether `kernel` can be collapsed, which integrates the latent sum out of the update of θ.
    """

    parameters: tuple[str, ...]
    alike: tuple
    space: UnitInterval | Bins
    uses_private_metadata = False
    collapses = False

    def open(self, ledger, account: str, n: int, epsilon: float) -> None:
        """Open the account that `release` draws on, with ε per trial."""
        ledger.open(account, Cost("pure", epsilon), partial(self.mechanism, n, epsilon))

    def release(self, ledger, account: str, data: Data, n: int, epsilon: float, rng, trials: slice) -> Release:
        """Return an ε-differentially private release of each trial's data."""
        mechanism = self.mechanism(n, epsilon, data)
        return Release(ledger.release(account, mechanism, data.exact.T, rng, repeats=trials).values.T, mechanism.scale)

    @abstractmethod
    def mechanism(self, n: int, epsilon: float, data: Data | None = None) -> LaplaceMechanism:
        """Return the mechanism; without data, one of the same cost."""

    @abstractmethod
    def data(self, n: int, size: int, rng: np.random.Generator) -> Data:
        """Draw parameters from the prior, and data given them."""

    @abstractmethod
    def kernel(self, data: Data, release: Release, n: int) -> Kernel:
        """Return the noise-aware Gibbs sampler of the release."""

    @abstractmethod
    def exact_quantiles(self, data: Data, releases: list[Release], n: int) -> np.ndarray:
        """Return P(Θ ≤ θ | y) at the true θ without a chain, shape (parameters, releases, trials)."""

    @abstractmethod
    def exact_moments(self, data: Data, release: Release, n: int) -> tuple[np.ndarray, np.ndarray]:
        """Return mean and standard deviation (trials,) of the first parameter given y, without a chain."""

    @abstractmethod
    def exact_features(self, data: Data, release: Release, n: int) -> np.ndarray:
        """Return the first parameter's law given y, without a chain, as features in `space`."""

    @abstractmethod
    def features(self, statistics) -> np.ndarray:
        """Return the first parameter's conjugate posterior given statistics (d, trials), in `space`."""

    @abstractmethod
    def naive(self, data: Data, release: Release, n: int) -> tuple[np.ndarray, float]:
        """Return the statistics (d, trials) that the naive method takes for true, and the share of projected trials."""

    @abstractmethod
    def quantiles(self, data: Data, statistics: np.ndarray) -> np.ndarray:
        """Return P(Θ ≤ θ) (parameters, trials) at the true θ in the posterior given statistics (d, trials)."""

    def naive_cost(self, epsilon: float) -> Cost:
        """Return the cost of what the naive method reads."""
        return Cost("pure", epsilon)
