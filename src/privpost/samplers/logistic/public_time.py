"""Exact draws from the posterior of a logistic regression, in a time that public numbers decide.

Let f be the negative log-density and nβ the prior's precision. As f is nβ-strongly convex, at any m with g = ∇f(m)

    exp(−(f(w) − f(m))) ≤ exp(−g·Δ − ½ nβ|Δ|²),    Δ = w − m.

So proposals from N(m − g/(nβ), (nβ)⁻¹ I) are accepted with probability left side / right side, and accepted proposals
are exact draws. `PublicTime` bounds the accepted share whatever the data. A public number of proposals gives too few
draws with probability at most 1e-20, and then proposing goes on. Apart from this case and the duration of single
operations, the time reveals nothing about the data.
"""

import math
from dataclasses import dataclass
from functools import cache

import numpy as np

from privpost.models.regression.logistic import LogisticPosterior
from privpost.privacy.divergences.glm import KAPPA

# The number τ: the remaining gradient lowers the logarithm of the accepted share by at most τ.
_SLACK = 0.1
# Probability that the evaluated proposals are too few.
FAILURE = 1e-20
# Largest number of predictors held in memory at once.
_ELEMENTS = 1 << 21
EXACT = True


@dataclass(frozen=True)
class PublicTime:
    """Numbers of gradient steps and of proposals for draws, computed from public numbers alone.

    Attributes:
        n, dimension: number of records, and of features.
        precision: β of the prior's precision nβ.
        power: power ρ of the likelihood.
        bound: bound c on the length of a record.
        radius: radius R of the ball, or None.
    """

    n: int
    dimension: int
    precision: float
    power: float
    bound: float
    radius: float | None = None

    @property
    def _ratio(self) -> float:
        """How far the largest curvature exceeds nβ, as a multiple of nβ: ρc²/(4β)."""
        return self.power * self.bound**2 / (4 * self.precision)

    @property
    def steps(self) -> int:
        """Number of gradient steps towards the mode."""
        return self.steps_to(math.sqrt(2 * _SLACK * self.n * self.precision))

    def steps_to(self, length: float) -> int:
        """Return a number of steps after which the gradient's norm is at most `length`."""
        # A step to w − ∇f(w)/M, M = nβ + ρnc²/4, multiplies the gradient by I minus an average curvature divided by M.
        # So the gradient's length is multiplied by at most 1 − nβ/M. At w = 0 the length is at most ρnc/2.
        first = self.power * self.n * self.bound / 2
        return max(0, math.ceil((1 + self._ratio) * math.log(first / length)))

    @property
    def step_size(self) -> float:
        """Step size 1/M of the gradient steps, where M is the largest possible curvature."""
        return 1 / (self.n * self.precision * (1 + self._ratio))

    @property
    def log_expected(self) -> float:
        """Logarithm of a bound on the mean number of proposals per draw, for any data."""
        # The curvature of f is at most H = nβ I + (ρ/4) Σ x_i x_iᵀ, with the likelihood's power ρ and |x_i| ≤ c. So the
        # integral of exp(−(f(w) − f(m))) is at least the integral of exp(−g·Δ − ½ ΔᵀHΔ), and the accepted share is at
        # least
        #     |I + (ρ/(4nβ)) Σ x_i x_iᵀ|^(−½) exp(−|g|²/(2nβ)) ≥ (1 + ρc²/(4βd))^(−d/2) exp(−τ).
        # Here a positive semidefinite d × d matrix A of trace t has |I + A| ≤ (1 + t/d)^d, the sum of |x_i|² is at most
        # nc², and |g|² ≤ 2nβτ after the public number of steps. If the prior is truncated to a ball, this share is
        # multiplied by the untruncated posterior's mass of the ball. Alternatively, with M I for H, the factor is the
        # ball's mass under a normal law of precision M about a point at distance r from 0.
        d, radius = self.dimension, self.radius
        free = -d / 2 * math.log1p(self._ratio / d)
        if radius is not None and math.isfinite(radius):
            free = max(free + self._log_inside(radius), -d / 2 * math.log1p(self._ratio) + self._log_normal(radius))
        return _SLACK - free

    @property
    def _norm(self) -> float:
        return min(math.sqrt(self.power * KAPPA / self.precision), self.power * self.bound / (2 * self.precision))

    def _log_inside(self, radius: float) -> float:
        # The mode's norm is at most r = `_norm`. ‖w‖ is a 1-Lipschitz function of an nβ-strongly log-concave w. The
        # mean distance of w from the mode is at most √(d/(nβ)). So the mass outside the ball is at most
        # exp(−nβ(R − r − √(d/(nβ)))²/2) (Bakry and Émery).
        rest = radius - self._norm - math.sqrt(self.dimension / (self.n * self.precision))
        share = -math.expm1(-self.n * self.precision * rest**2 / 2) if rest > 0 else 0.0
        return math.log(share) if share > 0 else -math.inf

    def _log_normal(self, radius: float) -> float:
        from scipy.stats import ncx2

        share = ncx2.cdf(radius**2 / self.step_size, self.dimension, self._norm**2 / self.step_size)
        return math.log(share) if share > 0 and self._norm <= radius else -math.inf

    def proposals(self, size: int) -> int:
        """Return the number of proposals for `size` draws."""
        return _proposals(size, math.exp(-self.log_expected))


@cache
def _proposals(size: int, share: float) -> int:
    """Return a number of proposals that gives fewer than `size` draws with probability at most `FAILURE`."""
    from scipy.stats import binom

    low = high = size
    while binom.logcdf(size - 1, high, share) > math.log(FAILURE):
        low, high = high, 2 * high
    while high - low > 1 + high // 100:
        middle = (low + high) // 2
        enough = binom.logcdf(size - 1, middle, share) <= math.log(FAILURE)
        low, high = (low, middle) if enough else (middle, high)
    return high


def near_mode(posterior: LogisticPosterior, public: PublicTime) -> np.ndarray:
    """Return the weights (d,) after the public number of gradient steps from 0."""
    weights = np.zeros(posterior.dimension)
    for _ in range(public.steps):
        weights = weights + public.step_size * posterior.gradient(weights)
    return weights


def sample(posterior: LogisticPosterior, public: PublicTime, size: int, rng: np.random.Generator) -> np.ndarray:
    """Return exact draws (size, d) from a posterior given `public.n` records.

    Args:
        posterior: the posterior. Its features must be no longer than `public.bound`.
        public: the numbers that decide the time.

    Raises:
        ValueError: size < 1.
        ArithmeticError: a log-acceptance above 0, which refutes the bound.
    """
    if size < 1:
        raise ValueError(f"size is {size!r}; it must be >= 1")
    near = near_mode(posterior, public)
    # The gradient of the log-density, −∇f.
    gradient = posterior.gradient(near)
    number, at_once = public.proposals(size), max(1, _ELEMENTS // public.n)
    accepted: list[np.ndarray] = []
    while number > 0 or sum(map(len, accepted)) < size:
        accepted.append(_accepted(posterior, near, gradient, min(at_once, number) if number > 0 else at_once, rng))
        number -= at_once
    return np.concatenate(accepted)[:size]


def _accepted(posterior: LogisticPosterior, near, gradient, number: int, rng) -> np.ndarray:
    """Evaluate `number` proposals and return the accepted proposals."""
    precision, at = posterior.prior_precision, posterior.features @ near
    weights = near + gradient / precision + rng.standard_normal((number, len(near))) / math.sqrt(precision)
    levels = np.log(rng.random(number))
    pull = gradient + precision * near
    gained = posterior.power * (
        posterior.log_likelihood_of_predictors(weights @ posterior.features.T)
        - posterior.log_likelihood_of_predictors(at[None])
    )
    log_acceptance = gained - (weights - near) @ pull
    # This tolerance exceeds the rounding error of sums of n terms.
    if (worst := float(log_acceptance.max())) > 1e-9 * (1 + np.abs(gained).max()):
        raise ArithmeticError(f"log-acceptance is {worst}; it must be <= 0")
    inside = np.isfinite(posterior.log_prior(weights))
    return weights[inside & (levels < log_acceptance)]
