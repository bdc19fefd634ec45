"""Private logistic regression of real data: discrete noise on the optimum, which is rounded to a lattice.

`logistic_finite.LogisticOutputNoise` is the continuous version for simulations.
"""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from privpost.distributions import noise
from privpost.models.regression.logistic import LogisticPosterior, certified_gradient
from privpost.privacy.accounting.losses import Normal

# Features are multiples of 2^-SHIFT in [-1, 1]. This grid is the same for all files with the same public bounds.
SHIFT = 40
# The optimiser's remaining gradient adds this share of a record's influence 2c to Δ, and the lattice at most as much.
_SLACK = 2.0**-10


def design(records: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return features (n, d) and labels (n,), given whole-number records (n, d). The first feature is 1."""
    features = np.concatenate([np.ones((len(records), 1)), records[:, :-1] / 2.0**SHIFT], axis=1)
    return features, records[:, -1].astype(float)


@dataclass(frozen=True)
class OutputNoise:
    """Releases the minimiser of Σ ln(1 + exp(−y xᵀw)) + P|w|²/2, rounded to a lattice, plus discrete Gaussian noise.

    The objective is P-strongly convex and a record's gradient is at most c = √d long, so the minimisers of neighbours
    are at most 2c/P apart. The gradient at the optimiser's point is at most τ long, and this point is rounded to the
    lattice γZ^d. So the L2 sensitivity is Δ = (2c + 2τ)/P + γ√d. With noise of standard deviation σ, the Rényi DP
    parameter at order λ is λΔ²/(2σ²).

    Attributes:
        n: public number of records.
        dimension: number d of weights, including the intercept.
        precision: P > 0, the precision of the prior.
        sigma: standard deviation of the noise in lattice steps.
    """

    n: int
    dimension: int
    precision: float
    sigma: float

    norm: ClassVar[str] = "l2"
    neighbours: ClassVar[str] = "substitution"

    @property
    def bound(self) -> float:
        """Bound c = √d on the length of a record's gradient, rounded up."""
        return math.nextafter(math.sqrt(self.dimension), math.inf)

    @property
    def tolerance(self) -> float:
        """Bound τ on the norm of the gradient at the optimiser's point."""
        return _SLACK * self.bound

    @cached_property
    def step(self) -> float:
        """Lattice step γ, a power of 2 with Pγ√d at most 2c/1024."""
        return 2.0 ** math.floor(math.log2(_SLACK * 2 * self.bound / (self.precision * self.bound)))

    @property
    def sensitivity(self) -> float:
        """L2 sensitivity Δ in lattice steps, rounded up."""
        exact = (2 * self.bound + 2 * self.tolerance) / self.precision / self.step + self.bound
        return exact * (1 + 1e-12)

    @property
    def loss(self) -> Normal:
        """Bound on the privacy loss of a release, as a law from `losses`: `Normal` with the shift Δ/σ."""
        return Normal(self.sensitivity / self.sigma)

    def query(self, records) -> np.ndarray:
        """The optimal weights (d,) before noise, in lattice steps."""
        return np.zeros(self.dimension) if len(records) == 0 else self.fit(records)

    def fit(self, records: np.ndarray) -> np.ndarray:
        """Return the minimiser (d,) in lattice steps, given whole-number records (n, d).

        The last number of a record is its label, 0 or 1.

        Raises:
            RuntimeError: the gradient at the optimiser's point could not be proved to be at most τ long.
        """
        posterior = LogisticPosterior(*design(records), self.precision)
        mode = posterior.accepted_mode(lambda w: certified_gradient(posterior, w) <= self.tolerance)
        return np.rint(mode.mean / self.step)

    def perturb(self, exact, source) -> np.ndarray:
        """Return the exact weights plus noise, both in lattice steps."""
        return noise.add(exact, source.normal(0.0, self.sigma, np.shape(exact)), source)
