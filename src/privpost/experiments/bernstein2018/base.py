"""Interface of a model, its release and its posteriors, for the studies of Bernstein and Sheldon (2018)."""

from abc import ABC, abstractmethod
from functools import partial
from typing import NamedTuple

import numpy as np

from privpost.evaluation.mmd import Bins, UnitInterval
from privpost.mechanisms.noise.laplace import LaplaceMechanism
from privpost.privacy.accounting.costs import Cost
from privpost.samplers.noise_aware.gibbs import Kernel

# Probability that a record lies between the redaction bounds.
COVERAGE = 0.95
# Largest number of records in memory at once.
RECORDS = 2_000_000


class Data(NamedTuple):
    """Simulated data sets of a model at one n, called trials. The last axis of every array is the trials.

    Attributes:
        theta: true parameters (parameters, trials).
        statistics: sufficient statistics of the data (d, trials).
        exact: statistics (q, trials) that the mechanism adds noise to.
        low, high: redaction bounds (trials,), or None for a model with bounded statistics.
    """

    theta: np.ndarray
    statistics: np.ndarray
    exact: np.ndarray
    low: np.ndarray | None = None
    high: np.ndarray | None = None


class Release(NamedTuple):
    """Noisy statistics (q, trials), and the scale of their noise, which is a number or an array (trials,)."""

    values: np.ndarray
    scale: np.ndarray | float


class Experiment(ABC):
    """A model with its prior, its release and its posteriors.

    Attributes:
        parameters: names of the parameters.
        alike: a label for each parameter. Parameters with equal labels are exchangeable in the model and the release.
        space: feature space for the MMD between laws of the first parameter.
        uses_private_metadata: whether redaction bounds depend on the true θ.
        collapses: whether `kernel` can integrate the latent sum out of the update of θ.
    """

    parameters: tuple[str, ...]
    alike: tuple
    space: UnitInterval | Bins
    uses_private_metadata = False
    collapses = False

    def open(self, ledger, account: str, n: int, epsilon: float) -> None:
        """Open the ledger account that `release` charges, with a budget of ε per trial."""
        ledger.open(account, Cost("pure", epsilon), partial(self.mechanism, n, epsilon))

    def release(self, ledger, account: str, data: Data, n: int, epsilon: float, rng, trials: slice) -> Release:
        """Return an ε-differentially private release of each trial's data, and charge the account for these trials."""
        mechanism = self.mechanism(n, epsilon, data)
        return Release(ledger.release(account, mechanism, data.exact.T, rng, repeats=trials).values.T, mechanism.scale)

    @abstractmethod
    def mechanism(self, n: int, epsilon: float, data: Data | None = None) -> LaplaceMechanism:
        """Return the mechanism for the data. Without data, return a mechanism with the same privacy cost."""

    @abstractmethod
    def data(self, n: int, size: int, rng: np.random.Generator) -> Data:
        """Draw `size` parameters from the prior, and n records for each parameter."""

    @abstractmethod
    def kernel(self, data: Data, release: Release, n: int) -> Kernel:
        """Return the transition kernel of the noise-aware Gibbs sampler given the release."""

    @abstractmethod
    def exact_quantiles(self, data: Data, releases: list[Release], n: int) -> np.ndarray:
        """Return the true θ's posterior quantiles (parameters, releases, trials), computed without MCMC."""

    @abstractmethod
    def exact_moments(self, data: Data, release: Release, n: int) -> tuple[np.ndarray, np.ndarray]:
        """Return mean and standard deviation (trials,) of the first parameter's posterior, computed without MCMC."""

    @abstractmethod
    def exact_features(self, data: Data, release: Release, n: int) -> np.ndarray:
        """Return the first parameter's posterior, computed without MCMC, as features in `space`."""

    @abstractmethod
    def features(self, statistics) -> np.ndarray:
        """Return the first parameter's posterior given exact statistics (d, trials), as features in `space`."""

    @abstractmethod
    def naive(self, data: Data, release: Release, n: int) -> tuple[np.ndarray, float]:
        """Return statistics (d, trials) that the naive method takes for exact, and the share of projected trials."""

    @abstractmethod
    def quantiles(self, data: Data, statistics: np.ndarray) -> np.ndarray:
        """Return the true θ's posterior quantiles (parameters, trials), given exact statistics (d, trials)."""

    def naive_cost(self, epsilon: float) -> Cost:
        """Return the privacy cost of the statistics that the naive method reads."""
        return Cost("pure", epsilon)
