"""Bayesian linear regression with known noise variance and a spherical normal prior."""

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from privpost.models.base import Regression, check_records


class Moments(NamedTuple):
    """Number of rows of a data set, and their moments XᵀX (d, d), Xᵀy (d,) and yᵀy."""

    rows: int
    gram: np.ndarray
    cross: np.ndarray
    square: float

    @classmethod
    def of(cls, features, labels) -> "Moments":
        """Moments of features (n, d) and labels (n,)."""
        features, labels = np.asarray(features, float), np.asarray(labels, float)
        return cls(len(labels), features.T @ features, features.T @ labels, float(labels @ labels))

    @property
    def statistics(self) -> np.ndarray:
        """The sufficient statistics (d² + d + 1,) of `LinearRegression`."""
        return np.concatenate([self.gram.ravel(), self.cross, [self.square]])

    def without(self, part: "Moments") -> "Moments":
        """Moments of the rows that remain when the rows of `part` are left out."""
        return Moments(self.rows - part.rows, self.gram - part.gram, self.cross - part.cross, self.square - part.square)

    def mean_squared_error(self, weights) -> np.ndarray:
        """Mean squared error (...) of the predictions x·w on these rows, for weights (..., d)."""
        weights = np.asarray(weights, float)
        quadratic = np.einsum("...i,ij,...j->...", weights, self.gram, weights)
        return (self.square - 2 * weights @ self.cross + quadratic) / self.rows


class SecondMoments(Regression):
    """A regression whose sufficient statistics are the second moments of features and label within public bounds."""

    feature_bound: float
    label_bound: float

    # Second moments are bounded, but `records` do not show their range, so separate mechanisms add noise.
    bounded: ClassVar[bool] = False

    def check(self, features, labels) -> None:
        """Raises a ValueError unless features (..., d) and labels (...) are within the public bounds."""
        norm, label = float(np.linalg.norm(features, axis=-1).max()), float(np.abs(labels).max())
        if not (norm <= self.feature_bound * (1 + 1e-12) and label <= self.label_bound):
            raise ValueError(
                f"feature_bound is {self.feature_bound} and label_bound {self.label_bound}; the records reach "
                f"{norm:g} and {label:g}"
            )

    def sufficient_statistics(self, data) -> np.ndarray:
        """Statistics XᵀX, Xᵀy and yᵀy of records (..., n, d + 1), flattened to (..., d² + d + 1).

        Raises:
            ValueError: a record that is not finite, or beyond the public bounds.
        """
        data = check_records(data)
        self.check(data[..., :-1], data[..., -1])
        products = np.swapaxes(data, -1, -2) @ data
        gram, cross, square = products[..., :-1, :-1], products[..., :-1, -1], products[..., -1, -1]
        return np.concatenate([gram.reshape(*gram.shape[:-2], -1), cross, square[..., None]], axis=-1)

    def _split(self, statistics):
        statistics = np.asarray(statistics, float)
        gram, cross, square = np.split(statistics, [self.dimension**2, -1], axis=-1)
        return gram.reshape(*gram.shape[:-1], self.dimension, self.dimension), cross, square[..., 0]


@dataclass(frozen=True)
class LinearRegression(SecondMoments):
    """Linear regression with y ~ N(xᵀw, σ²) and the prior w ~ N(0, I/b).

    A record is (x, y), shape (d + 1,). Statistics are XᵀX, Xᵀy and yᵀy, flattened.

    Attributes:
        dimension: number of weights d.
        prior_precision: precision b > 0 of the prior.
        noise_variance: variance σ² > 0 of the noise.
        feature_bound: public bound X > 0 on ‖x‖₂.
        label_bound: public bound Y > 0 on |y|.

    >>> LinearRegression(1).sufficient_statistics(np.array([[0.5, 1.0], [1.0, 0.5]]))
    array([1.25, 1.  , 1.25])
    """

    dimension: int
    prior_precision: float = 1.0
    noise_variance: float = 1.0
    feature_bound: float = 1.0
    label_bound: float = 1.0

    support: ClassVar[tuple[float, float]] = (-np.inf, np.inf)

    @property
    def records(self) -> np.ndarray:
        """Records (X e_i, ±Y) and zeros, shape (2d + 1, d + 1). Their likelihoods on a ball of weights differ most."""
        axes = self.feature_bound * np.eye(self.dimension)
        extreme = [np.column_stack([axes, np.full(self.dimension, y)]) for y in (self.label_bound, -self.label_bound)]
        return np.concatenate([*extreme, np.zeros((1, self.dimension + 1))])

    def posterior(self, statistics) -> tuple[np.ndarray, np.ndarray]:
        """Mean (..., d) and precision (..., d, d) of w given the statistics."""
        gram, cross, _ = self._split(statistics)
        precision = self.prior_precision * np.eye(self.dimension) + gram / self.noise_variance
        return np.linalg.solve(precision, cross[..., None] / self.noise_variance)[..., 0], precision

    def log_likelihood(self, theta, statistics) -> np.ndarray:
        """Log-likelihood −Σ(y − xᵀw)²/(2σ²) without constants, shape (...), for weights (..., d)."""
        gram, cross, square = self._split(statistics)
        theta = np.asarray(theta, float)
        quadratic = np.einsum("...i,ij,...j->...", theta, gram, theta)
        return -(square - 2 * theta @ cross + quadratic) / (2 * self.noise_variance)
