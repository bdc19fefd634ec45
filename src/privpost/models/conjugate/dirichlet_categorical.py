"""Categorical records with a Dirichlet prior."""

from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np
from scipy.special import gammaln, xlogy

from privpost.models.base import BoundedFamily, counts, is_number


@dataclass(frozen=True)
class DirichletCategorical(BoundedFamily):
    """A record is x ~ Categorical(θ), with the prior θ ~ Dirichlet(concentration).

    Statistics are the counts of d categories, and parameters are the d concentrations α_i. In minimal form the natural
    parameters are η = (α_1, …, α_{d−1}, Σα). A record adds the indicators of the first d − 1 categories, and 1.

    Raises:
        ValueError: fewer than two categories, or a concentration not positive and finite.

    >>> DirichletCategorical((1, 1, 1)).posterior([3.0, 5.0, 2.0])
    array([4., 6., 3.])
    """

    concentration: tuple[float, ...]

    support: ClassVar[tuple[float, float]] = (0.0, 1.0)

    def __post_init__(self):
        if np.ndim(self.concentration) != 1 or not all(map(is_number, self.concentration)):
            raise ValueError(f"concentration is {self.concentration!r}; it must be numbers, one for each category")
        concentration = tuple(float(value) for value in self.concentration)
        object.__setattr__(self, "concentration", concentration)
        if len(concentration) < 2:
            raise ValueError(f"concentration has {len(concentration)} entries; it needs at least 2")
        if not all(0 < value < np.inf for value in concentration):
            raise ValueError(f"concentration is {concentration!r}; each entry must be > 0 and finite")

    @property
    def records(self) -> np.ndarray:
        """The possible records 0, …, d−1."""
        return np.arange(len(self.concentration))

    @property
    def extreme_records(self):
        """At most three records whose statistics differ most, including the last record."""
        return np.unique([0, 1, len(self.concentration) - 1])

    @property
    def prior(self) -> np.ndarray:
        """Concentrations α of the prior, shape (d,)."""
        return np.array(self.concentration)

    @property
    def theta_shape(self) -> tuple[int, ...]:
        """Shape (d,) of θ, a probability vector."""
        return (len(self.concentration),)

    @property
    def parameter_names(self) -> tuple[str, ...]:
        """Names of the coordinates of θ: P(0), P(1), …"""
        return tuple(f"P({place})" for place in range(len(self.concentration)))

    def sufficient_statistics(self, data) -> np.ndarray:
        """Counts (..., d) of the categories in data (..., n).

        Raises:
            ValueError: a record other than 0, …, d−1.
        """
        data = np.asarray(data)
        if not np.all(np.isin(data, self.records)):
            raise ValueError(f"data has records outside 0, ..., {len(self.concentration) - 1}")
        return counts(data.astype(np.int64), len(self.concentration))

    def natural_parameters(self, parameters) -> np.ndarray:
        """Natural parameters η = (α_1, …, α_{d−1}, Σα), shape (..., d)."""
        parameters = np.asarray(parameters, float)
        return np.concatenate([parameters[..., :-1], parameters.sum(axis=-1, keepdims=True)], axis=-1)

    def log_partition(self, natural) -> np.ndarray:
        """Log-partition C(η) = Σ ln Γ(α_i) − ln Γ(Σα), shape (...)."""
        natural = np.asarray(natural, float)
        last = natural[..., -1:] - natural[..., :-1].sum(axis=-1, keepdims=True)
        parameters = np.concatenate([natural[..., :-1], last], axis=-1)
        none = np.any(parameters <= 0, axis=-1)
        safe = np.where(none[..., None], 1.0, parameters)
        return np.where(none, np.inf, gammaln(safe).sum(axis=-1) - gammaln(safe.sum(axis=-1)))

    def sample(self, parameters, rng, size=None) -> np.ndarray:
        """Draws of θ, shape ([size,] ..., d)."""
        parameters = np.asarray(parameters, float)
        shape = parameters.shape if size is None else (size, *parameters.shape)
        if min(self.concentration) >= 0.5:
            gammas = rng.standard_gamma(parameters, size=shape)
            return gammas / gammas.sum(axis=-1, keepdims=True)
        # Gamma(α) = Gamma(α+1) U^(1/α), in logarithms: at small α all d variates can underflow to 0.
        log_gammas = np.log(rng.standard_gamma(parameters + 1, size=shape))
        log_gammas -= rng.standard_exponential(shape) / parameters
        gammas = np.exp(log_gammas - log_gammas.max(axis=-1, keepdims=True))
        return gammas / gammas.sum(axis=-1, keepdims=True)

    def sample_data(self, theta, n, rng) -> np.ndarray:
        """Draws of n categories per θ, shape (..., n)."""
        theta = np.asarray(theta, float)
        # The last cumulative sum is left out, because rounding can leave it below 1.
        inner = np.cumsum(theta, axis=-1)[..., None, :-1]
        return (rng.random((*theta.shape[:-1], n, 1)) >= inner).sum(axis=-1)

    def mean(self, parameters) -> np.ndarray:
        """Mean α / Σα of θ, shape (..., d)."""
        parameters = np.asarray(parameters, float)
        return parameters / parameters.sum(axis=-1, keepdims=True)

    def variance(self, parameters) -> np.ndarray:
        """Variances μ_i (1 − μ_i) / (Σα + 1) of θ with mean μ, shape (..., d)."""
        mean = self.mean(parameters)
        return mean * (1 - mean) / (np.sum(parameters, axis=-1, keepdims=True) + 1)

    def log_density(self, theta, parameters) -> np.ndarray:
        """Log-density of the Dirichlet law at θ, with respect to θ_1, …, θ_{d−1}. It is −inf off the simplex."""
        theta, parameters = np.asarray(theta, float), np.asarray(parameters, float)
        outside = np.any(theta < 0, axis=-1) | (np.abs(theta.sum(axis=-1) - 1) > 1e-9)
        safe = np.where(outside[..., None], 0.5, theta)
        log_normaliser = gammaln(parameters).sum(axis=-1) - gammaln(parameters.sum(axis=-1))
        return np.where(outside, -np.inf, xlogy(parameters - 1, safe).sum(axis=-1) - log_normaliser)

    def log_likelihood(self, theta, statistics) -> np.ndarray:
        """Log-likelihood Σ counts_i · ln θ_i, shape (...)."""
        return xlogy(np.asarray(statistics, float), np.asarray(theta, float)).sum(axis=-1)

    def sum_moments(self, theta, n, size) -> tuple[np.ndarray, np.ndarray]:
        """Mean n θ and covariance n (diag θ − θ θᵀ) of the counts."""
        mean = n * theta[:size]
        return mean, np.eye(size)[..., None] * mean - mean[:, None] * theta[None, :size]

    @classmethod
    def examples(cls) -> list[Self]:
        """A symmetric prior, an asymmetric prior, and a prior with small concentrations."""
        return [cls((5, 5, 5)), cls((1, 2, 3)), cls((0.3, 1))]
