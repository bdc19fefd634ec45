"""Laplace mechanism on the counts of a Bayesian network."""

from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from privpost.mechanisms.noise.laplace import LaplaceMechanism
from privpost.models.networks.bayesian_network import BayesianNetwork
from privpost.privacy.checks import check_given
from privpost.samplers.noise_aware import draws as noise_aware_draws


@dataclass(frozen=True)
class NetworkLaplace(LaplaceMechanism):
    """Counts of a network of |I| nodes plus Laplace noise of scale 2|I|/ε (Zhang et al. 2016, algorithm 1).

    A substituted record moves at most one unit between two counts of each node, so Δ = 2|I| (lemma 1).

    Raises:
        ValueError: a setting is outside its range, or the model is not a BayesianNetwork.

    >>> NetworkLaplace(BayesianNetwork({"a": [], "b": ["a"]}), 100, 1.0).scale
    4.0
    """

    public_inputs: ClassVar[tuple[str, ...]] = ("n", "graph", "prior")
    models: ClassVar[tuple[type, ...]] = (BayesianNetwork,)

    @property
    def sensitivity(self) -> float:
        """L1 sensitivity 2|I|, attained if a record of zeros is substituted by a record of ones."""
        return 2.0 * len(self.model.nodes)

    def project(self, release) -> np.ndarray:
        """The counts (..., 2m), truncated to [0, n]."""
        return np.clip(np.asarray(release, float), 0.0, self.n)

    def posterior(self, release: ArrayLike, draws: int, rng: np.random.Generator) -> noise_aware_draws.Draws:
        """Return draws (draws, m) of θ given one release (2m,), from Markov chains over θ and the true counts."""
        check_given(release, self.model.prior.shape, draws, rng)
        chains = noise_aware_draws.network(self.model, release, self.n, self.scale, draws, rng)
        return noise_aware_draws.named(noise_aware_draws.diagnosed(chains, draws, chains), self.model)

    @classmethod
    def examples(cls) -> list[Self]:
        """Two connected nodes, a node with two parents, and a chain of three nodes."""
        return [
            cls(BayesianNetwork({"a": [], "b": ["a"]}), 3, 1.0),
            cls(BayesianNetwork({"a": [], "b": [], "c": ["a", "b"]}), 2, 0.5),
            cls(BayesianNetwork({"a": [], "b": ["a"], "c": ["b"]}, 2, 1), 2, 2.0),
        ]
