"""Noise on the optimum of a regularised logistic regression: a certified optimum, a lattice and discrete noise.

`logistic_finite.LogisticOutputNoise` is the continuous version for simulations; this one is for real data.
"""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from privpost.distributions import noise
from privpost.models.regression.logistic import LogisticPosterior, certified_gradient
from privpost.privacy.accounting.losses import Normal

# Features are whole multiples of 2^-SHIFT in [-1, 1], the same for every file with the same public bounds.
SHIFT = 40
# Shares of a record's influence 2c that the optimiser's gradient and the lattice may add to the sensitivity.
_SLACK = 2.0**-10


def design(records: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Features (n, d) with the intercept first, exact, and labels (n,), of whole-numbered records (n, d)."""
    features = np.concatenate([np.ones((len(records), 1)), records[:, :-1] / 2.0**SHIFT], axis=1)
    return features, records[:, -1].astype(float)


@dataclass(frozen=True)
class OutputNoise:
    """The minimiser of Σ ln(1 + exp(−y xᵀw)) + P|w|²/2 on a lattice, plus discrete Gaussian noise on it.

    The objective is P-strongly convex, and a record's gradient is at most c = √d: minimisers of neighbours are at most
    2c/P apart. With a gradient of at most τ at the weights, and these rounded to γZ^d, the released point moves by

        Δ = (2c + 2τ)/P + γ√d,

    so that noise of deviation σ has Rényi DP λΔ²/(2σ²), which is λ(2c + 2τ + Pγ√d)²/(2P) at σ² = 1/P.

    Attributes:
        n: public number of records.
        dimension: d, the intercept included.
        precision: P > 0.
        sigma: deviation of the noise in lattice steps.
    """

    n: int
    dimension: int
    precision: float
    sigma: float

    norm: ClassVar[str] = "l2"
    neighbours: ClassVar[str] = "substitution"

    @property
    def bound(self) -> float:
        """c, rounded up."""
        return math.nextafter(math.sqrt(self.dimension), math.inf)

    @property
    def tolerance(self) -> float:
        """τ."""
        return _SLACK * self.bound

    @cached_property
    def step(self) -> float:
        """γ, a power of 2 with Pγ√d at most a 512th of 2c."""
        return 2.0 ** math.floor(math.log2(_SLACK * 2 * self.bound / (self.precision * self.bound)))

    @property
    def sensitivity(self) -> float:
        """Δ in lattice steps, rounded up."""
        exact = (2 * self.bound + 2 * self.tolerance) / self.precision / self.step + self.bound
        return exact * (1 + 1e-12)

    @property
    def loss(self) -> Normal:
        """The normal law of deviation 1 that neighbours shift by Δ/σ."""
        return Normal(self.sensitivity / self.sigma)

    def query(self, records) -> np.ndarray:
        """Weights in lattice steps, (d,)."""
        return np.zeros(self.dimension) if len(records) == 0 else self.fit(records)

    def fit(self, records: np.ndarray) -> np.ndarray:
        """The certified minimiser in lattice steps (d,), for features with the label 0 or 1 last, whole numbers (n, d).

        Raises:
            RuntimeError: no minimiser was certified.
        """
        posterior = LogisticPosterior(*design(records), self.precision)
        mode = posterior.accepted_mode(lambda w: certified_gradient(posterior, w) <= self.tolerance)
        return np.rint(mode.mean / self.step)

    def perturb(self, exact, source) -> np.ndarray:
        """Noisy weights in lattice steps."""
        return noise.add(exact, source.normal(0.0, self.sigma, np.shape(exact)), source)
