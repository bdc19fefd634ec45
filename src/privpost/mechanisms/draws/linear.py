"""One draw from the posterior of a linear regression, truncated to a ball, under pure DP."""

import math
from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np

from privpost.distributions import gaussian_in_ball
from privpost.mechanisms.base import Mechanism
from privpost.mechanisms.batches import Batched, batches
from privpost.models.base import check_scale
from privpost.models.regression.linear import LinearRegression
from privpost.privacy.accounting.costs import Cost
from privpost.privacy.checks import check_model, pure_epsilon
from privpost.privacy.ledger.gate import Release


@dataclass(frozen=True)
class LinearSampler(Batched, Mechanism):
    """One exact draw of weights w from the posterior, with the prior N(0, I/b) truncated to the ball ‖w‖ ≤ R.

    Let |y| ≤ Y and ‖x‖ ≤ X be public bounds. On the ball, a record's log-likelihood −(y − xᵀw)²/(2σ²) lies in [−L, 0]
    with L = (Y + RX)²/(2σ²), which is our derivation. So a substituted record changes the log-likelihood by at most L.
    A draw is 2L-DP, because the normaliser changes too (Zhang et al. 2016, theorem 4 (1)).

    Attributes:
        radius: radius R > 0 of the ball.

    Raises:
        ValueError: a setting is outside its range, or the model is not a LinearRegression.

    >>> LinearSampler.calibrate(LinearRegression(2, noise_variance=10.0), 100, Cost("pure", 0.9)).radius
    2.0
    """

    radius: float

    method: ClassVar[str] = "sampler_record"
    norm: ClassVar[str] = "log-likelihood ratio"
    notion: ClassVar[str] = "pure"
    public_inputs: ClassVar[tuple[str, ...]] = ("n", "prior", "noise variance", "bounds on features, label and weights")
    calibrated: ClassVar[str] = "radius"
    models: ClassVar[tuple[type, ...]] = (LinearRegression,)

    def __post_init__(self):
        super().__post_init__()
        check_scale(radius=self.radius)

    @classmethod
    def calibrate(cls, model, n: int, budget: Cost) -> Self:
        """Return the mechanism with the largest radius R = (σ√ε − Y)/X. `rdp_to_pure_epsilon` converts a Rényi budget.

        Raises:
            ValueError: ε is at most Y²/σ², the cost of the labels.
        """
        check_model(model, cls.models)
        radius = (math.sqrt(pure_epsilon(budget, cls.method) * model.noise_variance) - model.label_bound) / (
            model.feature_bound
        )
        if radius <= 0:
            least = model.label_bound**2 / model.noise_variance
            raise ValueError(f"budget is {budget}; {cls.method} needs an epsilon > {least:g}, the labels' share")
        return cls(model, n, radius)

    @property
    def sensitivity(self) -> float:
        """Largest change L = (Y + RX)²/(2σ²) of the log-likelihood in the ball if a record is substituted."""
        model = self.model
        return (model.label_bound + self.radius * model.feature_bound) ** 2 / (2 * model.noise_variance)

    def query(self, data) -> np.ndarray:
        """Log-likelihood (21 d,) of the data at 21 points along each axis of the ball, ends included."""
        steps = np.linspace(-self.radius, self.radius, 21)
        points = (steps[:, None, None] * np.eye(self.model.dimension)).reshape(-1, self.model.dimension)
        return self.model.log_likelihood(points, self.model.sufficient_statistics(data))

    def draw(self, statistics, rng, size=None) -> Release:
        """Return the releases of `perturb`, or of `replicate` if `size` is given, with their acceptance rates."""

        def several(row, number, rng):
            drawn, acceptance = gaussian_in_ball.sample(*self.model.posterior(row), self.radius, number, rng)
            return np.column_stack([drawn, np.full(number, acceptance)])

        both = batches(several, statistics, rng) if size is None else several(statistics, size, rng)
        return Release(both[..., :-1], both[..., -1])

    def cost(self) -> Cost:
        """The pure cost 2L of one release."""
        return Cost("pure", 2 * self.sensitivity)

    def log_weight(self, theta, statistics) -> np.ndarray:
        """Log-density of the release, up to a constant, at weights (..., d), for one data set's statistics."""
        theta = np.asarray(theta, float)
        mean, precision = self.model.posterior(statistics)
        off = theta - mean
        outside = (theta**2).sum(axis=-1) > self.radius**2
        return np.where(outside, -np.inf, -0.5 * np.einsum("...i,ij,...j->...", off, precision, off))

    def log_density(self, release, statistics) -> np.ndarray | None:
        """Log-density of a draw (..., 1) of a single weight given the statistics. None for more weights."""
        if self.model.dimension > 1:
            return None
        from scipy.stats import truncnorm

        mean, precision = self.model.posterior(statistics)
        mean, sd = mean[..., 0], 1 / np.sqrt(precision[..., 0, 0])
        ends = (-self.radius - mean) / sd, (self.radius - mean) / sd
        return truncnorm.logpdf(np.asarray(release, float)[..., 0], *ends, loc=mean, scale=sd)

    @classmethod
    def examples(cls) -> list[Self]:
        """One weight, two weights, and one weight with a larger bound on the labels."""
        return [
            cls(LinearRegression(1, noise_variance=10.0), 4, 2.0),
            cls(LinearRegression(2, prior_precision=2.0, noise_variance=10.0), 3, 2.0),
            cls(LinearRegression(1, prior_precision=0.1, noise_variance=50.0, label_bound=3.0), 4, 4.0),
        ]
