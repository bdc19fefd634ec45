"""Bernoulli records with a beta prior."""

from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np
from scipy.special import betainc, betaln, xlog1py, xlogy

from privpost.models.base import BoundedFamily, ConjugateModel, check_positive

# Signs of the covariance of two counts with a fixed sum.
_SIGNS = np.array([[[1.0], [-1.0]], [[-1.0], [1.0]]])


class BetaPrior(ConjugateModel):
    """Base of models with the prior θ ~ Beta(alpha, beta).

    In the minimal form of Geumlek et al. (2017) the natural parameters are η = (α, α+β) and C(η) = ln B(η₁, η₂ − η₁).
    """

    alpha: float
    beta: float

    support: ClassVar[tuple[float, float]] = (0.0, 1.0)

    def __post_init__(self):
        for name in ("alpha", "beta"):
            check_positive(name, getattr(self, name))

    @property
    def prior(self) -> np.ndarray:
        """Parameters (α, β) of the prior."""
        return np.array([self.alpha, self.beta], float)

    def natural_parameters(self, parameters) -> np.ndarray:
        """Natural parameters η = (α, α+β), shape (..., 2)."""
        parameters = np.asarray(parameters, float)
        return np.stack([parameters[..., 0], parameters.sum(axis=-1)], axis=-1)

    def log_partition(self, natural) -> np.ndarray:
        """Log-partition C(η) = ln B(η₁, η₂ − η₁), shape (...)."""
        natural = np.asarray(natural, float)
        a, b = natural[..., 0], natural[..., 1] - natural[..., 0]
        none = (a <= 0) | (b <= 0)
        return np.where(none, np.inf, betaln(np.where(none, 1.0, a), np.where(none, 1.0, b)))

    def sample(self, parameters, rng, size=None) -> np.ndarray:
        """Draws of θ, shape ([size,] ...)."""
        parameters = np.asarray(parameters, float)
        a, b = parameters[..., 0], parameters[..., 1]
        return rng.beta(a, b, size=None if size is None else (size, *a.shape))

    def mean(self, parameters) -> np.ndarray:
        """Mean α / (α+β) of θ."""
        parameters = np.asarray(parameters, float)
        return parameters[..., 0] / parameters.sum(axis=-1)

    def variance(self, parameters) -> np.ndarray:
        """Variance αβ / ((α+β)² (α+β+1)) of θ."""
        parameters = np.asarray(parameters, float)
        total = parameters.sum(axis=-1)
        return parameters[..., 0] * parameters[..., 1] / (total**2 * (total + 1))

    def log_density(self, theta, parameters) -> np.ndarray:
        """Log-density of Beta(α, β) at θ. It is −inf outside [0, 1]."""
        theta, parameters = np.asarray(theta, float), np.asarray(parameters, float)
        a, b = parameters[..., 0], parameters[..., 1]
        outside = (theta < 0) | (theta > 1)
        safe = np.where(outside, 0.5, theta)
        return np.where(outside, -np.inf, xlogy(a - 1, safe) + xlog1py(b - 1, -safe) - betaln(a, b))

    def log_likelihood(self, theta, statistics) -> np.ndarray:
        """Log-likelihood successes · ln θ + failures · ln(1−θ), shape (...)."""
        theta, statistics = np.asarray(theta, float), np.asarray(statistics, float)
        return xlogy(statistics[..., 0], theta) + xlog1py(statistics[..., 1], -theta)

    def posterior_cdf(self, theta, parameters) -> np.ndarray:
        """P(Θ ≤ θ), a regularised incomplete beta function."""
        parameters = np.asarray(parameters, float)
        return betainc(parameters[..., 0], parameters[..., 1], np.clip(theta, 0.0, 1.0))


@dataclass(frozen=True)
class BetaBernoulli(BetaPrior, BoundedFamily):
    """A record is x ~ Bernoulli(θ), with the prior θ ~ Beta(alpha, beta).

    Statistics are (successes, failures), and parameters are (α, β). In minimal form a record adds (x, 1) to the natural
    parameters.

    Raises:
        ValueError: alpha or beta not positive and finite.

    >>> BetaBernoulli(1, 1).posterior([3.0, 7.0])
    array([4., 8.])
    """

    alpha: float = 1.0
    beta: float = 1.0

    @property
    def records(self) -> np.ndarray:
        """The possible records 0 and 1."""
        return np.array([0, 1])

    def sufficient_statistics(self, data) -> np.ndarray:
        """Numbers (..., 2) of successes and of failures, for data (..., n) of zeros and ones.

        Raises:
            ValueError: a record other than 0 and 1.
        """
        data = np.asarray(data)
        if not np.all((data == 0) | (data == 1)):
            raise ValueError("data has records other than 0 and 1")
        successes = data.sum(axis=-1)
        return np.stack([successes, data.shape[-1] - successes], axis=-1).astype(float)

    def sample_data(self, theta, n, rng) -> np.ndarray:
        """Draws of n bits per θ, shape (..., n)."""
        theta = np.asarray(theta, float)
        return (rng.random((*theta.shape, n)) < theta[..., None]).astype(np.int64)

    def sum_moments(self, theta, n, size) -> tuple[np.ndarray, np.ndarray]:
        """Mean and covariance of (successes, failures), or of the successes alone if `size` is 1."""
        mean = n * theta
        variance = (mean * (1 - theta))[None, None]
        return (mean[None], variance) if size == 1 else (np.stack([mean, n - mean]), _SIGNS * variance)

    @classmethod
    def examples(cls) -> list[Self]:
        """The papers' priors, and a prior whose density is infinite at 0."""
        return [cls(1, 1), cls(6, 12), cls(10, 10), cls(0.5, 2)]
