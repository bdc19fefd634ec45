"""Bayesian linear regression with known noise variance and a spherical normal prior."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np


class Moments(NamedTuple):
    """Sufficient statistics: number of rows, XᵀX (d, d), Xᵀy (d,) and yᵀy."""

    rows: int
    gram: np.ndarray
    cross: np.ndarray
    square: float

    @classmethod
    def of(cls, features, labels) -> Moments:
        """Moments of features (n, d) and labels (n,)."""
        features, labels = np.asarray(features, float), np.asarray(labels, float)
        return cls(len(labels), features.T @ features, features.T @ labels, float(labels @ labels))

    def without(self, part: Moments) -> Moments:
        """Moments of the rows that are not in a part of them."""
        return Moments(self.rows - part.rows, self.gram - part.gram, self.cross - part.cross, self.square - part.square)

    def mean_squared_error(self, weights) -> np.ndarray:
        """Mean squared error of the predictions x·w on these rows, for weights (..., d); shape (...)."""
        weights = np.asarray(weights, float)
        quadratic = np.einsum("...i,ij,...j->...", weights, self.gram, weights)
        return (self.square - 2 * weights @ self.cross + quadratic) / self.rows


def posterior(moments: Moments, prior_precision: float, noise_variance: float) -> tuple[np.ndarray, np.ndarray]:
    """Mean (d,) and precision (d, d) of w given y ~ N(xᵀw, σ²) and w ~ N(0, I/b), before any truncation.

    Args:
        moments: of the training rows.
        prior_precision: b > 0.
        noise_variance: σ² > 0.

    Raises:
        ValueError: an argument outside its range.
    """
    for name, value in (("prior_precision", prior_precision), ("noise_variance", noise_variance)):
        if not 0 < value < np.inf:
            raise ValueError(f"{name} is {value!r}; it must be > 0 and finite")
    precision = prior_precision * np.eye(len(moments.cross)) + moments.gram / noise_variance
    return np.linalg.solve(precision, moments.cross / noise_variance), precision
