"""Bayesian network of Bernoulli variables with beta priors."""

import functools
import itertools
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from privpost.models.base import counts
from privpost.models.conjugate.beta_bernoulli import BetaPrior
from privpost.models.networks import graphs

# Largest number of nodes for which all records are listed.
LARGEST_ALPHABET = 8
# Exact marginals sum over all 2^|I| configurations.
LARGEST_ENUMERATION = 16


@dataclass(frozen=True)
class BayesianNetwork(BetaPrior):
    """Bayesian network with x_i ~ Bernoulli(θ_ij) given parents = j, and independent priors θ_ij ~ Beta(alpha, beta).

    Records are rows of bits, one column per node in the order of `parents` (Zhang et al. 2016, example 1). A node with
    k parents has 2^k probabilities, and m is the number of all probabilities θ. Their order is by node, then by the
    parents' bits as a binary number with the first parent as its highest bit. Statistics (2m,) count, for each θ in
    turn, how often its node is 1 and how often 0. Parameters (2m,) are α and β of each θ in turn.

    Attributes:
        parents: the graph: (node, parents) pairs, or a map from node to parents.
        alpha, beta: parameters of every prior.

    Raises:
        ValueError: the graph is invalid (see `graphs.checked`), or a prior parameter is not positive and finite.

    >>> BayesianNetwork({"rain": [], "wet": ["rain"]}).sufficient_statistics(np.array([[1, 1], [0, 0]]))
    array([1., 1., 0., 1., 1., 0.])
    """

    parents: Any
    alpha: float = 1.0
    beta: float = 1.0

    def __post_init__(self):
        object.__setattr__(self, "parents", graphs.checked(self.parents))
        super().__post_init__()

    @classmethod
    def from_digraph(cls, digraph, alpha: float = 1.0, beta: float = 1.0) -> "BayesianNetwork":
        """Return the network on a networkx DiGraph, with columns in the graph's order."""
        return cls(graphs.from_digraph(digraph), alpha, beta)

    @classmethod
    def from_yaml(cls, path, alpha: float = 1.0, beta: float = 1.0) -> "BayesianNetwork":
        """Return the network on the graph that a YAML file gives as `nodes: {node: [parents], …}`."""
        return cls(graphs.from_yaml(path), alpha, beta)

    @functools.cached_property
    def nodes(self) -> tuple[str, ...]:
        """Names of the nodes."""
        return tuple(node for node, _ in self.parents)

    @functools.cached_property
    def families(self) -> tuple[tuple[int, ...], ...]:
        """For each node, the column numbers of the node's parents, followed by the node's own column number."""
        column = {node: i for i, node in enumerate(self.nodes)}
        return tuple((*(column[parent] for parent in parents), column[node]) for node, parents in self.parents)

    @functools.cached_property
    def offsets(self) -> np.ndarray:
        """Index of each node's first θ, followed by the number m of all θ; shape (|I| + 1,)."""
        return np.cumsum([0, *(2 ** (len(family) - 1) for family in self.families)])

    @functools.cached_property
    def owner(self) -> np.ndarray:
        """The node that each θ belongs to, shape (m,)."""
        return np.repeat(np.arange(len(self.nodes)), np.diff(self.offsets))

    @property
    def records(self) -> np.ndarray:
        """All rows of bits, shape (2^|I|, |I|). With more than 8 nodes, only one row of zeros and one of ones.

        The statistics of these two rows differ most, because every node's family falls into different cells.
        """
        size = len(self.nodes)
        if size > LARGEST_ALPHABET:
            return np.stack([np.zeros(size, np.int64), np.ones(size, np.int64)])
        return np.array(list(itertools.product((0, 1), repeat=size)))

    @property
    def prior(self) -> np.ndarray:
        """Parameters (α, β) of the prior of every θ, shape (2m,)."""
        return np.tile([float(self.alpha), float(self.beta)], self.offsets[-1])

    @property
    def theta_shape(self) -> tuple[int, ...]:
        """Shape (m,) of θ."""
        return (int(self.offsets[-1]),)

    @property
    def parameter_names(self) -> tuple[str, ...]:
        """Names of the coordinates of θ, such as P(wet | rain=0)."""
        return tuple(
            f"P({node}{' | ' * bool(parents)}"
            + ", ".join(f"{parent}={bit}" for parent, bit in zip(parents, bits, strict=True))
            + ")"
            for node, parents in self.parents
            for bits in itertools.product((0, 1), repeat=len(parents))
        )

    def configurations(self, data) -> np.ndarray:
        """Index of the θ that governs each node in each record, shape (..., n, |I|).

        Raises:
            ValueError: data with another number of columns.
        """
        data = self._checked(data)
        index = np.empty(data.shape, np.int64)
        for i, family in enumerate(self.families):
            code = np.zeros(data.shape[:-1], np.int64)
            for parent in family[:-1]:
                code = 2 * code + data[..., parent].astype(np.int64)
            index[..., i] = self.offsets[i] + code
        return index

    def _checked(self, data) -> np.ndarray:
        data = np.asarray(data)
        if data.shape[-1] != len(self.nodes):
            raise ValueError(f"data has {data.shape[-1]} columns; the network has {len(self.nodes)} nodes")
        return data

    def sufficient_statistics(self, data) -> np.ndarray:
        """Counts (..., 2m) in data (..., n, |I|): for each θ, how often its node is 1 and how often 0.

        Raises:
            ValueError: a value other than 0 and 1 (the message names the node), or another number of columns.
        """
        data = self._checked(data)
        for i, node in enumerate(self.nodes):
            if not np.all((data[..., i] == 0) | (data[..., i] == 1)):
                raise ValueError(f"node {node!r}: data has values other than 0 and 1")
        index = self.configurations(data)
        cell = 2 * index + 1 - data.astype(np.int64)
        return counts(cell.reshape(*data.shape[:-2], -1), self.statistics_size)

    @staticmethod
    def pairs(parameters) -> np.ndarray:
        """Reshape (α, β) of every θ from (..., 2m) to (..., m, 2)."""
        parameters = np.asarray(parameters, float)
        return parameters.reshape(*parameters.shape[:-1], -1, 2)

    def natural_parameters(self, parameters) -> np.ndarray:
        """Natural parameters η = (α, α+β) per θ, shape (..., 2m)."""
        return super().natural_parameters(self.pairs(parameters)).reshape(np.shape(parameters))

    def log_partition(self, natural) -> np.ndarray:
        """Log-partition C(η) = Σ ln B(η₁, η₂ − η₁), shape (...)."""
        return super().log_partition(self.pairs(natural)).sum(axis=-1)

    def sample(self, parameters, rng, size=None) -> np.ndarray:
        """Draws of θ, shape ([size,] ..., m)."""
        return super().sample(self.pairs(parameters), rng, size)

    def sample_data(self, theta, n, rng) -> np.ndarray:
        """Draws of n records per θ, shape (..., n, |I|)."""
        theta = np.asarray(theta, float)
        uniform = rng.random((*theta.shape[:-1], n, len(self.nodes)))
        data = np.zeros(uniform.shape, np.int64)
        column = {node: i for i, node in enumerate(self.nodes)}
        for node in graphs.topological_order(self.parents):
            i = column[node]
            code = np.zeros(uniform.shape[:-1], np.int64)
            for parent in self.families[i][:-1]:
                code = 2 * code + data[..., parent]
            probabilities = theta[..., self.offsets[i] : self.offsets[i + 1]]
            data[..., i] = uniform[..., i] < np.take_along_axis(probabilities, code, axis=-1)
        return data

    def mean(self, parameters) -> np.ndarray:
        """Mean α / (α+β) of each θ, shape (..., m)."""
        return super().mean(self.pairs(parameters))

    def variance(self, parameters) -> np.ndarray:
        """Variance αβ / ((α+β)² (α+β+1)) of each θ, shape (..., m)."""
        return super().variance(self.pairs(parameters))

    def log_density(self, theta, parameters) -> np.ndarray:
        """Sum of the Beta(α, β) log-densities at θ (..., m). It is −inf outside [0, 1]^m."""
        values = super().log_density(theta, self.pairs(parameters))
        # Where one coordinate's density is 0, a pole of another must not make the sum nan.
        outside = np.any(np.isneginf(values), axis=-1)
        return np.where(outside, -np.inf, np.where(np.expand_dims(outside, -1), 0.0, values).sum(axis=-1))

    def log_likelihood(self, theta, statistics) -> np.ndarray:
        """Log-likelihood Σ ones · ln θ + zeros · ln(1−θ), shape (...)."""
        return super().log_likelihood(theta, self.pairs(statistics)).sum(axis=-1)

    def posterior_cdf(self, theta, parameters) -> np.ndarray:
        """P(Θ ≤ θ) of each θ, a regularised incomplete beta function, shape (..., m)."""
        return super().posterior_cdf(theta, self.pairs(parameters))

    def record_probabilities(self, theta) -> np.ndarray:
        """Probabilities (..., 2^|I|) of all records, in ascending order as binary numbers, given θ (..., m).

        Raises:
            ValueError: a network of more than 16 nodes.
        """
        theta = np.asarray(theta, float)
        records = self._enumerated()
        index = self.configurations(records)
        joint = np.ones((*theta.shape[:-1], len(records)))
        for i in range(len(self.nodes)):
            chance = theta[..., index[:, i]]
            joint *= np.where(records[:, i] == 1, chance, 1 - chance)
        return joint

    def cell_probabilities(self, theta) -> np.ndarray:
        """Probabilities P(parents = j, x_i = 1) and P(parents = j, x_i = 0) of all cells, given θ (..., m).

        These probabilities are the expected statistics (..., 2m) of one record.

        Raises:
            ValueError: a network of more than 16 nodes.
        """
        return self.record_probabilities(theta) @ self.sufficient_statistics(self._enumerated()[:, None, :])

    def _enumerated(self) -> np.ndarray:
        size = len(self.nodes)
        if size > LARGEST_ENUMERATION:
            raise ValueError(f"graph has {size} nodes; exact marginals need at most {LARGEST_ENUMERATION}")
        return np.array(list(itertools.product((0, 1), repeat=size)))

    @classmethod
    def examples(cls) -> list[Self]:
        """Two nodes, without and with an edge."""
        return [cls({"a": [], "b": []}, 1, 1), cls({"a": [], "b": ["a"]}, 2, 1)]
