"""One draw from a Bayesian network's truncated posterior, where ε is per record or per attribute."""

from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np

from privpost.distributions import truncated_beta
from privpost.mechanisms.pure import PureMechanism
from privpost.models.networks.bayesian_network import BayesianNetwork
from privpost.privacy.accounting.costs import Cost
from privpost.privacy.checks import check_model, pure_epsilon


@dataclass(frozen=True)
class TrimmedSampler(PureMechanism):
    """One exact draw from the posterior with every probability restricted to [ω, 1−ω] (Zhang et al. 2016).

    A record's likelihood has |I| factors, one per node. The logarithm of a factor changes by at most ln((1−ω)/ω). A
    substituted record changes both the numerator and the normaliser of the posterior's density, so the draw is 2|I|
    ln((1−ω)/ω)-DP.

    Attributes:
        epsilon: ε > 0, from which each subclass computes ω.

    Raises:
        ValueError: a setting is outside its range, or the model is not a BayesianNetwork.
    """

    norm: ClassVar[str] = "log-likelihood ratio"
    releases: ClassVar[str] = "sample"
    public_inputs: ClassVar[tuple[str, ...]] = ("graph", "prior")
    models: ClassVar[tuple[type, ...]] = (BayesianNetwork,)

    def __post_init__(self):
        super().__post_init__()
        if not self.omega < 0.5:
            raise ValueError(f"epsilon is {self.epsilon!r}; it must be so large that ω < 1/2 in floating point")

    @property
    @abstractmethod
    def log_ratio(self) -> float:
        """Largest change ln((1−ω)/ω) of the logarithm of one likelihood factor."""

    @property
    def omega(self) -> float:
        """Bound ω in (0, ½): the posterior of every probability is truncated to [ω, 1−ω]."""
        return float(1 / (1 + np.exp(self.log_ratio)))

    @property
    def sensitivity(self) -> float:
        """Largest change |I| ln((1−ω)/ω) of a record's log-likelihood over θ."""
        return len(self.model.nodes) * self.log_ratio

    def query(self, data) -> np.ndarray:
        """Log-likelihood (101,) with all θ equal, on a grid from ω to 1 − ω, ends included."""
        grid = np.linspace(self.omega, 1 - self.omega, 101)
        theta = np.repeat(grid[:, None], self.model.theta_shape[0], axis=1)
        return self.model.log_likelihood(theta, self.model.sufficient_statistics(data))

    def _untrimmed(self, statistics):
        return self.model.pairs(self.model.posterior(statistics))

    def _perturb(self, statistics, rng):
        """Return one exact draw of θ (..., m) per leading index."""
        return truncated_beta.sample(self._untrimmed(statistics), self.omega, 1 - self.omega, rng)

    def cost(self) -> Cost:
        """Pure cost 2|I| ln((1−ω)/ω) for a substituted record."""
        return Cost("pure", 2 * self.sensitivity)

    def log_density(self, release, statistics) -> np.ndarray | None:
        """Log-density of the draw (..., m) given the counts (..., 2m)."""
        terms = truncated_beta.log_density(release, self._untrimmed(statistics), self.omega, 1 - self.omega)
        return terms.sum(axis=-1)


@dataclass(frozen=True)
class RecordSampler(TrimmedSampler):
    """The draw with ω = 1/(1 + exp(ε/(2|I|))), which is ε-DP for a substituted record.

    >>> round(RecordSampler(BayesianNetwork({"a": [], "b": ["a"]}), 100, 8.0).omega, 3)
    0.119
    """

    method: ClassVar[str] = "sampler_record"

    @property
    def log_ratio(self):
        """The largest change ln((1−ω)/ω) = ε/(2|I|) of a factor's logarithm."""
        return self.epsilon / (2 * len(self.model.nodes))

    @classmethod
    def examples(cls) -> list[Self]:
        """Two nodes, for which quadrature can cover the parameter space."""
        return [
            cls(BayesianNetwork({"a": [], "b": []}, 1, 1), 3, 9.0),
            cls(BayesianNetwork({"a": [], "b": []}, 2, 1), 2, 13.8),
        ]


@dataclass(frozen=True)
class AttributeSampler(TrimmedSampler):
    """The draw with ω = 1/(1 + exp(ε/2)), which is |I|ε-DP for a substituted record.

    A change of one attribute costs up to (1 + c)ε if its node has c children, as 1 + c factors of the likelihood
    change.

    >>> round(AttributeSampler(BayesianNetwork({"a": [], "b": ["a"]}), 100, 8.0).omega, 3)
    0.018
    """

    method: ClassVar[str] = "sampler_attribute"

    @classmethod
    def calibrate(cls, model, n: int, budget: Cost) -> Self:
        """Return the draw with the widest interval [ω, 1−ω] within the budget for a substituted record."""
        check_model(model, cls.models)
        return cls(model, n, pure_epsilon(budget, cls.method) / len(model.nodes))

    @property
    def log_ratio(self):
        """The largest change ln((1−ω)/ω) = ε/2 of a factor's logarithm."""
        return self.epsilon / 2

    @classmethod
    def examples(cls) -> list[Self]:
        """Two nodes, for which quadrature can cover the parameter space."""
        return [
            cls(BayesianNetwork({"a": [], "b": []}, 1, 1), 3, 4.5),
            cls(BayesianNetwork({"a": [], "b": []}, 2, 1), 2, 6.9),
        ]
