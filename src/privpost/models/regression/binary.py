"""Logistic regression without intercept."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from privpost.models.base import Regression, check_records


@dataclass(frozen=True)
class BinaryRegression(Regression):
    """Logistic regression whose records are z = ±x, the features of an example with the sign of its label.

    The likelihood of a record is 1/(1 + exp(−z·w)). The model is not conjugate, so the flattened data are the
    statistics. The bound c on ‖z‖₂ and the prior w ~ N(0, (nβ)⁻¹ I) are public (Geumlek et al. 2017, section 4).

    Attributes:
        dimension: number of weights d.
        prior_precision: β > 0, the prior's precision per record.
        feature_bound: bound c > 0 on ‖z‖₂.

    >>> BinaryRegression(2, prior_precision=0.01).statistics_of(np.array([[0.6, 0.8]]), np.array([0]))
    array([-0.6, -0.8])
    """

    dimension: int
    prior_precision: float = 1e-3
    feature_bound: float = 1.0

    bounded: ClassVar[bool] = False
    # B, half of the largest difference between two records' loss gradients, in units of c.
    slope_bound: ClassVar[float] = 1.0

    @property
    def records(self) -> np.ndarray:
        """The vectors ±c e_i, shape (2d, d). Replacing one by its opposite changes a log-likelihood most."""
        axes = self.feature_bound * np.eye(self.dimension)
        return np.concatenate([axes, -axes])

    @property
    def width(self) -> int:
        """Number of entries of a record."""
        return self.dimension

    def sufficient_statistics(self, data) -> np.ndarray:
        """The records, flattened one after the other, shape (..., n d).

        Raises:
            ValueError: a record that is not finite, or longer than c.
        """
        data = check_records(data)
        if not np.all(np.sqrt(np.einsum("...d,...d->...", data, data)) <= self.feature_bound * (1 + 1e-12)):
            raise ValueError(f"data has records longer than feature_bound, {self.feature_bound}")
        return data.reshape(*data.shape[:-2], -1)

    def checked(self, statistics, n: int) -> np.ndarray:
        """Return one data set's checked statistics (n · width,), which are the flattened records.

        Raises:
            ValueError: another number of records than n, or a record with a Euclidean norm above c.
        """
        statistics = np.asarray(statistics, float)
        if statistics.shape != (n * self.width,):
            raise ValueError(f"statistics have shape {statistics.shape}; n is {n}, so it must be ({n * self.width},)")
        return self.sufficient_statistics(statistics.reshape(n, -1))

    def statistics_of(self, features, labels) -> np.ndarray:
        """Statistics (n d,) of examples with features (n, d) and labels (n,) in {0, 1}."""
        signs = np.where(np.asarray(labels) == 1, 1.0, -1.0)
        return self.sufficient_statistics(signs[:, None] * np.asarray(features, float))

    def log_likelihood(self, theta, statistics) -> np.ndarray:
        """Log-likelihoods (...) of one data set, Σ ln 1/(1 + exp(−z·w)), for weights (..., d)."""
        records = np.asarray(statistics, float).reshape(-1, self.dimension)
        return -np.logaddexp(0.0, -np.asarray(theta, float) @ records.T).sum(axis=-1)
