"""Bayesian linear regression with unknown noise variance on normal features of unknown covariance."""

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from privpost.models.base import check_positive
from privpost.models.regression.linear import SecondMoments


class NormalInverseGamma(NamedTuple):
    """Law w | σ² ~ N(mean, σ² precision⁻¹) and σ² ~ InverseGamma(shape, rate) of weights w and noise variance σ².

    Attributes:
        mean: shape (..., d).
        precision: shape (..., d, d).
        shape, rate: shape (...).
    """

    mean: np.ndarray
    precision: np.ndarray
    shape: np.ndarray
    rate: np.ndarray


@dataclass(frozen=True)
class NormalRegression(SecondMoments):
    """Linear regression y ~ N(xᵀw, σ²) with unknown noise variance, on features x ~ N(0, V) of unknown covariance.

    The priors are w ~ N(0, σ² I/b), σ² ~ InverseGamma(shape, rate) and V ~ InverseWishart(ν, ψ I). A record is (x, y)
    of shape (d + 1,). Statistics are XᵀX, Xᵀy and yᵀy, flattened (Bernstein and Sheldon 2019).

    Attributes:
        dimension: number of weights d.
        prior_precision: b > 0 in the prior of w.
        shape, rate: parameters > 0 of the prior of σ².
        degrees: degrees of freedom ν > d − 1 of the prior of V.
        feature_scale: ψ > 0 in the prior of V.
        feature_bound: public bound X > 0 on ‖x‖₂.
        label_bound: public bound Y > 0 on |y|.

    >>> NormalRegression(1).posterior(np.array([3.0, 2.0, 2.0]), 4).mean
    array([0.5])
    """

    dimension: int
    prior_precision: float = 1.0
    shape: float = 1.0
    rate: float = 1.0
    degrees: float = 10.0
    feature_scale: float = 1.0
    feature_bound: float = 1.0
    label_bound: float = 1.0

    support: ClassVar[tuple[float, float]] = (-np.inf, np.inf)

    def __post_init__(self):
        super().__post_init__()
        for name in ("shape", "rate", "feature_scale"):
            check_positive(name, getattr(self, name))
        if not self.dimension - 1 < self.degrees < np.inf:
            raise ValueError(f"degrees is {self.degrees!r}; it must be > dimension - 1 and finite")

    @property
    def theta_shape(self) -> tuple[int, ...]:
        """Shape (d + 1,) of θ, the weights and the noise variance."""
        return (self.dimension + 1,)

    @property
    def parameter_names(self) -> tuple[str, ...]:
        """Names of the coordinates of θ: w1 to wd, and s2 for the noise variance."""
        return (*(f"w{i}" for i in range(1, self.dimension + 1)), "s2")

    @property
    def statistics_size(self) -> int:
        """Number of statistics, d² + d + 1."""
        return self.dimension**2 + self.dimension + 1

    @property
    def records(self) -> np.ndarray:
        """Records whose second moments differ most, shape (7, d + 1), or (3, 2) for one feature."""
        # A record and its negative have equal second moments, so 0, 60 and 120 degrees are enough.
        turns = np.arange(3) * np.pi / 3 if self.dimension > 1 else np.zeros(1)
        features = np.zeros((len(turns), self.dimension))
        for axis, values in enumerate((np.cos(turns), np.sin(turns))[: self.dimension]):
            features[:, axis] = self.feature_bound * values
        extreme = [np.column_stack([features, np.full(len(turns), y)]) for y in (self.label_bound, -self.label_bound)]
        return np.concatenate([*extreme, np.zeros((1, self.dimension + 1))])

    def gram(self, statistics) -> np.ndarray:
        """Second moments of (x, y), shape (..., d + 1, d + 1), from statistics (..., d² + d + 1)."""
        gram, cross, square = self._split(statistics)
        upper = np.concatenate([gram, cross[..., None]], axis=-1)
        lower = np.concatenate([cross, square[..., None]], axis=-1)
        return np.concatenate([upper, lower[..., None, :]], axis=-2)

    def posterior(self, statistics, n: int) -> NormalInverseGamma:
        """Law of weights and noise variance given the statistics (..., d² + d + 1) of n records."""
        return self.given(self.gram(statistics), n)

    def given(self, gram, n: int) -> NormalInverseGamma:
        """Law of weights and noise variance given the second moments (..., d + 1, d + 1) of n records."""
        d = self.dimension
        cross = gram[..., :d, d]
        precision = self.prior_precision * np.eye(d) + gram[..., :d, :d]
        mean = cross / precision[..., 0] if d == 1 else np.linalg.solve(precision, cross[..., None])[..., 0]
        rate = self.rate + (gram[..., d, d] - (cross * mean).sum(axis=-1)) / 2
        return NormalInverseGamma(mean, precision, np.full(rate.shape, self.shape + n / 2), rate)

    def log_marginal(self, gram, n: int) -> np.ndarray:
        """Log-density of the second moments S (..., d + 1, d + 1) of n ≥ d + 1 records, averaged over the priors.

        Up to a constant, the log-density is (n − d − 2)/2 ln|S| − (ν + n)/2 ln|ψI + XᵀX| − ½
        ln|bI + XᵀX| − (shape + n/2) ln(posterior rate).
        """
        d = self.dimension
        law = self.given(gram, n)
        features = self.feature_scale * np.eye(d) + gram[..., :d, :d]
        base = (n - d - 2) / 2 * log_determinant(gram) - log_determinant(law.precision) / 2
        return base - (self.degrees + n) / 2 * log_determinant(features) - law.shape * np.log(law.rate)

    def sample(self, parameters: NormalInverseGamma, rng, size: int | None = None) -> np.ndarray:
        """Draws of weights and noise variance, shape ([size,] ..., d + 1)."""
        mean, precision, shape, rate = parameters
        lead = rate.shape if size is None else (size, *rate.shape)
        variance = rate / rng.standard_gamma(shape, lead)
        # precision = LLᵀ; L⁻ᵀ z has the covariance precision⁻¹.
        root = np.swapaxes(np.linalg.cholesky(precision), -1, -2)
        z = rng.standard_normal((*lead, self.dimension, 1))
        weights = mean + np.sqrt(variance)[..., None] * np.linalg.solve(root, z)[..., 0]
        return np.concatenate([weights, variance[..., None]], axis=-1)

    def sample_features(self, n: int, size: int, rng) -> np.ndarray:
        """Return features (size, n, d): n records for each of `size` draws of the covariance V from its prior."""
        covariance = inverse_wishart(
            self.degrees,
            np.broadcast_to(self.feature_scale * np.eye(self.dimension), (size, self.dimension, self.dimension)),
            rng,
        )
        return rng.standard_normal((size, n, self.dimension)) @ np.swapaxes(np.linalg.cholesky(covariance), -1, -2)


def log_determinant(matrix) -> np.ndarray:
    """Return ln |det| of matrices (..., k, k)."""
    # A formula for k ≤ 2 takes a tenth of LAPACK's time.
    if matrix.shape[-1] > 2:
        return np.linalg.slogdet(matrix)[1]
    determinant = matrix[..., 0, 0]
    if matrix.shape[-1] == 2:
        determinant = determinant * matrix[..., 1, 1] - matrix[..., 0, 1] * matrix[..., 1, 0]
    return np.log(np.abs(determinant))


def inverse_wishart(degrees: float, scale, rng) -> np.ndarray:
    """Draw from InverseWishart(degrees, scale), shape (..., d, d), by Bartlett's decomposition."""
    d = scale.shape[-1]
    factor = np.zeros(scale.shape)
    for i in range(d):
        factor[..., i, i] = np.sqrt(2 * rng.standard_gamma((degrees - i) / 2, scale.shape[:-2]))
        factor[..., i, :i] = rng.standard_normal((*scale.shape[:-2], i))
    # With scale = LLᵀ and Bartlett's B, the draw is L(BBᵀ)⁻¹Lᵀ.
    half = np.linalg.solve(factor, np.swapaxes(np.linalg.cholesky(scale), -1, -2))
    return np.swapaxes(half, -1, -2) @ half
