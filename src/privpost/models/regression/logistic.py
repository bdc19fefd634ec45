"""Bayesian logistic regression with a Gaussian prior, a tempered likelihood and an optional ball.

The posterior of the weights is, with prior precision n beta, power rho and radius R,

    p(w | D)  ∝  N(w; 0, (n beta)^-1 I) · prod_i p(y_i | x_i, w)^rho · 1{||w|| <= R}.

Geumlek, Song and Chaudhuri (2017), section 4, draw from posteriors with rho = 1 (direct and concentrated), with rho < 1
(diffused), and with rho < 1 and a finite R (one-posterior sampling).
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy.special import expit

from privpost.models.base import check_range

# Elements per block of element-wise work: two float64 buffers of this size stay in a core's own cache.
_BLOCK = 1 << 15
# A factor 1 + exp(-|z|) is at most 2, so a product of 64 such factors, whose logarithm is taken, is at most 2^64.
_FOLDS = 6
# Squared Newton decrement at which a mode is accepted: 1e-4 posterior standard deviations away.
_TOLERANCE = 1e-8


class GaussianApproximation(NamedTuple):
    """Normal law with a mean (d,) and the lower Cholesky factor (d, d) of its precision."""

    mean: np.ndarray
    factor: np.ndarray


class PredictiveMetrics(NamedTuple):
    """Error and log-likelihood of each draw on test data. Both arrays have the shape of the batch."""

    test_error: np.ndarray
    test_log_likelihood: np.ndarray


@dataclass(frozen=True, eq=False)
class LogisticPosterior:
    """Posterior of the weights of a logistic regression without intercept.

    The density is equation (6) of Geumlek, Song and Chaudhuri (2017), with a tempered likelihood and a truncated prior.

    Args:
        features: float64, shape (n, d).
        labels: 0 or 1, shape (n,).
        prior_precision: n beta > 0, the inverse of the prior's variance in every direction.
        power: exponent rho in [0, 1] of the likelihood.
        radius: radius of the ball to which the prior is truncated, or None.

    Raises:
        ValueError: a shape, a type, a label or a setting out of range.
    """

    features: np.ndarray
    labels: np.ndarray
    prior_precision: float
    power: float = 1.0
    radius: float | None = None

    def __post_init__(self):
        if self.features.ndim != 2 or 0 in self.features.shape:
            raise ValueError(f"features must be a non-empty (n, d) array, got shape {self.features.shape}")
        if self.features.dtype != np.float64:
            raise ValueError(f"features must be float64, got {self.features.dtype}")
        if self.labels.shape != self.features.shape[:1]:
            raise ValueError(f"labels must have shape {self.features.shape[:1]}, got {self.labels.shape}")
        if not np.isin(self.labels, (0, 1)).all():
            raise ValueError(f"labels must be 0 or 1, got {np.unique(self.labels)[:5]}")
        if not np.isfinite(self.features).all():
            raise ValueError("features must be finite")
        check_range("(0, inf)", prior_precision=self.prior_precision)
        check_range("[0, 1]", power=self.power)
        if self.radius is not None:
            check_range("(0, inf]", radius=self.radius)

    def is_law_of(self, other: "LogisticPosterior") -> bool:
        """Whether another posterior has equal settings and equal data."""
        settings = [(type(law), law.prior_precision, law.power, law.radius) for law in (self, other)]
        return settings[0] == settings[1] and all(
            np.array_equal(getattr(self, name), getattr(other, name)) for name in ("features", "labels")
        )

    @property
    def dimension(self) -> int:
        """Number of weights d."""
        return self.features.shape[1]

    @cached_property
    def _centred_labels(self) -> np.ndarray:
        return self.labels - 0.5

    def log_likelihood_of_predictors(self, predictors: np.ndarray) -> np.ndarray:
        """Untempered log-likelihoods (chains,) of linear predictors (chains, n)."""
        # log p(y | z) = (y - 1/2) z - |z|/2 - log(1 + exp(-|z|)) cannot overflow. The last term is the logarithm of a
        # product, taken once per 64 examples.
        n = predictors.shape[1]
        result = predictors @ self._centred_labels
        rows = max(1, _BLOCK // n)
        buffer = np.empty((min(rows, len(predictors)), n))
        for first in range(0, len(predictors), rows):
            block = predictors[first : first + rows]
            work = np.abs(block, out=buffer[: len(block)])
            absolute = work.sum(axis=1)
            np.negative(work, out=work)
            np.exp(work, out=work)
            work += 1.0
            width = n
            for _ in range(_FOLDS):
                half = (width + 1) // 2
                work[:, : width - half] *= work[:, half:width]
                width = half
            result[first : first + rows] -= 0.5 * absolute + np.log(work[:, :width]).sum(axis=1)
        return result

    def log_likelihood(self, weights: np.ndarray) -> np.ndarray:
        """Untempered log-likelihoods (chains,) of weights (chains, d)."""
        return self.log_likelihood_of_predictors(weights @ self.features.T)

    def log_prior(self, weights: np.ndarray) -> np.ndarray:
        """Log-priors (chains,) of weights (chains, d) up to a constant. They are -inf outside the ball."""
        squared_norm = np.einsum("cd,cd->c", weights, weights)
        result = -0.5 * self.prior_precision * squared_norm
        if self.radius is not None:
            result = np.where(squared_norm <= self.radius**2, result, -np.inf)
        return result

    def log_density(self, weights: np.ndarray) -> np.ndarray:
        """Log-densities (chains,) of weights (chains, d) up to a constant. They are -inf outside the ball."""
        return self.log_prior(weights) + self.power * self.log_likelihood(weights)

    def gradient(self, weights: np.ndarray) -> np.ndarray:
        """Gradient (d,) of the log-density at weights (d,) inside the ball."""
        return self._gradient(weights, self.features @ weights)

    def _gradient(self, weights: np.ndarray, predictors: np.ndarray) -> np.ndarray:
        return self.power * (self.features.T @ self.slopes(predictors)) - self.prior_precision * weights

    def precision(self, weights: np.ndarray) -> np.ndarray:
        """Negative Hessian (d, d) of the log-density at weights (d,): n beta I + rho X^T diag(p (1 - p)) X."""
        return self.precision_of(self.curvatures(self.features @ weights))

    def slopes(self, predictors: np.ndarray) -> np.ndarray:
        """Derivatives (n,), y - p, of the records' log-likelihoods with respect to their predictors (n,)."""
        return self.labels - expit(predictors)

    def curvatures(self, predictors: np.ndarray) -> np.ndarray:
        """Second derivatives (n,), p (1 - p), of the records' losses with respect to their predictors (n,)."""
        probability = expit(predictors)
        return probability * (1 - probability)

    def precision_of(self, curvatures: np.ndarray) -> np.ndarray:
        """Matrix (d, d) for curvatures (n,) of the records' losses: n beta I + rho X^T diag(curvatures) X."""
        # numpy computes an array times its own transpose as a symmetric product, at half the cost.
        scaled = self.features * np.sqrt(self.power * curvatures)[:, None]
        result = scaled.T @ scaled
        result.flat[:: self.dimension + 1] += self.prior_precision
        return result

    def curvature_floor(self, predictors: np.ndarray, reach: np.ndarray) -> np.ndarray:
        """Return numbers c (n,), one per record, such that B(s) >= c s^2/2 for |s| <= reach.

        B(s) is the record's loss l at predictor z + s minus the tangent of l at z. The curvature l''(t) = p(1 - p) is
        even and falls with |t|, so l''(z + t s) >= l''(|z| + t reach) for t in [0, 1]. Then B(s) = s^2 int (1 - t)
        l''(z + t s) dt gives c = 2 [l(|z| + S) - l(|z|) - l'(|z|) S] / S^2 with S = reach.
        """
        p = expit(-np.abs(predictors))
        variance = p * (1 - p)
        with np.errstate(divide="ignore", invalid="ignore"):
            whole = 2 * (np.log1p(p * np.expm1(-reach)) + p * reach) / reach**2
        if (reach >= 1e-3).all():
            return whole * (1 - 1e-9)
        # Four terms of the series where the difference would cancel; the next term is below 1e-12 times the first.
        series = 1 - reach * (1 - 2 * p) / 3 + reach**2 * (1 - 6 * variance) / 12
        series -= reach**3 * (1 - 2 * p) * (1 - 12 * variance) / 60
        # The result is made slightly smaller, so that c stays a bound despite rounding.
        return np.where(reach < 1e-3, variance * series, whole) * (1 - 1e-9)

    def at_mode(self, start: GaussianApproximation | None = None) -> GaussianApproximation:
        """Return the Gaussian approximation at the mode of the density without the ball.

        A similar posterior's approximation as `start` saves time.

        Raises:
            RuntimeError: the mode is not found.
        """
        weights = np.zeros(self.dimension) if start is None else start.mean
        factor = np.linalg.cholesky(self.precision(weights)) if start is None else start.factor
        for _ in range(50):
            weights = self._ascend(weights, factor)
            predictors = self.features @ weights
            factor = np.linalg.cholesky(self.precision_of(self.curvatures(predictors)))
            gradient = self._gradient(weights, predictors)
            if gradient @ _solve(factor, gradient) <= _TOLERANCE:
                return GaussianApproximation(weights, factor)
        # The message reveals nothing about the data, because its reader may not be allowed to see the data.
        raise RuntimeError(f"no mode found for prior_precision {self.prior_precision}, power {self.power}")

    def accepted_mode(self, accepted: Callable[[np.ndarray], bool], start=None) -> GaussianApproximation:
        """Return the result of `at_mode` after Newton steps that correct its mean until `accepted(mean)` is true.

        Raises:
            RuntimeError: no mode is found, or the corrected mode is not accepted.
        """
        mode = self.at_mode(start)
        for _ in range(5):
            if accepted(mode.mean):
                return mode
            mode = mode._replace(mean=mode.mean + _solve(mode.factor, self.gradient(mode.mean)))
        raise RuntimeError("no mode is accepted: the gradient is longer than it may be")

    def _ascend(self, weights: np.ndarray, factor: np.ndarray, n_steps: int = 25) -> np.ndarray:
        """Climb towards the mode by conjugate gradients, preconditioned with a precision from nearby."""
        predictors = self.features @ weights
        direction, previous, decrement = np.zeros(self.dimension), np.zeros(self.dimension), np.inf
        # A step costs two matrix-vector products, whereas a Newton step would cost a new precision matrix.
        for _ in range(n_steps):
            gradient = self._gradient(weights, predictors)
            step = _solve(factor, gradient)
            former, decrement = decrement, gradient @ step
            if decrement <= 0.1 * _TOLERANCE:
                break
            # Polak-Ribière coefficient; restart if it is negative or if the direction no longer ascends.
            direction = step + max(0.0, (gradient - previous) @ step / former) * direction
            if direction @ gradient <= 0:
                direction = step
            previous = gradient
            change = self.features @ direction
            length = self._line_maximum(weights, predictors, direction, change)
            weights = weights + length * direction
            predictors = predictors + length * change
        return weights

    def _line_maximum(self, weights, predictors, direction, change) -> float:
        """Find the step length that maximises the concave log-density along a line of ascent, by Newton's method."""
        along, squared = weights @ direction, direction @ direction
        lower, upper, length = 0.0, np.inf, 0.0
        for _ in range(30):
            there = predictors + length * change
            slope = self.power * (self.slopes(there) @ change) - self.prior_precision * (along + length * squared)
            curvature = self.power * (self.curvatures(there) @ change**2) + self.prior_precision * squared
            if slope**2 <= 1e-3 * _TOLERANCE * curvature:
                break
            lower, upper = (length, upper) if slope > 0 else (lower, length)
            length += slope / curvature
            if not lower < length < upper:
                length = 0.5 * (lower + upper) if upper < np.inf else 2 * lower
        return length


def certified_gradient(posterior: LogisticPosterior, weights: np.ndarray) -> float:
    """Return an upper bound on the gradient's true norm: the computed norm plus the largest rounding error.

    Features are at most 1 in size. With u = 2^-53, a predictor's error is (d + 2) u Σ|x||w|, a residual's error is a
    quarter of a predictor's plus 8u, and the error of a sum of n terms is n u times the sum of the terms' sizes (Higham
    2002, chapter 3). All errors are doubled.
    """
    n, d = posterior.features.shape
    unit, size = 2.0**-53, math.sqrt(d)
    length = float(np.linalg.norm(weights))
    residual = (d + 2) * unit * d * length / 4 + 8 * unit
    rounding = 2 * (n * size * residual + (n + 4) * unit * (n * size + posterior.prior_precision * length))
    return float(np.linalg.norm(posterior.gradient(weights))) + rounding


def predictive_metrics(weights: np.ndarray, features: np.ndarray, labels: np.ndarray) -> PredictiveMetrics:
    """Return the shares (...) of wrong labels, and the means (...) of log p(y | x, w) over test examples.

    Label 1 is predicted where its probability exceeds 1/2 (Geumlek, Song and Chaudhuri 2017, section 5.2).

    Args:
        weights: draws, shape (..., d).
        features: test examples, shape (n, d).
        labels: 0 or 1, shape (n,).

    Raises:
        ValueError: shapes that do not fit, or no example.
    """
    if len(features) == 0 or labels.shape != (len(features),):
        raise ValueError(f"labels must have shape ({len(features)},), at least 1 long, got {labels.shape}")
    if weights.shape[-1] != features.shape[1]:
        raise ValueError(f"weights must have {features.shape[1]} columns, got {weights.shape[-1]}")
    predictors = weights @ features.T
    wrong = (predictors > 0) != (labels == 1)
    margins = np.where(labels == 1, predictors, -predictors)
    return PredictiveMetrics(wrong.mean(axis=-1), -np.logaddexp(0.0, -margins).mean(axis=-1))


def _solve(factor: np.ndarray, right: np.ndarray) -> np.ndarray:
    from scipy.linalg import cho_solve

    return cho_solve((factor, True), right, check_finite=False)
