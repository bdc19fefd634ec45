"""Exact draws from the posterior of a logistic regression; they never fail, and public numbers alone decide their time.

Let f be the negative log-density, ρ the power of the likelihood, nβ the prior's precision, and |x_i| ≤ c. The curvature
of f lies between nβ I and H = nβ I + (ρ/4) Σ x_i x_iᵀ. As f is nβ-strongly convex, at any m with g = ∇f(m)

    exp(−(f(w) − f(m))) ≤ exp(−g·Δ − ½ nβ|Δ|²),    Δ = w − m.

So proposals from N(m − g/(nβ), (nβ)⁻¹ I) are accepted with probability left side / right side, and accepted proposals
are independent and exact. The left side's integral is at least that of exp(−g·Δ − ½ ΔᵀHΔ), so a share of at least

    |I + (ρ/(4nβ)) Σ x_i x_iᵀ|^(−½) exp(−|g|²/(2nβ)) ≥ (1 + ρc²/(4βd))^(−d/2) exp(−|g|²/(2nβ))

is accepted, whatever the data: a positive semidefinite d × d matrix A of trace t has |I + A| ≤ (1 + t/d)^d, and the sum
of |x_i|² is at most nc². A step to w − ∇f(w)/M, M = nβ + ρnc²/4, multiplies the gradient by I less an average of the
curvature over M. So a step multiplies the gradient's length by at most 1 − nβ/M. At w = 0 the length is at most ρnc/2.
So |g|² ≤ 2nβ τ after a public number of steps, for any τ > 0.

If the prior is truncated to ‖w‖ ≤ R, this share is multiplied by the untruncated posterior's mass of the ball. The
mode's norm is at most r = min(√(ρκ/β), ρc/(2β)). ‖w‖ is a 1-Lipschitz function of an nβ-strongly log-concave w. The
mean distance of w from the mode is at most √(d/(nβ)). So the mass outside the ball is at most
exp(−nβ(R − r − √(d/(nβ)))²/2) (Bakry and Émery). Alternatively, with M I for H, the factor is the ball's mass under a
normal law of precision M about a point at distance r from 0.

The number of evaluated proposals is such that, by the binomial law at the least share, too few are accepted with
probability at most 1e-20. In that case proposing goes on, so the draws always have their law. Apart from the duration
of single operations, the time reveals nothing about the data beyond this probability.
"""

import math
from dataclasses import dataclass
from functools import cache

import numpy as np

from privpost.models.regression.logistic import LogisticPosterior
from privpost.privacy.divergences.glm import KAPPA

# Largest decrease of ln of the accepted share through the remaining gradient, τ.
_SLACK = 0.1
# Probability that the evaluated proposals are too few.
FAILURE = 1e-20
# Predictors held at once.
_ELEMENTS = 1 << 21
EXACT = True


@dataclass(frozen=True)
class PublicTime:
    """Numbers of steps and proposals that the draws take, which public numbers alone decide.

    Attributes:
        n, dimension: number of records, and of features.
        precision, power, bound: β, ρ and c.
        radius: R of the ball, or None.
    """

    n: int
    dimension: int
    precision: float
    power: float
    bound: float
    radius: float | None = None

    @property
    def _ratio(self) -> float:
        """ρc²/(4β), the excess of the largest curvature over nβ, in units of nβ."""
        return self.power * self.bound**2 / (4 * self.precision)

    @property
    def steps(self) -> int:
        """Number of steps towards the mode."""
        return self.steps_to(math.sqrt(2 * _SLACK * self.n * self.precision))

    def steps_to(self, length: float) -> int:
        """Number of steps after which the gradient's norm is at most `length`."""
        first = self.power * self.n * self.bound / 2
        return max(0, math.ceil((1 + self._ratio) * math.log(first / length)))

    @property
    def step_size(self) -> float:
        """Length 1/M of a step, in units of the gradient."""
        return 1 / (self.n * self.precision * (1 + self._ratio))

    @property
    def log_expected(self) -> float:
        """ln of the largest mean number of proposals per draw, whatever the data."""
        d, radius = self.dimension, self.radius
        free = -d / 2 * math.log1p(self._ratio / d)
        if radius is not None and math.isfinite(radius):
            free = max(free + self._log_inside(radius), -d / 2 * math.log1p(self._ratio) + self._log_normal(radius))
        return _SLACK - free

    @property
    def _norm(self) -> float:
        return min(math.sqrt(self.power * KAPPA / self.precision), self.power * self.bound / (2 * self.precision))

    def _log_inside(self, radius: float) -> float:
        rest = radius - self._norm - math.sqrt(self.dimension / (self.n * self.precision))
        share = -math.expm1(-self.n * self.precision * rest**2 / 2) if rest > 0 else 0.0
        return math.log(share) if share > 0 else -math.inf

    def _log_normal(self, radius: float) -> float:
        from scipy.stats import ncx2

        share = ncx2.cdf(radius**2 / self.step_size, self.dimension, self._norm**2 / self.step_size)
        return math.log(share) if share > 0 and self._norm <= radius else -math.inf

    def proposals(self, size: int) -> int:
        """Number of proposals for `size` draws."""
        return _proposals(size, math.exp(-self.log_expected))


@cache
def _proposals(size: int, share: float) -> int:
    """Return how many proposals (within 1%) give at least `size` accepted ones, except with probability `FAILURE`."""
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
    """Return the weights (d,) after the public number of steps from 0."""
    weights = np.zeros(posterior.dimension)
    for _ in range(public.steps):
        weights = weights + public.step_size * posterior.gradient(weights)
    return weights


def sample(posterior: LogisticPosterior, public: PublicTime, size: int, rng: np.random.Generator) -> np.ndarray:
    """Return exact draws (size, d).

    Args:
        posterior: the posterior given `public.n` records whose features are no longer than the bound.
        public: the numbers that decide the time.
        size: number of draws.
        rng: source of randomness.

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
    """Evaluate `number` proposals and return the accepted ones."""
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
