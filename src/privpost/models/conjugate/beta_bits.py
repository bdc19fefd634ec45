"""Records of several bits. Their common probability of 1 has a beta prior."""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from privpost.models.base import BoundedFamily
from privpost.models.conjugate.beta_bernoulli import BetaBernoulli, BetaPrior


@dataclass(frozen=True)
class BetaBits(BetaPrior, BoundedFamily):
    """A record is a row of `size` bits ~ Bernoulli(θ), with the prior θ ~ Beta(alpha, beta).

    Statistics are (Σ x̄, n − Σ x̄), where x̄ is the mean of a row, and parameters are (α, β). In minimal form a record
    adds (size x̄, size) to the natural parameters.

    Raises:
        ValueError: alpha or beta not positive and finite, or a size that is no positive integer.

    >>> BetaBits(1, 1, size=5).posterior([12.0, 8.0])
    array([61., 41.])
    """

    alpha: float = 1.0
    beta: float = 1.0
    size: int = 1

    def __post_init__(self):
        super().__post_init__()
        if self.size < 1 or self.size % 1:
            raise ValueError(f"size is {self.size!r}; it must be an integer >= 1")

    @property
    def records(self) -> np.ndarray:
        """One row for each possible number of ones, shape (size + 1, size)."""
        return np.tri(int(self.size) + 1, int(self.size), -1, dtype=np.int64)

    def sufficient_statistics(self, data) -> np.ndarray:
        """Statistics (Σ x̄, n − Σ x̄), shape (..., 2), where x̄ is the mean of a row of data (..., n, size).

        Raises:
            ValueError: a value other than 0 and 1, or rows of another length.
        """
        data = np.asarray(data)
        if data.shape[-1] != self.size or not np.all((data == 0) | (data == 1)):
            raise ValueError(f"data has records that are no rows of {self.size:g} values 0 and 1")
        ones = data.sum(axis=(-2, -1)) / self.size
        return np.stack([ones, data.shape[-2] - ones], axis=-1)

    def update(self, statistics) -> np.ndarray:
        """Increments (ones, zeros) of (α, β): the total numbers of ones and zeros."""
        return self.size * statistics

    def sample_data(self, theta, n, rng) -> np.ndarray:
        """Draws of n records per θ, shape (..., n, size)."""
        theta = np.asarray(theta, float)
        return (rng.random((*theta.shape, n, int(self.size))) < theta[..., None, None]).astype(np.int64)

    def log_likelihood(self, theta, statistics) -> np.ndarray:
        """Log-likelihood ones · ln θ + zeros · ln(1−θ), shape (...)."""
        return self.size * super().log_likelihood(theta, statistics)

    def sum_moments(self: Any, theta, n, size) -> tuple[np.ndarray, np.ndarray]:
        """Mean (nθ, n(1−θ)) and covariance ± nθ(1−θ)/size of (Σ x̄, n − Σ x̄), where x̄ is the mean of a row."""
        mean, covariance = BetaBernoulli.sum_moments(self, theta, n, size)
        return mean, covariance / self.size

    @classmethod
    def examples(cls) -> list[Self]:
        """One bit, and several."""
        return [cls(1, 2, 1), cls(10, 10, 5)]
